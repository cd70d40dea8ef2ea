"""The same runs out of every source, as the tracker's own library wrote them."""

import polars as pl
import pytest
from writers import BATCH, EVALUATED, PARAMS, WRITERS, val_loss

from isoloss.sources import columns_for
from isoloss.sources.logs import CONTRACT, SOURCES, loss_table

EXACT = {"nanogpt": 6e-5, "tensorboard": 1e-6}
"""A log is printed to four digits, an event holds 32 bits."""


def imported(logs, kind, **options):
    source, path = logs(kind)
    if kind == "panel":
        options["table"] = path.parent / "sizes.csv"
    return loss_table(source, path, **options)


@pytest.mark.parametrize("kind", WRITERS)
def test_every_source_gives_the_runs_that_were_logged(logs, kind):
    table = imported(logs, kind)
    frame = table.frame.sort("run_id", "step")
    wanted = sorted((name, step) for name in PARAMS for step in EVALUATED)
    assert frame.columns == list(CONTRACT)
    assert list(zip(frame["run_id"], frame["step"], strict=True)) == wanted
    size = "params_total" if kind == "nanogpt" else "params"
    assert frame[size].to_list() == [PARAMS[name] for name, _ in wanted]
    assert frame["tokens"].to_list() == [step * BATCH for _, step in wanted]
    losses = [val_loss(PARAMS[name], step) for name, step in wanted]
    assert frame["loss"].to_list() == pytest.approx(losses, abs=EXACT.get(kind, 1e-12))
    assert all(str(logs(kind)[1]) in origin for origin in frame["origin"])
    assert "loss: " in frame["rules"][0]
    assert not any("again" in note for note in table.notes)
    assert set(frame["status"]) in ({"finished"}, {None})


@pytest.mark.parametrize("kind", ["wandb", "huggingface", "lightning"])
def test_what_was_imported_is_read_without_a_doubt_of_it(logs, isoloss, tmp_path, kind):
    source, path = logs(kind)
    out = tmp_path / "runs.parquet"
    assert isoloss("import", source, str(path), "-o", str(out))[0] == 0
    data = columns_for("chinchilla", out)
    assert data.warnings == ()
    assert len(set(data.cluster)) == len(PARAMS)


def test_the_last_evaluation_of_each_run(logs):
    assert imported(logs, "wandb", last=True).frame["step"].to_list() == [300] * 4


def test_the_training_loss_is_taken_on_request_alone(logs):
    table = imported(logs, "wandb", columns={"loss": "train/loss"})
    assert table.frame.height == 12
    assert table.columns["loss"] == "train/loss"


def test_a_number_that_no_file_says(logs):
    frame = imported(logs, "panel", values={"batch_tokens": 2 * BATCH}).frame
    assert frame["tokens"].max() == 600 * BATCH
    assert "batch_tokens: --value batch_tokens" in frame["rules"][0]


def test_a_unit_in_a_header_is_part_of_the_rule(logs):
    assert "params: params_M times 1e+06" in imported(logs, "csv").frame["rules"][0]


def test_every_source_is_one_of_the_contract():
    names = ["wandb", "tensorboard", "huggingface", "mlflow", "lightning", "nanogpt", "csv"]
    assert list(SOURCES) == names


def test_parquet_and_csv_hold_the_same(logs, isoloss, tmp_path):
    source, path = logs("csv")
    for name in ("runs.csv", "runs.parquet"):
        assert isoloss("import", source, str(path), "-o", str(tmp_path / name))[0] == 0
    wanted = ["run_id", "params", "tokens", "loss", "origin"]
    frames = [pl.read_csv(tmp_path / "runs.csv"), pl.read_parquet(tmp_path / "runs.parquet")]
    assert frames[0].select(wanted).equals(frames[1].select(wanted))
    code, stdout, _ = isoloss("import", source, str(path))
    assert (code, stdout) == (0, (tmp_path / "runs.csv").read_text("utf-8"))
