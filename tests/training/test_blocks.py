"""Updates in blocks, as on a GPU, are the updates one by one; a graph holds what is the same each time."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isoloss.records.store import read_record
from isoloss.training import blocks, loop
from isoloss.training.blocks import Blocks, Captured, captures, text_on, unsigned
from isoloss.training.device import Device
from isoloss.training.loop import train
from isoloss.training.schedule import Segment
from isoloss.training.settings import Execution
from isoloss.training.setup import set_up


@pytest.fixture
def in_blocks(monkeypatch):
    """Train in blocks on the CPU, which are long at once."""
    made = {}

    def update(setup, state, segment):
        return made.setdefault(id(state), Blocks(setup, state))(segment)

    monkeypatch.setattr(loop, "single_update", update)
    monkeypatch.setattr(blocks, "BLOCK_SECONDS", 60.0)
    return made


def curve(member):
    return pl.read_parquet(member.folder / "curve.parquet")["total"].to_numpy()


def made_one_by_one_and_in_blocks(make_task, request, *arguments, **options):
    plain = make_task(*arguments, **options, folder="plain")
    assert train(plain)
    request.getfixturevalue("in_blocks")
    blocked = make_task(*arguments, **options, folder="blocked")
    assert train(blocked)
    return plain, blocked


@pytest.mark.parametrize(
    ("family", "shape"), [("transformer", {"dropout": 0.2}), ("lstm", {}), ("lstm", {"carry": True})]
)
def test_blocks_make_the_same_updates(make_task, request, family, shape):
    pair = made_one_by_one_and_in_blocks(make_task, request, family, seeds=(0, 1), shape=shape)
    for plain, blocked in zip(*(task.members for task in pair), strict=True):
        # The rate is a float32 there.
        np.testing.assert_allclose(curve(blocked), curve(plain), rtol=2e-4)
        records = read_record(plain.folder), read_record(blocked.folder)
        steps = [[(e.step, e.cooled) for e in record.evaluations] for record in records]
        assert steps[0] == steps[1]
        assert records[0].steps == records[1].steps


def test_a_run_stopped_within_blocks_goes_on_bitwise(make_task, in_blocks):
    whole = make_task("transformer", folder="whole")
    assert train(whole)
    parts = make_task("transformer", folder="parts", execution=Execution(checkpoint_steps=5))
    seen = []
    assert not train(parts, report=seen.append, should_stop=lambda: seen[-1].done >= 13)
    assert 13 <= seen[-1].done < 40
    assert train(parts)
    np.testing.assert_array_equal(curve(parts.lead), curve(whole.lead))


def test_a_member_diverges_within_a_block_at_its_own_step(make_task, in_blocks, monkeypatch):
    calm = make_task("looped", folder="calm")
    assert train(calm)
    update = count(1)

    def poisoned_step(model, *arguments):
        losses_and_norms = step(model, *arguments)
        if next(update) == 13:  # within the block of steps 11 to 16
            next(iter(model.parameters())).data[1] = float("inf")
        return losses_and_norms

    step = blocks.train_step
    monkeypatch.setattr(blocks, "train_step", poisoned_step)
    mixed = make_task("looped", rates=(0.01, 0.02), folder="mixed")
    assert train(mixed)
    np.testing.assert_allclose(curve(mixed.lead), curve(calm.lead), atol=2e-4)
    records = [read_record(member.folder) for member in mixed.members]
    assert [(record.status, record.diverged_step) for record in records] == [
        ("finished", None),
        ("diverged", 13),
    ]
    assert len(curve(mixed.members[1])) == 13


class Reads(TorchDispatchMode):
    """Counts how often a number of a tensor is asked for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += "local_scalar_dense" in str(function)
        return function(*arguments, **(options or {}))


def test_no_number_is_read_within_a_block(make_task):
    setup = set_up(make_task("transformer", seeds=(0, 1)))
    state = setup.first_state()
    made, trunk = Blocks(setup, state), setup.segments[2]
    made.length, state.step = 8, 23
    with Reads() as reads:
        updates = list(made(trunk))
        assert reads.count == 0
        float(updates[0][0][0, 0])
    assert len(updates) == 8
    assert reads.count == 1, "control: this is what would be seen"


def test_a_block_ends_where_something_is_measured_saved_or_over(make_task):
    setup = set_up(make_task("transformer", execution=Execution(checkpoint_steps=5)))
    state = setup.first_state()
    made = Blocks(setup, state)
    made.length = 100
    ends = []
    while state.step < 16:
        state.step = state.done = made.steps(Segment(0, 0, 16)).stop
        ends.append(state.step)
    assert ends == [1, 2, 3, 4, 5, 6, 8, 10, 11, 15, 16]
    assert made.steps(Segment(1, 16, 20)) == range(16, 20)
    made.length = 2
    assert made.steps(Segment(1, 16, 20)) == range(16, 18)


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("most", [0, 2**30])
def test_windows_cut_there_are_the_batches_of_a_cpu(make_task, monkeypatch, carry, most):
    monkeypatch.setattr(blocks, "TEXT_BYTES", most)
    setup = set_up(make_task("lstm", seeds=(0, 3), shape={"carry": carry}))
    made = Blocks(setup, setup.first_state())
    assert (made.text is None) == (most == 0)
    x_KBT, y_KBT = setup.batch(7)
    ids_KBt = made.cut(torch.from_numpy(made.windows(7)))
    assert torch.equal(ids_KBt[..., :-1], x_KBT)
    assert torch.equal(ids_KBt[..., 1:], y_KBT)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_tokens_beyond_the_signed_range_come_back(kind):
    ids = np.array([0, 1, np.iinfo(kind).max // 2 + 1, np.iinfo(kind).max], dtype=kind)
    text = text_on(torch.device("cpu"), ids)
    assert text.nbytes == ids.nbytes
    assert unsigned(text[torch.arange(4)]).tolist() == ids.tolist()


def test_a_gpu_makes_blocks_and_a_processor_single_updates(make_task, monkeypatch):
    monkeypatch.setattr(loop, "Blocks", lambda setup, state: "blocks")
    setup = set_up(make_task("transformer"))
    on_gpu = replace(setup, device=Device(torch.device("cuda"), True))
    assert loop.update_of(on_gpu, setup.first_state()) == "blocks"
    state = setup.first_state()
    assert len(loop.update_of(setup, state)(setup.segments[0])) == 1


def test_what_is_captured_is_small_shipped_and_the_same_each_time(make_task, monkeypatch):
    def on_gpu(family, **shape):
        setup = set_up(make_task(family, shape=shape))
        return captures(replace(setup, device=Device(torch.device("cuda"), True)), setup.first_state())

    assert on_gpu("transformer")
    assert on_gpu("lstm")
    assert not on_gpu("transformer", dropout=0.1)
    assert not on_gpu("lstm", carry=True)
    setup = set_up(make_task("transformer"))
    assert not captures(setup, setup.first_state()), "a CPU has no graphs"
    monkeypatch.setattr(blocks, "GRAPH_PARAMS", 100)
    assert not on_gpu("transformer")


def test_a_capture_makes_no_update_of_its_own(monkeypatch):
    log = []

    class Stream:
        def wait_stream(self, other):
            log.append("wait")

    class Graph:
        def replay(self):
            log.append("replay")

    @contextmanager
    def inside(what):
        log.append(type(what).__name__)
        yield

    for name, value in {
        "Stream": Stream,
        "current_stream": Stream,
        "stream": inside,
        "CUDAGraph": Graph,
        "graph": inside,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    update = Captured(lambda: log.append("call"))
    for _ in range(blocks.WARMUPS + 2):
        update()
    aside = ["wait", "Stream", "call", "wait"]
    assert log == aside * blocks.WARMUPS + ["Graph", "call", "replay", "replay"]
