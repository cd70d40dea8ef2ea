"""Very many small runs: what reading a study costs grows with their number and no faster."""

import os
from collections import Counter

import numpy as np
import polars as pl
import pytest

from isoloss import files, load, report
from isoloss.records import divergence, store
from isoloss.records.store import read_record, run_folder
from isoloss.studies import plan, spec

COPIES = 60


@pytest.fixture
def many(ran, tmp_path):
    """The study ``ran`` with 60 seeds more of its LSTM and its looped model, copies of the ones trained."""
    out, planned = tmp_path / "out", files.read_json(ran.folder / "study.json")
    for row in [run for run in planned["runs"] if run["settings"]["family"] in ("lstm", "looped")]:
        source = run_folder(ran.folder, row["run_id"])
        for copy in range(COPIES):
            run_id = f"{row['run_id']}-copy-{copy}"
            place = run_folder(out, run_id)
            place.mkdir(parents=True)
            for path in source.glob("*.parquet"):
                os.link(path, place / path.name)
            record = read_record(source).sealed(run_id=run_id, seed=copy)
            files.write_json(place / "record.json", record.model_dump(mode="json"))
            planned["runs"].append({**row, "run_id": run_id})
    planned["runs"] = [run for run in planned["runs"] if "-copy-" in run["run_id"]]
    files.write_json(out / "study.json", planned)
    return out


def test_files_are_opened_by_shape_and_tables_made_once(many, monkeypatch):
    calls = Counter()

    def counted(owner, name):
        genuine = getattr(owner, name)

        def call(*arguments, **options):
            calls[name] += 1
            return genuine(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (pl, "scan_parquet"),
        (pl, "read_parquet"),
        (store, "loss_table"),
        (store, "read_record"),
    ):
        counted(owner, name)
    report.write(many)
    assert calls["read_record"] == 2 * COPIES
    assert calls["loss_table"] == 1
    assert calls["scan_parquet"] <= 2 * 4, "two shapes; curves are read twice, positions and slides once"
    assert calls["read_parquet"] == 0


def test_each_run_gets_its_own_rows_in_the_order_of_the_plan(many):
    study = load(many)
    order = [record.run_id for record in study.records]
    for name, table in (
        (store.POSITIONS, study.positions()),
        (store.CURVE, study.curves()),
        (store.SLIDING, study.sliding()),
    ):
        assert table["run_id"].unique(maintain_order=True).to_list() == order
        for run_id in (order[0], order[COPIES], order[-1]):
            alone = pl.read_parquet(many / "runs" / run_id / name)
            assert table.filter(run_id=run_id).select(alone.columns).equals(alone)


def test_an_empty_file_among_others_takes_no_rows_of_theirs(many):
    study = load(many)
    record, lengths = study.records[1], study.positions().group_by("run_id").len()["len"]
    path = many / "runs" / record.run_id / store.POSITIONS
    empty = pl.read_parquet(path).clear()
    path.unlink()
    changed = {**record.files, store.POSITIONS: store.write_parquet(path, empty)}
    files.write_json(path.with_name("record.json"), record.sealed(files=changed).model_dump(mode="json"))
    count = dict(load(many).positions().group_by("run_id").len().iter_rows())
    assert record.run_id not in count
    assert len(count) == 2 * COPIES - 1
    assert set(count.values()) == set(lengths)


def test_paths_of_a_curve_are_the_trunk_and_then_each_branch():
    curve = pl.DataFrame(
        {"branch": [0, 0, 1, 0, 2], "step": [0, 1, 1, 2, 3], "total": [5.0, 4.0, 3.5, 3.0, 2.0]}
    )
    assert [path.tolist() for path in divergence.paths(curve)] == [[5.0, 3.5], [5.0, 4.0, 3.0, 2.0]]
    (trunk,) = divergence.paths(curve.filter(branch=0))
    assert np.array_equal(trunk, [5.0, 4.0, 3.0])


def test_ten_thousand_runs_are_planned_each_once(tiny, study_file):
    scale = spec.scale_of(spec.read(str(study_file())), "mini", [f"seeds={list(range(5000))}"])
    runs = plan.plan(scale, gpu=False)
    assert len({run.run_id for run in runs}) == len(runs) == 10_002
