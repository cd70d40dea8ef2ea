"""What the command keeps of each run of a study: it must not grow with what runs say on their way."""

import gc
import tracemalloc

import pytest
from train_planned import train

from isoloss.studies import plan, spec
from isoloss.studies.engines.messages import Ended, Engine
from isoloss.training.task import Progress

MOST_BYTES = 10_000
FEW, MANY = 50, 150


@pytest.fixture(scope="module")
def study(tiny, study_text, tmp_path_factory):
    """``MANY`` seeds of one model."""
    head, models = study_text.split("[[scale.mini.models]]")[:2]
    seeds = f"seeds = {list(range(MANY))}"
    lines = [seeds if line.startswith("seeds") else line for line in models.splitlines()]
    file = tmp_path_factory.mktemp("many") / "many.toml"
    file.write_text("\n".join([head, "[[scale.mini.models]]", *lines]), "utf-8")
    return spec.read(str(file))


def bytes_a_run(study, engine, folder):
    """How Python's memory grows from ``FEW`` ended runs to ``MANY``, a run."""
    runs, held = plan.plan(spec.scale_of(study, "mini"), gpu=False), dict[int, int]()
    assert len(runs) == MANY

    def watched(tasks, stops):
        ended = 0
        for message in engine(tasks, stops):
            yield message
            ended += isinstance(message, Ended)
            if isinstance(message, Ended) and ended in (FEW, MANY):
                gc.collect()
                held[ended] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        train(study, study.scale["mini"], runs, folder, Engine(False, watched))
    finally:
        tracemalloc.stop()
    return (held[MANY] - held[FEW]) / (MANY - FEW)


def talkative(tasks, stops):
    """An engine whose runs say a hundred lines each and are then stopped."""
    for task in tasks:
        for done in range(100):
            yield Progress(task.lead.run_id, task.lead.label, done, 100, 100, 1.0, 1.0, 1, 0)
        yield Ended(task, "stopped")


def test_an_ended_run_keeps_little_memory(study, tmp_path):
    assert bytes_a_run(study, talkative, tmp_path / "out") < MOST_BYTES


def test_what_is_kept_of_each_run_is_seen(study, tmp_path):
    """The negative control: as much as is allowed, kept of each run."""
    kept = []

    def hoarding(tasks, stops):
        for message in talkative(tasks, stops):
            if isinstance(message, Ended):
                kept.append(bytes(MOST_BYTES))
            yield message

    assert bytes_a_run(study, hoarding, tmp_path / "out") > MOST_BYTES
