"""A study exported to a tracker and imported again gives the same losses."""

import polars as pl
import pytest

from isoloss.errors import InputError
from isoloss.records import load
from isoloss.sources.logs import export, loss_table
from isoloss.sources.logs.export import TARGETS

OUT = {"wandb": "wandb-runs", "tensorboard": "events", "mlflow": "mlflow.db", "parquet": "runs.parquet"}


@pytest.mark.parametrize("target", ["wandb", "tensorboard", "mlflow"])
def test_what_goes_out_comes_back(ran, tmp_path, target):
    study, out = load(ran.folder), tmp_path / OUT[target]
    export(study, target, out)
    columns = ["run_id", "step", "params", "params_total", "tokens", "n_layer", "learning_rate"]
    wanted = study.table().filter("cooled").sort("run_id", "step")
    frame = loss_table(target, out).frame.filter(pl.col("loss").is_not_null()).sort("run_id", "step")
    assert wanted.height > 4
    assert frame.select(columns).rows() == wanted.select(columns).rows()
    near = 1e-6 if target == "tensorboard" else 0  # an event holds 32 bits
    for name in ("loss", "bits_per_byte"):
        assert frame[name].to_list() == pytest.approx(wanted[name].to_list(), rel=near, abs=0)
    with pytest.raises(InputError, match="exists already"):
        export(study, target, out)


def test_the_curve_of_training_goes_out_too(ran, tmp_path):
    study = load(ran.folder)
    export(study, "tensorboard", tmp_path / "events")
    frame = loss_table("tensorboard", tmp_path / "events", columns={"loss": "train_loss"}).frame
    trunk = study.curves().filter(pl.col("branch") == 0)
    losses = frame.filter(pl.col("loss").is_not_null()).sort("run_id", "step")["loss"].to_list()
    assert losses == pytest.approx(trunk.sort("run_id", "step")["total"].to_list(), rel=1e-6)


def test_a_table_is_the_studys(ran, tmp_path):
    export(load(ran.folder), "parquet", tmp_path / "runs.parquet")
    assert pl.read_parquet(tmp_path / "runs.parquet").equals(load(ran.folder).table())


def test_targets_and_names_are_checked(ran, tmp_path, isoloss):
    assert sorted(OUT) == sorted(TARGETS)
    code, stdout, stderr = isoloss("export", str(ran.folder), "--to", "comet", "-o", str(tmp_path / "x"))
    assert (code, stdout) == (2, "")
    assert "nothing is exported to 'comet'" in stderr
    assert isoloss("export", str(ran.folder), "--to", "parquet", "-o", str(tmp_path / "x.txt"))[0] == 2
    assert isoloss("export", str(tmp_path), "--to", "parquet", "-o", str(tmp_path / "x.csv"))[0] == 2
    assert list(tmp_path.iterdir()) == []
