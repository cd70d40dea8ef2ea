"""Kinds of tables that people have and that once misled a fit, several of each kind, and a control."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from isoloss import fit
from isoloss.errors import InputError, Refusal
from isoloss.sources import columns_for, read, runs


def law(params, tokens):
    return 1.8172 + 482.01 * params**-0.3478 + 2085.43 * tokens**-0.3658


def grid(sizes=5, horizons=5, noise=1e-3, seed=0, **columns):
    """Separate runs of a Chinchilla law: sizes times horizons."""
    params = np.repeat(np.geomspace(2e7, 2e9, sizes).round(), horizons)
    tokens = np.tile(np.geomspace(5e8, 5e10, horizons).round(), sizes)
    loss = law(params, tokens) * np.exp(np.random.default_rng(seed).normal(0, noise, len(params)))
    return pl.DataFrame({"params": params, "tokens": tokens, "loss": loss} | columns)


def cut(**columns):
    """``grid`` with the largest model of each horizon cut short, its loss far too high, as the table says."""
    table, largest = grid(), pl.col("params") == 2e9
    told = [
        pl.when(largest).then(pl.lit(bad)).otherwise(pl.lit(good)).alias(name)
        for name, (good, bad) in columns.items()
    ]
    return table.with_columns(
        pl.when(largest).then(pl.col("loss") * 1.15).otherwise("loss").alias("loss"), *told
    )


def curves(step="step", seeds=2, sizes=5, spacing=None, **columns):
    """Runs of several rows each, of which a row knows its size, its seed and its step."""
    rng, rows = np.random.default_rng(0), []
    steps = np.arange(1, 7) * 2000 if spacing is None else np.array(spacing)
    for params in np.geomspace(1e7, 1e9, sizes).round():
        for seed in range(seeds):
            off = rng.normal(0, 0.01)
            for count in steps:
                loss = law(params, count * 1e6) * np.exp(off)
                rows.append(
                    {"params": params, "seed": seed, step: int(count), "tokens": count * 1e6, "loss": loss}
                )
    return pl.DataFrame(rows).with_columns(**columns)


def taken(table, laws="chinchilla", **options):
    return columns_for(laws, table, **options)


def out(data):
    return [(excluded.row, excluded.reason) for excluded in data.runs.excluded]


def kinds(data):
    return {issue.kind for issue in data.runs.findings}


LARGEST = [21, 22, 23, 24, 25]


@pytest.mark.parametrize(
    "columns",
    [
        {"state": ("COMPLETED", "TIMEOUT")},
        {"state": ("COMPLETED", "CANCELLED by 1000")},
        {"job_state": ("COMPLETED", "NODE_FAIL")},
        {"status": ("TERMINATED", "ERROR")},
        {"trial_status": ("COMPLETE", "PRUNED")},
        {"State": ("TrialState.COMPLETE", "TrialState.FAIL")},
        {"Run Status": ("finished", "ran out of time")},
        {"state": (None, "crashed")},
        {"finished": (True, False)},
        {"result": ("success", "oom-killed")},
        {"exit reason": ("done", "wall clock")},
        {"finished_at": ("2026-01-01", None)},
        {"pct_done": (100.0, 60.0)},
        {"iteration": (1000, 600), "train_iters": (1000, 1000)},
        {"num_updates": (1000, 600), "max_update": (1000, 1000)},
        {"is_finished": ("yes", "no")},
        {"done": (1, 0)},
        {"crashed": (0, 1)},
        {"oom": (False, True)},
        {"exit_code": (0, 137)},
        {"error": (None, "CUDA out of memory")},
        {"step": (1000, 600), "max_steps": (1000, 1000)},
        {"global_step": (1000, 600), "num_training_steps": (1000, 1000)},
        {"iter": (999, 600), "max_iters": (1000, 1000)},
        {"trainer/global_step": (1000, 600), "config.maxSteps": (1000, 1000)},
        {"epoch": (3, 1), "num_train_epochs": (3, 3)},
        {"progress": (1.0, 0.6)},
    ],
    ids=str,
)
def test_unfinished_runs_in_other_words(columns):
    data = taken(cut(**columns))
    assert [row for row, _ in out(data)] == LARGEST
    assert all(reason.startswith("unfinished") for _, reason in out(data))
    assert any("unfinished: rows 21, 22" in warning for warning in data.warnings)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": ("COMPLETED", "COMPLETED")},
        {"status": ("Succeeded", "Done")},
        {"state": ("California", "Texas")},
        {"optimizer_state": ("adam", "sgd")},
        {"finished": (True, True)},
        {"step": (1000, 1000), "max_steps": (1000, 1001)},
        {"epoch": (2, 2), "max_epochs": (3, 3)},
        {"num_steps": (1000, 3000)},
        {"notes": ("done", "with another seed")},
        {"optimizer": ("adam", "muon")},
    ],
    ids=str,
)
def test_control_finished_runs_stay(columns):
    assert out(taken(cut(**columns))) == []


def test_words_that_nobody_knows_are_asked_about():
    data = taken(cut(status=("fertig", "abgebrochen")))
    assert kinds(data) == {"unknown-status"}
    assert "'abgebrochen', 'fertig'" in data.warnings[0]


@pytest.mark.parametrize(
    "table",
    [
        curves(),
        curves("iteration", seeds=1, sizes=8),
        curves(spacing=[1000, 2000, 4000, 8000, 16000]),
        curves("steps"),
        curves().with_columns(pl.format("seed {}", "seed").alias("seed")),
        curves().with_columns(pl.format("n{}-s{}", "params", "seed").alias("experiment")).drop("seed"),
        curves().with_columns(pl.format("n{}-s{}", "params", "seed").alias("trial")).drop("seed", "step"),
        curves().with_columns(pl.format("{} of {}", "seed", "params").alias("whatever")).drop("seed"),
    ],
    ids=range(8),
)
def test_checkpoints_are_one_run_under_any_label(table):
    data = taken(table)
    assert len(set(data.cluster)) == table.height // (5 if table.height == 50 else 6)
    assert any("count once" in note for note in data.runs.source["notes"])


@pytest.mark.parametrize(
    "table",
    [
        grid(),
        grid().with_columns(seed=0, batch_tokens=1e6, steps=pl.col("tokens") / 1e6),
        grid().with_columns(num_iterations=pl.col("tokens") / 1e6),
        grid().with_columns(name=pl.format("n{}", "params"), D=pl.col("tokens")).drop("tokens", "name"),
        grid().with_columns(run=pl.format("n{}-d{}", "params", "tokens")),
        pl.concat([grid(seed=s).with_columns(seed=pl.lit(s)) for s in range(3)]),
    ],
    ids=range(6),
)
def test_control_separate_runs_are_not_checkpoints(table):
    data = taken(table)
    assert data.cluster is None
    assert data.warnings == ()


@pytest.mark.parametrize(
    ("column", "scale"),
    [
        ("params_M", 1e6),
        ("Parameters (M)", 1e6),
        ("params [B]", 1e9),
        ("N (millions)", 1e6),
        ("millions_of_params", 1e6),
        ("num_params_b", 1e9),
        ("Mparams", 1e6),
        ("Model size (B params)", 1e9),
        ("gigaparams", 1e9),
        ("Params (10^6)", 1e6),
    ],
)
def test_units_in_a_header_are_kept_to(column, scale):
    data = taken(grid().with_columns(pl.col("params") / scale).rename({"params": column}))
    np.testing.assert_allclose(data.inputs["params"], grid()["params"])
    assert any(f"{column!r} times {scale:g}" in note for note in data.runs.source["notes"])
    mapped = taken(
        grid().with_columns(pl.col("params") / scale).rename({"params": column}), columns={"params": column}
    )
    np.testing.assert_allclose(mapped.inputs["params"], grid()["params"])


def test_control_raw_counts_are_not_scaled_and_a_wrong_header_is_refused():
    assert not taken(grid()).runs.source["notes"]
    with pytest.raises(InputError, match="raw counts under a wrong header"):
        taken(grid().rename({"params": "params_B"}))


def budgets(unit=1.0, k=6.0, column="flops", tokens=True):
    rows = []
    for flops in (1e18, 1e19, 1e20):
        for tilt in np.geomspace(0.2, 5, 6):
            params = tilt * 0.1 * (flops / 6) ** 0.5
            given = flops / (k * params)
            rows.append({column: flops / unit, "params": params, "tokens": given, "loss": law(params, given)})
    return pl.DataFrame(rows).drop([] if tokens else ["tokens"])


@pytest.mark.parametrize(
    ("unit", "says"), [(8.64e19, "PF-days"), (1e18, "exaFLOP"), (1e15, "petaFLOP"), (1.4e18, "hours of GPUs")]
)
def test_flops_in_another_unit_are_refused_where_they_are_needed(unit, says):
    for tokens in (False, True):
        with pytest.raises(InputError, match=says):
            taken(budgets(unit, tokens=tokens), [], more=("flops", "params"))


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("compute_pf_days", 8.64e19),
        ("flops (PF-days)", 8.64e19),
        ("C (PF-days)", 8.64e19),
        ("training_exaflops", 1e18),
        ("total_gflops", 1e9),
    ],
)
def test_flops_whose_header_names_the_unit_are_kept_to(column, unit):
    data = taken(budgets(unit, column=column, tokens=False), [], more=("flops", "params"))
    np.testing.assert_allclose(data.inputs["flops"], budgets()["flops"])


def test_hours_of_devices_are_no_flops_and_control_flops_are():
    with pytest.raises(InputError, match="hours of devices"):
        taken(budgets(column="gpu_hours"), [], columns={"flops": "gpu_hours"}, more=("flops", "params"))
    assert taken(budgets(tokens=False), [], more=("flops", "params")).warnings == ()


@pytest.mark.parametrize("name", ["tokens", "D", "Training Tokens", "tokens_B"])
def test_a_tables_own_tokens_are_found_by_every_command(name):
    table = budgets(k=10).rename({"tokens": name})
    table = table.with_columns(pl.col(name) / 1e9) if name == "tokens_B" else table
    data = taken(table, [], more=("flops", "params"), optional=("tokens",))
    np.testing.assert_allclose(data.inputs["tokens"], budgets(k=10)["tokens"])
    assert "tokens" not in taken(table.drop(name), [], more=("flops", "params"), optional=("tokens",)).inputs


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("val_bpb", "bits per byte"),
        ("bits_per_byte", "bits per byte"),
        ("eval/bpc", "bits per character"),
        ("perplexity", "perplexity"),
        ("normalized_loss", "normalised"),
        ("val_loss", "nats per token"),
        ("combined loss", "nats per token"),
    ],
)
def test_the_unit_of_the_loss_is_kept_in_the_fit(column, unit):
    table = grid().rename({"loss": column})
    assert fit("chinchilla", table, loss=column).loss_unit == unit


@pytest.mark.parametrize(
    ("sizes", "told"),
    [((50304, 50432), True), ((50257, 50304), True), ((32000, 32128), True), ((50257, 50257), False)],
)
def test_a_padded_vocabulary_is_one(sizes, told):
    data = taken(grid().with_columns(vocab_size=pl.Series([sizes[0]] * 20 + [sizes[1]] * 5)))
    assert kinds(data) == ({"padded-vocabulary"} if told else set())


def test_other_vocabularies_are_refused_unless_accepted():
    table = grid().with_columns(vocab_size=pl.Series([32000] * 20 + [50257] * 5))
    with pytest.raises(InputError, match="do not compare"):
        taken(table)
    assert kinds(taken(table, accepted=("mixed-vocabularies",))) == {"mixed-vocabularies"}


@pytest.mark.parametrize("seeds", [(42, 42), (0, 0), ("first", "first")])
def test_a_seed_that_was_run_again_is_one_run(seeds):
    first, again = grid(), grid().with_columns(pl.col("loss") + 1e-5)
    table = pl.concat([first.with_columns(seed=pl.lit(seeds[0])), again.with_columns(seed=pl.lit(seeds[1]))])
    data = taken(table)
    assert len(data.loss) == 25
    assert {reason[:7] for _, reason in out(data)} == {"a rerun"}


def test_one_run_written_with_two_roundings_is_one_run():
    for digits in (2, 3):
        table = pl.concat(
            [grid().with_columns(pl.col("loss").round(6)), grid().with_columns(pl.col("loss").round(digits))]
        )
        data = taken(table)
        assert [row for row, _ in out(data)] == list(range(26, 51))
        assert len(data.loss) == 25


def test_control_seeds_are_no_reruns():
    table = pl.concat([grid(seed=s).with_columns(seed=pl.lit(s)) for s in (1, 2)])
    assert out(taken(table)) == []
    assert out(taken(table.drop("seed"))) == []
    assert taken(table.drop("seed")).warnings == ()


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("domain", ["c4_en", "wiki", "books"]),
        ("eval_set", ["c4", "pile"]),
        ("Tag", ["train/loss", "val/loss"]),
        ("lab", ["A", "B"]),
    ],
)
def test_rows_that_differ_in_a_label_are_no_seeds(label, values):
    parts = [
        grid(seed=place).with_columns(pl.col("loss") + 0.05 * place, pl.lit(value).alias(label))
        for place, value in enumerate(values)
    ]
    data = taken(pl.concat(parts))
    assert any(
        f"differ in {label}" in warning and f"{label} = '{values[0]}'" in warning for warning in data.warnings
    )
    assert len(set(data.cluster)) == 25
    assert taken(pl.concat(parts), where=f"\"{label}\" = '{values[0]}'").warnings == ()


def test_control_labels_that_say_nothing_are_silent():
    table = grid().with_columns(note=pl.format("run of {}", "params"), who=pl.lit("me"))
    assert taken(table).warnings == ()
    seeds = pl.concat(
        [grid(seed=s).with_columns(uid=pl.format("{}-{}", pl.lit(s), pl.int_range(25))) for s in (1, 2)]
    )
    assert taken(seeds).warnings == ()


@pytest.mark.parametrize("gap", [0.02, -0.05, 0.2])
def test_two_evaluation_losses_stacked_are_told(gap):
    table = pl.concat([grid(noise=1e-3), grid(noise=1e-3, seed=1).with_columns(pl.col("loss") + gap)])
    assert "stacked" in kinds(taken(table))


def test_two_readings_of_one_plot_are_told():
    rng = np.random.default_rng(3)
    loose = [
        pl.col(name) * pl.Series(np.exp(rng.normal(0, 0.002, 25))) for name in ("params", "tokens", "loss")
    ]
    assert "paired" in kinds(taken(pl.concat([grid(), grid().with_columns(loose)])))
    assert "paired" not in kinds(taken(grid()))
    assert "paired" not in kinds(taken(pl.concat([grid(), grid(seed=4)])))


@pytest.mark.parametrize("name", ["run_id", "run", "trial"])
def test_steps_logged_twice_after_a_restart_are_taken_once(name):
    run = curves(seeds=1, sizes=6).with_columns(pl.format("n{}", "params").alias(name)).drop("seed")
    again = run[2:4].with_columns(pl.col("loss") * 0.99)
    table = pl.concat([run[:4], again, run[4:]])
    data = taken(table)
    assert [row for row, _ in out(data)] == [3, 4]
    assert len(set(data.cluster)) == 6
    assert out(taken(run)) == []


def test_steps_logged_at_other_steps_after_a_restart_and_files_in_any_order():
    run = curves(seeds=1, sizes=6).with_columns(pl.format("n{}", "params").alias("run")).drop("seed")
    shifted = run[1:3].with_columns(pl.col("step") + 500, pl.col("tokens") + 5e8)
    assert [row for row, _ in out(taken(pl.concat([run[:3], shifted, run[3:]])))] == [3]
    assert out(taken(run.reverse())) == []
    sets = pl.concat([run.with_columns(set=pl.lit(name)) for name in ("a", "b")])
    assert not any("logged twice" in reason for _, reason in out(taken(sets)))


def test_a_refusal_says_its_reason_and_under_it_what_was_left_out():
    table = cut(state=("crashed", "finished"))
    with pytest.raises(Refusal) as caught:
        fit("power", table, params="params")
    reason, left_out, *_ = caught.value.what.splitlines()
    assert reason.startswith("power has 2 free parameters")
    assert left_out.startswith("  mind: left out as unfinished: rows 1, 2, 3")
    with pytest.raises(Refusal) as caught:
        fit("power", grid()[:1])
    assert caught.value.what.splitlines()[0].startswith("power has 2 free parameters")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",params,loss\n0,1e6,3\n1,1e7,2\n", ["params", "loss"]),
        (",params,loss\n1,1e6,3\n2,1e7,2\n", ["params", "loss"]),
        ("params,loss,,\n1e6,3,,\n1e7,2,,\n", ["params", "loss"]),
        ("params,loss\n1e6,3,,\n1e7,2,\n", ["params", "loss"]),
        ("sep=;\nparams;loss\n1e6;3\n1e7;2\n", ["params", "loss"]),
        ("# exported\n# today\nparams,loss\n1e6,3\n# half\n1e7,2\n", ["params", "loss"]),
        ("# params,loss\n1e6,3\n1e7,2\n", ["params", "loss"]),
        ("\ufeffsep=,\r\nparams,loss\r\n1e6,3\r\n1e7,2\r\n", ["params", "loss"]),
    ],
)
def test_csv_as_spreadsheets_and_pandas_write_it(tmp_path, text, columns):
    path = tmp_path / "runs.csv"
    path.write_text(text, "utf-8")
    table = read(path)
    assert table.columns == columns
    assert table["params"].to_list() == [1e6, 1e7]


@pytest.mark.parametrize("text", [",params\n7,1e6\n9,1e7\n", ",\n1,1e6\n", "a,b\n1,2,3\n"])
def test_control_columns_without_a_name_that_hold_something_are_refused(tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(InputError):
        read(tmp_path / "runs.csv")


def test_nested_logs_are_read_by_the_last_of_their_names(tmp_path):
    path = tmp_path / "runs.ndjson"
    path.write_text(
        '{"name": "a", "config": {"model": {"n_params": 1000000}}, "summary": {"val/loss": 3.5}}\n'
    )
    assert runs(path, needed=("params", "loss")).frame["params"].to_list() == [1e6]


@pytest.mark.parametrize("axis", ["Step", "Relative Time (Wall)", "trainer/global_step"])
def test_an_exported_panel_is_recognised(axis):
    table = pl.DataFrame({axis: [1, 2], "big - val/loss": [3.0, 2.5], "big - val/loss__MIN": [3.0, 2.5]})
    with pytest.raises(InputError, match="W&B panel"):
        runs(table)


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("name", ["run_id", "seed", None])
def test_rounded_losses_are_no_copies(name, digits):
    parts = [grid(seed=s).with_columns(pl.col("loss").round(digits)) for s in (1, 2, 3)]
    table = pl.concat(parts)
    table = table if name is None else table.with_columns(pl.int_range(75).alias(name))
    data = taken(table)
    assert "near-duplicates" not in kinds(data)
    assert (out(data), len(data.loss)) == ([], 75)


def test_control_copies_are_told():
    data = taken(pl.concat([grid(), grid()[:4]]))
    assert [row for row, _ in out(data)] == [26, 27, 28, 29]


PANDAS = """
import sys
sys.modules["pyarrow"] = None
from decimal import Decimal
import pandas as pd
from isoloss.sources import columns_for
texts = ["1000000", "10000000", "100000000", "1e9"]
for dtype, values in (
    ("Int64", [10**6, 10**7, 10**8, 10**9]),
    ("Float64", [1e6, 1e7, 1e8, 1e9]),
    ("object", [Decimal(text) for text in texts]),
    ("category", texts),
    ("string", texts),
    ("str", texts),
):
    columns = {"params": pd.Series(values, dtype=dtype), "loss": [4.0, 3.5, 3.0, 2.6], "family": ["lstm"] * 4}
    frame = pd.DataFrame(columns)
    assert columns_for("power", frame).inputs["params"].tolist() == [1e6, 1e7, 1e8, 1e9], dtype
    frame.loc[1, "params"] = None
    assert [one.row for one in columns_for("power", frame).runs.excluded] == [2], dtype
"""


def test_pandas_columns_of_any_kind_without_pyarrow():
    ended = subprocess.run([sys.executable, "-c", PANDAS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        ("a\ncaf\u00e9 \u201cx\u201d\n".encode("cp1252"), "iconv -f cp1252"),
        ("a\n\u20ac 5, \u00e9\n".encode("cp1252"), "iconv -f cp1252"),
        ("a\ncaf\u00e9\n".encode("latin-1"), "iconv -f latin1"),
        ("a\n1\n".encode("utf-16"), "iconv -f utf-16"),
        ("a\n\u30c6\u30b9\u30c8\n".encode("shift-jis"), "the editor that wrote it"),
    ],
)
def test_advice_on_encodings_does_not_damage_text(tmp_path, data, advice):
    (tmp_path / "runs.csv").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "runs.csv")
    assert advice in caught.value.mend


def test_control_names_of_seeds_are_no_labels():
    for name in ("model", "group", "experiment"):
        named = curves().with_columns(pl.format("m{}-{}", "params", "seed").alias(name)).drop("seed")
        assert taken(named).warnings == ()
