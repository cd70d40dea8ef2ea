"""Units in headers, FLOPs, losses and vocabularies that once misled a fit, each with a control."""

import numpy as np
import polars as pl
import pytest
from run_tables import grid, kinds, law, taken

from isoloss import fit
from isoloss.errors import InputError


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
    assert kinds(data.runs) == ({"padded-vocabulary"} if told else set())


def test_other_vocabularies_are_refused_unless_accepted():
    table = grid().with_columns(vocab_size=pl.Series([32000] * 20 + [50257] * 5))
    with pytest.raises(InputError, match="do not compare"):
        taken(table)
    assert kinds(taken(table, accepted=("mixed-vocabularies",)).runs) == {"mixed-vocabularies"}
