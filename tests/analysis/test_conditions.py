"""How runs were trained is said beside their figures: alike or not, swept or not, used or left out."""

from dataclasses import replace

import pytest
import story

from isoloss.analysis import by_params
from isoloss.analysis.conditions import conditions, left_out
from isoloss.analysis.findings import findings
from isoloss.errors import Refusal
from isoloss.records import Record

BOTH = ("transformer", "lstm")


@pytest.fixture(scope="module")
def study(told):
    return told(story.FEW)


def changed(study, which, **environment):
    """The study with another environment for the runs that ``which`` picks."""
    records = [
        r.model_copy(update={"environment": r.environment.model_copy(update=environment)}) if which(r) else r
        for r in study.records
    ]
    return replace(study, records=records)


def with_rates(study, **rates):
    spec = {"models": [{"family": family, "learning_rates": values} for family, values in rates.items()]}
    return replace(study, plan={**study.plan, "spec": spec})


def test_runs_of_one_precision_say_it_once(study):
    assert conditions(study, BOTH) == ("All runs here were trained in float32.",)
    compiled = changed(study, lambda record: True, compiled=True)
    assert conditions(compiled, BOTH) == conditions(study, BOTH)


def test_runs_compiled_beside_others_are_named_by_seed_and_their_precision_is_the_same(study):
    mixed = changed(study, lambda run: (run.label, run.seed) == ("transformer 2x200", 1), compiled=True)
    assert conditions(mixed, BOTH) == (
        "All runs here were trained in float32.",
        "Compiled, so rounded otherwise: transformer 2x200 (seed 1).",
    )
    assert conditions(mixed, ["lstm"]) == conditions(study, ["lstm"])


def test_precisions_that_differ_are_named_where_both_are_drawn_and_nowhere_else(study):
    mixed = changed(study, lambda run: run.label == "transformer 2x200", dtype="bfloat16 autocast")
    (note,) = conditions(mixed, BOTH)
    assert note.startswith("Precision differs")
    assert "transformer 2x200 in bfloat16 autocast" in note
    assert note.endswith("the rest in float32.")
    assert conditions(mixed, ["lstm"]) == ("All runs here were trained in float32.",)
    assert conditions(mixed, ["looped"]) == ()


def test_rates_given_by_hand_are_named_and_swept_ones_are_not(study):
    assert len(conditions(with_rates(study, lstm=[0.004, 0.008]), BOTH)) == 1, "swept by the study itself"
    assert len(conditions(with_rates(study, lstm=None), BOTH)) == 1, "from the recipe's sweep"
    by_hand = with_rates(study, lstm=[0.004])
    note = (
        "The learning rate of lstm 1x36, lstm 1x72, lstm 1x140 and lstm 1x340 was given by hand, not swept."
    )
    assert conditions(by_hand, BOTH)[1:] == (note,)
    assert conditions(by_hand, ["lstm"])[1:] == (
        "The learning rate of all runs here was given by hand, not swept.",
    )
    assert conditions(by_hand, ["transformer"]) == conditions(study, ["transformer"])


def test_sizes_beyond_the_sweep_are_named_with_the_sizes_that_were_tried(study):
    wide = replace(study, plan={**study.plan, "swept": {"transformer": (1, 10**9), "lstm": (1, 10**9)}})
    assert conditions(wide, BOTH) == conditions(study, BOTH)
    swept = {**study.plan, "swept": {"transformer": (900, 10_000), "lstm": (1, 10**9)}}
    named = conditions(replace(study, plan=swept), BOTH)[1:]
    beyond = "transformer 2x40, transformer 2x64, transformer 2x112 and transformer 2x200"
    assert named == (
        f"The learning rate of {beyond} follows from the recipe's sweep of other sizes (N = 900 to 10K).",
    )
    assert conditions(replace(study, plan=swept), ["lstm"]) == conditions(study, ["lstm"])
    by_hand = with_rates(replace(study, plan=swept), transformer=[0.004])
    assert len(conditions(by_hand, ["transformer"])) == 2, "by hand, and not said twice"


def diverged(study, which):
    reason = "its loss ends at 923 nats"
    records = [
        r.model_copy(update={"status": "diverged", "reason": reason}) if which(r) else r
        for r in study.records
    ]
    return replace(study, records=records)


def test_runs_that_diverged_are_named_and_enter_nothing(study):
    assert left_out(study) == []
    assert "left-out" not in [finding.key for finding in findings(study)], "negative control"
    wild = diverged(study, lambda record: record.label == "lstm 1x72")
    assert left_out(wild)[0] == "lstm 1x72, seed 0: its loss ends at 923 nats."
    last = findings(wild)[-1]
    assert last.sentence == "2 of 18 runs that ended diverged; no figure, law or finding has them."
    assert last.caveats == tuple(left_out(wild))
    assert "lstm 1x72" not in by_params.measure(wild).points["label"]


def test_a_family_that_diverged_as_a_whole_is_compared_with_nothing(study):
    wild = diverged(study, lambda record: record.family == "lstm")
    assert isinstance(next(iter(by_params.measure(wild).pairs.values())), Refusal)
    assert [f.sentence.startswith("Not answered") for f in findings(wild)] == [True, True, True, False]


def test_runs_are_not_compared_with_one_another(study, monkeypatch):
    """Ten thousand of them would be, a hundred million times: nine tenths of a report's time, once."""
    notes = conditions(with_rates(study, lstm=[0.01]), BOTH)

    def compared(*_):
        raise AssertionError("a record was compared with another")

    monkeypatch.setattr(Record, "__eq__", compared)
    assert conditions(with_rates(study, lstm=[0.01]), BOTH) == notes
    with pytest.raises(AssertionError, match="was compared"):
        assert study.records[1] in study.records[:1]
