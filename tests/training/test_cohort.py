"""A member of a cohort is the member alone."""

from itertools import count

import polars as pl
import pytest

from isoloss import files
from isoloss.training import loop
from isoloss.training.loop import train
from isoloss.training.step import train_step
from isoloss.training.task import Task

FAMILIES = ["transformer", "lstm", "looped"]


def alone(task, number):
    return Task(task.study, (task.members[number],), task.corpus, task.tokens, task.execution)


def losses_of(member):
    curve = pl.read_parquet(member.folder / "curve.parquet")
    record = files.read_json(member.folder / "record.json")
    return curve["total"].to_list(), [e["loss"] for e in record["evaluations"]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_member_equals_itself_alone(make_task, family, dropout):
    shape = {"dropout": dropout}
    together = make_task(family, seeds=(0, 1), rates=(0.003, 0.03), shape=shape, folder="together")
    assert train(together)
    separate = make_task(family, seeds=(0, 1), rates=(0.003, 0.03), shape=shape, folder="separate")
    for number, member in enumerate(together.members):
        assert train(alone(separate, number))
        curve, evaluations = losses_of(member)
        curve_alone, evaluations_alone = losses_of(separate.members[number])
        assert curve == pytest.approx(curve_alone, abs=2e-4)
        assert evaluations == pytest.approx(evaluations_alone, abs=2e-4)


def test_control_members_differ_from_each_other(make_task):
    task = make_task("transformer", seeds=(0, 1), rates=(0.003, 0.03))
    assert train(task)
    ends = [losses_of(member)[1][-1] for member in task.members]
    assert len({round(end, 3) for end in ends}) == 4


@pytest.mark.parametrize("family", ["transformer", "looped"])
def test_a_diverging_member_leaves_the_others_alone(make_task, family, monkeypatch):
    calm = make_task(family, rates=(0.01,), folder="calm")
    assert train(calm)
    mixed = make_task(family, rates=(0.01, 9.9), folder="mixed")
    # No clipping to speak of, and a rate that no model survives.
    wild = mixed.members[1]
    poison(monkeypatch, 1)
    assert train(mixed)
    assert losses_of(mixed.members[0])[0] == pytest.approx(losses_of(calm.members[0])[0], abs=2e-4)
    record = files.read_json(wild.folder / "record.json")
    assert record["status"] == "diverged"
    assert record["diverged_step"] == 12
    assert record["evaluations"], "what was measured before it diverged stays"
    curve = pl.read_parquet(wild.folder / "curve.parquet")
    assert len(curve) == 12
    assert curve["total"].is_finite().all()


def poison(monkeypatch, number):
    """After 12 updates, make one member's weights infinite, whatever its rate did."""
    update = count(1)

    def poisoned_step(model, *arguments):
        losses_and_norms = train_step(model, *arguments)
        if next(update) == 12:
            next(iter(model.parameters())).data[number] = float("inf")
        return losses_and_norms

    monkeypatch.setattr(loop, "train_step", poisoned_step)


def test_a_run_alone_that_diverges_is_recorded_with_its_step(make_task, monkeypatch):
    task = make_task("lstm")
    poison(monkeypatch, slice(None))
    assert train(task)
    record = files.read_json(task.lead.folder / "record.json")
    assert (record["status"], record["diverged_step"]) == ("diverged", 12)
    assert "update 12" in record["reason"]
    assert all(e["step"] <= 12 for e in record["evaluations"])
