"""The record's schema takes what a run writes and nothing else."""

import json

import pytest
from pydantic import ValidationError

from isoloss import files
from isoloss.records.schema import Evaluation, Record, StudyPlan

EVALUATION = {
    "step": 10,
    "tokens": 640,
    "cooled": True,
    "windows": 4,
    "loss": 5.0,
    "loss_se": 0.1,
    "bits_per_byte": 2.0,
    "exits": [5.0],
    "expected": 5.0,
    "entropy": 0.0,
    "total": 5.0,
}


def test_an_evaluation_is_read():
    assert Evaluation.model_validate(EVALUATION).loss == 5.0


@pytest.mark.parametrize(
    "change",
    [
        {"loss": float("nan")},
        {"loss": float("inf")},
        {"loss": None},
        {"loss": "5.0"},
        {"exits": [float("nan")]},
        {"step": -1},
        {"step": 1.5},
        {"windows": 0},
        {"cooled": 1},
        {"los": 5.0},
    ],
)
def test_control_a_wrong_value_or_key_is_refused(change):
    with pytest.raises(ValidationError):
        Evaluation.model_validate(EVALUATION | change)


@pytest.mark.parametrize("key", EVALUATION)
def test_a_missing_key_is_an_error_never_a_zero(key):
    with pytest.raises(ValidationError, match=key):
        Evaluation.model_validate({name: value for name, value in EVALUATION.items() if name != key})


def test_a_real_record_comes_back_whole(ran):
    path = ran.folder / "runs" / ran.ids["looped"] / "record.json"
    written = files.read_json(path)
    assert Record.model_validate(written).model_dump(mode="json") == written
    assert set(written) == set(Record.model_fields), "every field stands in the file, none by default"


def test_a_record_is_strict_json(ran):
    def refuse(constant):
        raise AssertionError(constant)

    for run_id in ran.ids.values():
        path = ran.folder / "runs" / run_id / "record.json"
        if path.exists():
            json.loads(path.read_text("utf-8"), parse_constant=refuse)


def test_a_real_plan_is_read(ran):
    written = files.read_json(ran.folder / "study.json")
    assert StudyPlan.model_validate(written).study == "tiny-study"
    with pytest.raises(ValidationError, match="extra"):
        StudyPlan.model_validate(written | {"extra": 1})
