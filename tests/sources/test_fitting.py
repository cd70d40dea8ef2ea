"""Tables at the door: polars, pandas, pyarrow; errors name row and column."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from isoloss.errors import InputError, Refusal
from isoloss.laws import FitStatus, fit
from isoloss.sources import fit_table, fitting

SIZES = np.geomspace(1e6, 1e8, 7)
LOSSES = 1.8 + 400 * SIZES**-0.35 + 0.005 * np.random.default_rng(0).standard_normal(7)
TABLE = pl.DataFrame(
    {
        "N": [*SIZES, 1e6],
        "loss": [*LOSSES, float("nan")],
        "family": ["lstm"] * 7 + ["looped"],
        "seed": [*range(7), 0],
    }
)


def _as(kind):
    return {"polars": TABLE, "lazy": TABLE.lazy(), "pandas": TABLE.to_pandas(), "pyarrow": TABLE.to_arrow()}[
        kind
    ]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pyarrow"])
def test_every_kind_of_table_gives_the_fit_of_its_arrays(kind):
    fitted = fit_table("power-floor", _as(kind), params="N", where="family = 'lstm'")
    assert fitted.params == fit("power-floor", {"params": SIZES}, LOSSES, objective="huber-log").params
    assert (fitted.source["rows_read"], fitted.source["rows_kept"]) == (8, 7)
    assert {"params": "N", "loss": "loss"}.items() <= fitted.source["columns"].items()
    assert fitted.source["where"] == "family = 'lstm'"


def test_where_takes_an_expression():
    fitted = fit_table("power-floor", TABLE, params="N", where="family = 'lstm'", cluster="seed")
    assert fitted.clusters == 7


def test_a_bad_value_names_row_and_column():
    with pytest.raises(InputError, match="loss is not finite in row 8"):
        fit_table("power-floor", TABLE, params="N")
    with pytest.raises(InputError, match="loss is not finite in row 8"):
        fit_table("power-floor", TABLE, params="N", where="family = 'looped'")


def test_a_row_without_a_value_is_left_out_and_named():
    empty = TABLE.with_columns(pl.when(pl.col("seed") == 2).then(None).otherwise(pl.col("N")).alias("N"))
    fitted = fit_table("power-floor", empty, params="N", where="family = 'lstm'")
    assert fitted.n == 6
    assert fitted.source["excluded"] == [{"row": 3, "reason": "no params", "by_outcome": False}]
    assert "left out as no params: row 3" in fitted.warnings


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"params": "size"}, "no column 'size'"),
        ({"params": "family"}, "column .family."),
        ({"params": "N", "cluster": "group", "where": "loss < 9"}, "no column 'group'"),
        ({"params": "N", "where": "familie = 'lstm'"}, "where does not work"),
        ({"params": "N", "where": "family = = 'lstm'"}, "where does not work"),
        ({"params": "N", "where": 'family = "lstm"'}, "put text in single quotes"),
    ],
)
def test_wrong_columns_are_input_errors(arguments, place):
    with pytest.raises(InputError, match=place):
        fit_table("power-floor", TABLE, **arguments)


def test_not_a_table():
    with pytest.raises(InputError, match="not a table"):
        fit_table("power", 7)


def test_laws_import_without_torch():
    code = "import sys; sys.modules['torch'] = None; import isoloss.laws, isoloss.sources; print('ok')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "ok\n", done.stderr


def test_loops_of_a_study_become_the_parameters_of_the_loop():
    """Executed minus unique parameters, over the extra passes: what is inside the loop."""
    rng = np.random.default_rng(0)
    grid = [(d, r, D) for d in (64, 96, 128, 192) for r in (1, 2, 4, 8) for D in (1e8, 4e8, 2e9)]
    width, loops, tokens = (np.array(column, dtype=float) for column in zip(*grid, strict=True))
    once, inside = 48.0 * width**2, 96.0 * width**2
    effective = once + loops**0.5 * inside
    loss = 1.6 + 60 * effective**-0.3 + 900 * tokens**-0.36 + 0.003 * rng.standard_normal(len(grid))
    table = pl.DataFrame(
        {
            "params": once + inside,
            "params_executed": once + loops * inside,
            "recurrence": loops,
            "tokens": tokens,
            "loss": loss,
        }
    )
    fitted = fit_table("loop-equivalence", table)
    assert set(fitted.source["derived"]) == {"params_once", "params_recurrent"}
    low, high = fitted.intervals["phi"]
    assert low < 0.5 < high
    direct = fit(
        "loop-equivalence",
        {
            "params_once": np.where(loops > 1, once, 0.0),
            "params_recurrent": np.where(loops > 1, inside, once + inside),
            "recurrence": loops,
            "tokens": tokens,
        },
        loss,
        objective="huber-log",
    )
    assert fitted.params["phi"] == pytest.approx(direct.params["phi"], rel=1e-6)


def test_checkpoints_of_one_run_are_one_cluster():
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e9, 12), np.geomspace(1e9, 3e10, 4)))
    rng = np.random.default_rng(1)
    runs = np.tile(np.arange(12), 4)
    loss = 1.8 + 480 * N**-0.35 + 2100 * D**-0.37 + 0.01 * rng.standard_normal(12)[runs]
    table = pl.DataFrame({"params": N, "tokens": D, "loss": loss + 0.001 * rng.standard_normal(48)})
    named = table.with_columns(pl.Series("run_id", runs))
    fitted = fit_table("chinchilla", named, objective="squared")
    assert (fitted.n, fitted.clusters) == (48, 12)
    assert "rows of one run_id count once" in fitted.source["notes"]
    # Negative control: without names every checkpoint counts, and the intervals are too narrow.
    naive = fit_table("chinchilla", table, objective="squared")
    assert naive.clusters is None
    assert fitted.standard_errors["alpha"] > 1.5 * naive.standard_errors["alpha"]


def test_the_count_of_parameters_is_a_choice():
    """The same runs under another count give another exponent; totals follow from vocabulary and width."""
    width = np.array([64, 96, 128, 192, 256, 384, 512.0])
    table = pl.DataFrame({"params": 12 * 4 * width**2, "d_model": width, "vocab": [8192] * 7})
    total = table["params"].to_numpy() + 8192 * width
    noise = 0.001 * np.random.default_rng(0).standard_normal(7)
    table = table.with_columns(pl.Series("loss", 1.8 + 400 * total**-0.35 + noise))
    counted = fit_table("power-floor", table, count="params_total", tied_embeddings=True, objective="squared")
    low, high = counted.intervals["a"]
    assert low < 0.35 < high
    assert counted.ranges["params"] == (total.min(), total.max())
    assert "params_total" in counted.source["derived"]
    # Negative control: counted without embeddings the exponent is another.
    bare = fit_table("power-floor", table, objective="squared")
    assert bare.params["a"] < low
    with pytest.raises(InputError, match="no count 'weights'"):
        fit_table("power-floor", table, count="weights")


def test_copies_of_a_run_count_once():
    rng = np.random.default_rng(0)
    N = np.geomspace(1e6, 1e8, 9)
    table = pl.DataFrame({"params": N, "loss": 1.8 + 400 * N**-0.35 + 0.005 * rng.standard_normal(9)})
    once = fit_table("power-floor", table, objective="squared")
    doubled = pl.concat([table, table.head(4)])
    fitted = fit_table("power-floor", doubled, objective="squared")
    assert fitted.params == once.params
    assert [excluded["row"] for excluded in fitted.source["excluded"]] == [10, 11, 12, 13]
    # Negative control: rows of equal values that are told to be other seeds are other runs.
    seeds = doubled.with_columns(seed=pl.Series([0] * 9 + [1] * 4))
    assert fit_table("power-floor", seeds, objective="squared").source["excluded"] == []


def test_rows_of_other_settings_are_no_seeds():
    rng = np.random.default_rng(0)
    N = np.repeat(np.geomspace(1e6, 1e8, 7), 2)
    table = pl.DataFrame(
        {
            "params": N,
            "loss": 1.8 + 400 * N**-0.35 + 0.005 * rng.standard_normal(14),
            "learning_rate": [1e-3, 3e-3] * 7,
        }
    )
    assert any("no seeds" in text for text in fit_table("power-floor", table).warnings)
    alike = table.with_columns(learning_rate=pl.lit(1e-3))
    assert not any("no seeds" in text for text in fit_table("power-floor", alike).warnings)


def test_best_sizes_are_not_taken_for_losses():
    C = np.geomspace(1e17, 1e21, 8)
    sizes = 0.1 * C**0.5 * np.exp(0.02 * np.random.default_rng(0).standard_normal(8))
    table = pl.DataFrame({"flops": C, "best": sizes})
    fitted = fit_table("optimal-params", table, loss="best", objective="squared-log")
    assert not any("loss" in text or "perplexity" in text for text in fitted.warnings)
    low, high = fitted.intervals["a"]
    assert low < 0.5 < high


def test_where_the_default_refuses_squares_of_logs_are_tried_and_named():
    for seed, used in ((3, "huber-log"), (44, "squared-log")):
        rng = np.random.default_rng(seed)
        N, D = 10 ** rng.uniform(7, 9, 25), 10 ** rng.uniform(8.5, 10.5, 25)
        loss = (1.8 + 482 * N**-0.34 + 2085 * D**-0.37) * np.exp(0.01 * rng.standard_normal(25))
        table = pl.DataFrame({"params": N, "tokens": D, "loss": loss})
        fitted = fit_table("chinchilla", table)
        assert fitted.objective.name == used
        assert ("since huber-log is refused" in " ".join(fitted.warnings)) == (used != "huber-log")
    with pytest.raises(Refusal, match="told apart"):
        fit_table("chinchilla", table, objective="huber-log")


def test_a_law_that_both_refuse_is_fitted_by_each_once(monkeypatch):
    tried = []

    def counted(*args, **options):
        tried.append(options["objective"])
        return fit(*args, **options)

    monkeypatch.setattr(fitting, "fit", counted)
    N = np.geomspace(1e7, 1e9, 12)
    table = pl.DataFrame({"params": N, "loss": 2 + 0.001 * np.resize([1, -1, 2], 12)})
    with pytest.raises(Refusal):
        fit_table("power-floor", table)
    assert tried == ["huber-log", "squared-log"]
    assert fit_table("power-floor", table, curve_only=True).status is FitStatus.CURVE_ONLY
    assert tried == 2 * ["huber-log", "squared-log"]


def test_what_is_held_is_named_first_where_a_fit_is_refused():
    rng = np.random.default_rng(1)
    N, D = 10 ** rng.uniform(7, 9, 40), 10 ** rng.uniform(9, 11, 40)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.004 * rng.standard_normal(40))
    table = pl.DataFrame({"params": N, "tokens": D, "loss": loss})
    for name in ("alpha", "beta"):
        with pytest.raises(Refusal) as refused:
            fit_table("outer-exponent", table, fixed={name: 300.0})
        assert refused.value.mend.startswith(f"first look at what is held ({name} = 300); then ")
