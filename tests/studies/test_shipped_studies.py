"""The studies that are shipped: each scale can be planned, fits its time and has what its question needs."""

import pytest

from isoloss.models import shape_of
from isoloss.studies import estimate, plan, spec
from isoloss.studies.estimate import MachineRate


@pytest.mark.parametrize(("study", "name"), [(s, n) for s in spec.shipped() for n in spec.read(s).scale])
def test_every_shipped_scale_can_be_planned(study, name):
    runs = plan.plan(spec.scale_of(spec.read(study), name), gpu=name != "mini")
    assert len(runs) > 10
    assert {run.settings.family for run in runs} <= {"transformer", "lstm", "looped"}
    assert all(run.seconds > 0 for run in runs)


MACHINE = MachineRate(98e9, 100, "two cores of a rented server")


@pytest.mark.parametrize("study", ["architectures", "context", "looped", "shape"])
@pytest.mark.parametrize(("name", "minutes"), [("mini", 8), ("evening", 180)])
def test_a_study_fits_its_time_on_two_cores(study, name, minutes, monkeypatch):
    monkeypatch.setattr(estimate, "machine_rate", lambda gpu: MACHINE)
    runs = plan.plan(spec.scale_of(spec.read(study), name), gpu=False)
    assert sum(run.seconds for run in runs) / 2 < 60 * minutes


@pytest.mark.parametrize("name", spec.read("context").scale)
def test_the_context_study_has_sizes_of_both_contexts(name):
    runs = plan.plan(spec.scale_of(spec.read("context"), name), gpu=False)
    sizes = {run.settings.context: set() for run in runs}
    for run in runs:
        sizes[run.settings.context].add(run.counts.params)
    assert min(sizes) == 8
    short, long = (sizes[context] for context in sorted(sizes))
    assert short <= long
    assert len(short) >= 4
    assert len({run.settings.batch_tokens for run in runs}) == 1
    assert len({run.settings.tokens for run in runs}) == 1


@pytest.mark.parametrize("name", spec.read("looped").scale)
def test_the_looped_study_has_a_grid_and_loops_at_equal_depth(name):
    runs = plan.plan(spec.scale_of(spec.read("looped"), name), gpu=False)
    shapes = [shape_of("looped", run.settings.shape) for run in runs]
    grid = {(shape.recurrence, shape.d_model) for shape in shapes if shape.exits == "every"}
    widths = {width for _, width in grid}
    assert grid == {(loops, width) for loops in (1, 2, 4, 8) for width in widths}
    sizes = [run.counts.params for run, shape in zip(runs, shapes, strict=True) if shape.exits == "every"]
    assert len(widths) >= 4
    assert max(sizes) > 10 * min(sizes)
    deep = [shape for shape in shapes if shape.exits == "last"]
    assert len({shape.executed_layers for shape in deep}) == 1
    loops = {shape.recurrence for shape in deep}
    assert {1, 2, 4} <= loops
    assert {(s.recurrence, s.d_model) for s in deep} == {(r, s.d_model) for r in loops for s in deep}
