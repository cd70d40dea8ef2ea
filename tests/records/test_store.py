"""Reading a study back: what is damaged, foreign or missing is named, never guessed."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from isoloss import files
from isoloss.errors import InputError
from isoloss.records import load
from isoloss.records.store import check, is_finished, read_record, run_folder


@pytest.fixture
def copy(ran, tmp_path):
    """A copy of the study to damage, and the folder of one finished run in it."""
    shutil.copytree(ran.folder, tmp_path / "study")
    return tmp_path / "study"


@pytest.fixture
def run(ran, copy):
    return copy / "runs" / ran.ids["lstm"]


def edit(path, change):
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value), "utf-8")


def edit_of_before(path, change):
    """An edit of a record as isoloss wrote it before records had a digest."""
    edit(path, lambda record: change(record) or record.pop("digest"))


def edit_without_positions(path, change):
    """The same of one that has no positions beside it to tell."""
    edit_of_before(path, change)
    edit(path, lambda record: record["files"].pop("positions.parquet"))


def refused(path, match, read):
    with pytest.raises(InputError, match=match) as caught:
        read()
    assert caught.value.where == str(path)
    assert caught.value.mend
    return caught.value


def test_an_undamaged_copy_is_read(ran, copy):
    data = load(copy)
    assert len(data.records) == 6
    assert {failure["reason"] for failure in data.failures.values()} == {
        f"{ran.broken}: RuntimeError: broken on purpose",
        "its process ended with SIGKILL; out of memory is the usual cause",
    }
    assert load(str(copy)).plan == data.plan


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_torn_record_is_refused(copy, run, keep):
    path = run / "record.json"
    path.write_bytes(path.read_bytes()[:keep].rstrip(b"}\n") if keep < 0 else path.read_bytes()[:keep])
    refused(path, "is not JSON", lambda: load(copy))


@pytest.mark.parametrize("content", [b"\0" * 500, b"\xff\xfe\x00", b"null", b"[]", b'"x"', b"3"])
def test_a_garbled_record_is_refused(copy, run, content):
    path = run / "record.json"
    path.write_bytes(content)
    refused(path, "is not JSON|is no record", lambda: load(copy))


def test_a_record_of_another_schema_says_which(copy, run):
    edit(run / "record.json", lambda record: record.update(schema_version=99))
    refused(run / "record.json", "schema version 99; this isoloss reads 1", lambda: load(copy))


@pytest.mark.parametrize(
    "key", ["run_id", "status", "counts", "evaluations", "files", "seed", "learning_rate"]
)
def test_a_missing_key_names_file_and_key(copy, run, key):
    edit(run / "record.json", lambda record: record.pop(key))
    refused(run / "record.json", f"^{run / 'record.json'}: the key '{key}' is missing", lambda: load(copy))


def test_a_key_inside_is_named_by_its_path(copy, run):
    edit(run / "record.json", lambda record: record["evaluations"][2].update(loss="low"))
    refused(run / "record.json", r"evaluations\.2\.loss: Input should be a valid number", lambda: load(copy))


def test_an_unknown_key_is_refused(copy, run):
    edit(run / "record.json", lambda record: record["counts"].update(parms=3))
    refused(run / "record.json", r"unknown key 'counts\.parms'; did you mean 'params'", lambda: load(copy))


def test_a_loss_that_is_not_a_number_is_refused(copy, run):
    edit(run / "record.json", lambda record: record["evaluations"][0].update(loss=float("nan")))
    refused(run / "record.json", "NaN is no JSON number", lambda: load(copy))


def test_a_record_in_the_folder_of_another_run_is_refused(ran, copy, run):
    shutil.copy(copy / "runs" / ran.ids["looped"] / "record.json", run / "record.json")
    refused(run / "record.json", f"is the record of {ran.ids['looped']}", lambda: read_record(run))


def test_a_run_without_record_is_not_finished(run):
    assert is_finished(run)
    (run / "record.json").unlink()
    assert not is_finished(run)
    (run / ".record.json.x.part").write_text("{}")
    assert not is_finished(run)


def test_a_record_of_before_diverged_was_judged_is_held_to_the_rule(copy, run):
    def status(name):
        return set(getattr(load(copy), name)().filter(run_id=run.name)["status"])

    assert status("table") == status("curves") == {"finished"}, "negative control"
    edit_without_positions(run / "record.json", lambda record: record["evaluations"][-1].update(loss=923.0))
    assert status("table") == status("curves") == {"diverged"}


@pytest.mark.parametrize(("name", "read"), [("positions.parquet", "positions"), ("curve.parquet", "curves")])
def test_a_changed_or_missing_table_is_refused(copy, run, name, read):
    path = run / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused(path, "does not match the sha256", lambda: getattr(load(copy), read)())
    path.unlink()
    refused(path, "is missing", lambda: getattr(load(copy), read)())


def test_a_table_that_the_record_does_not_name_is_refused(copy, run):
    edit_of_before(run / "record.json", lambda record: record["files"].clear())
    refused(run / "curve.parquet", "does not match the sha256", lambda: check(run))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["evaluations"][-1].update(loss=0.5),
        lambda record: record["settings"].update(seed=99),
        lambda record: record["files"].clear(),
        lambda record: record.update(status="diverged"),
    ],
)
def test_a_record_that_was_edited_is_not_believed(copy, run, change):
    edit(run / "record.json", change)
    refused(run / "record.json", "was edited after it was written", lambda: load(copy))


@pytest.mark.parametrize("digest", [None, ""])
@pytest.mark.parametrize("read", [load, lambda copy: check(next((copy / "runs").glob("lstm-*")))])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda record: None, None),
        (lambda record: record["evaluations"][3].update(loss=0.5), "updates, 0.5, is not that of positions"),
        (lambda record: record["evaluations"][-1].update(step=7), "is not that of positions.parquet, inf"),
        (lambda record: record["settings"].update(seed=99), "not those that its name is the hash of"),
    ],
)
def test_an_edit_is_seen_without_a_digest_too(copy, run, digest, read, change, what):
    edit(run / "record.json", lambda record: change(record) or record.update(digest=digest or ""))
    if digest is None:
        edit(run / "record.json", lambda record: record.pop("digest"))
    if what is None:
        read(copy)
    else:
        refused(run / "record.json", what, lambda: read(copy))


def test_control_a_record_written_anew_in_another_layout_is_believed(copy, run):
    edit(run / "record.json", lambda record: None)
    assert len(load(copy).records) == 6


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda settings: settings.pop("shape"), "settings"),
        (lambda settings: settings.update(shape=[]), "settings"),
        (lambda settings: settings["shape"].update(n_layer="<b>2"), "settings"),
        (lambda settings: settings.update(seed=10**30), "settings"),
    ],
)
def test_settings_that_no_table_holds_are_refused(copy, run, change, key):
    edit_of_before(run / "record.json", lambda record: change(record["settings"]))
    refused(run / "record.json", key, lambda: load(copy).table())


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("counts", "params", 10**30),
        ("counts", "params", -5),
        ("settings", "batch_size", 2**62),
        ("settings", "seed", -(10**30)),
    ],
)
def test_a_plan_of_numbers_that_no_table_holds_is_refused(copy, part, key, value):
    edit(copy / "study.json", lambda plan: plan["runs"][0][part].update({key: value}))
    refused(copy / "study.json", key, lambda: load(copy).table())


def test_an_evaluation_of_numbers_that_no_table_holds_is_refused(copy, run):
    edit_of_before(run / "record.json", lambda record: record["evaluations"][0].update(tokens=10**30))
    refused(run / "record.json", "tokens", lambda: load(copy).table())


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("counts", "params", 552_960),
        ("settings", "seed", 99),
        ("settings", "learning_rate", 0.5),
        ("settings", "family", "lost"),
    ],
)
def test_a_plan_that_was_edited_is_not_believed(copy, part, key, value):
    edit(copy / "study.json", lambda plan: plan["runs"][0][part].update({key: value}))
    refused(copy / "study.json", f"says {key} = {value!r} of", lambda: load(copy))


def test_control_another_spelling_of_a_label_is_no_edit_that_matters(copy):
    edit(copy / "study.json", lambda plan: plan["runs"][0].update(label="called otherwise"))
    assert len(load(copy).records) == 6


def test_a_record_cannot_name_a_file_outside_its_folder(copy, run):
    edit_of_before(run / "record.json", lambda record: record["files"].update({"../../study.json": "0"}))
    with pytest.raises(InputError, match="not a usable name"):
        check(run)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"study": 1, "runs": []}', '{"runs": [{"run_id": "a"}]}']
)
def test_a_damaged_plan_is_refused(copy, content):
    (copy / "study.json").write_text(content)
    refused(copy / "study.json", ".", lambda: load(copy))


@pytest.mark.parametrize("sizes", [[], [1000], [1000, 2000, 3000], [0, 1000], "all"])
def test_swept_sizes_that_are_no_two_sizes_are_refused(copy, sizes):
    edit(copy / "study.json", lambda plan: plan.update(swept={"lstm": sizes}))
    refused(copy / "study.json", r"swept\.lstm", lambda: load(copy))


def test_a_folder_without_study_is_refused(tmp_path):
    refused(tmp_path, "holds no study", lambda: load(tmp_path))
    refused(tmp_path / "nowhere", "holds no study", lambda: load(tmp_path / "nowhere"))


def test_a_plan_that_names_a_run_twice_is_refused_and_its_losses_not_counted_twice(copy):
    edit(copy / "study.json", lambda plan: plan["runs"].append(plan["runs"][0]))
    refused(copy / "study.json", "the run .* stands here twice", lambda: load(copy))


def test_a_plan_cannot_point_out_of_its_folder(copy):
    edit(copy / "study.json", lambda plan: plan["runs"][0].update(run_id="../../etc"))
    with pytest.raises(InputError, match="not a usable name"):
        load(copy)


def test_a_linked_run_folder_is_refused(copy, run, tmp_path):
    run.rename(tmp_path / "elsewhere")
    run.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="symbolic link"):
        run_folder(copy, run.name)
    with pytest.raises(InputError, match="symbolic link"):
        load(copy)


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_failure_without_reason_is_refused(ran, copy, content):
    path = copy / "runs" / ran.ids["my-broken"] / "failure.json"
    path.write_text(content)
    refused(path, "is not JSON|gives no reason", lambda: load(copy))


# What the numbers say


def test_position_sums_give_the_losses_of_the_record(ran):
    data = load(ran.folder)
    positions = data.positions()
    checked = 0
    for record in data.records:
        for evaluation in record.evaluations:
            measured = positions.filter(
                (pl.col("run_id") == record.run_id)
                & (pl.col("step") == evaluation.step)
                & (pl.col("cooled") == evaluation.cooled)
            )
            expected = {f"exit_{n}": loss for n, loss in enumerate(evaluation.exits, start=1)}
            if len(evaluation.exits) > 1:
                expected |= {
                    "expected": evaluation.expected,
                    "entropy": evaluation.entropy,
                    "total": evaluation.total,
                }
            assert set(measured["part"]) == set(expected)
            for part, loss in expected.items():
                rows = measured.filter(pl.col("part") == part)
                assert rows["position"].to_list() == list(range(1, 17))
                assert set(rows["count"]) == {evaluation.windows}
                assert rows["sum"].sum() / rows["count"].sum() == pytest.approx(loss, rel=1e-12)
                mean, square = rows["sum"] / rows["count"], rows["sumsq"] / rows["count"]
                assert np.all(square.to_numpy() >= mean.to_numpy() ** 2 * (1 - 1e-12))
                checked += 1
            assert evaluation.loss == evaluation.exits[-1]
    assert checked > 40


def test_the_curve_has_each_update_once(ran):
    data = load(ran.folder)
    for record in data.records:
        curve = data.curves().filter(pl.col("run_id") == record.run_id)
        assert len(curve) == record.steps
        assert curve.select("branch", "step").is_unique().all()
        assert curve["total"].is_finite().all()


def test_a_study_without_records_gives_empty_tables_of_the_same_columns(copy):
    whole = load(copy)
    positions, curves = whole.positions().columns, whole.curves().columns
    shutil.rmtree(copy / "runs")
    data = load(copy)
    assert data.records == []
    assert data.positions().is_empty()
    assert data.positions().columns == positions
    assert set(data.curves().columns) <= set(curves)
    assert {"branch", "total"} <= set(data.curves().columns)
    assert data.table()["status"].to_list() == ["running"] * 8


def test_write_parquet_returns_the_sha256_of_what_it_wrote(tmp_path):
    from isoloss.records.store import write_parquet

    table = pl.DataFrame({"x": [1.5, 2.5]})
    assert write_parquet(tmp_path / "t.parquet", table) == files.sha256(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(table)
