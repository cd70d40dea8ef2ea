"""Out of memory: again with smaller micro-batches, to the same numbers, and said in the record."""

import numpy as np
import polars as pl
import pytest
import torch

from isoloss.errors import RunError
from isoloss.records.store import read_record
from isoloss.training import loop
from isoloss.training.loop import train
from isoloss.training.settings import Execution
from isoloss.training.step import train_step


@pytest.fixture
def small_device(monkeypatch):
    """small_device(n): as if no more than n sequences fitted into memory at once."""

    def limit(sequences):
        def step(model, optimizer, x_KBT, *others):
            micro_batches = others[-1].micro_batches
            if x_KBT.shape[1] / micro_batches > sequences:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return train_step(model, optimizer, x_KBT, *others)

        monkeypatch.setattr(loop, "train_step", step)

    return limit


def curve(task):
    return pl.read_parquet(task.lead.folder / "curve.parquet")["total"].to_numpy()


def test_it_begins_again_with_what_fits_to_the_same_numbers(make_task, small_device):
    plain, quarters = (
        make_task("transformer", folder=str(parts), execution=Execution(micro_batches=parts))
        for parts in (1, 4)
    )
    assert train(plain)
    assert train(quarters)
    small_device(1)
    short = make_task("transformer", folder="short")
    assert train(short)
    np.testing.assert_array_equal(curve(short), curve(quarters))
    np.testing.assert_allclose(curve(short), curve(plain), rtol=1e-3)
    events = [(event.kind, event.detail) for event in read_record(short.lead.folder).events]
    assert events[1:3] == [
        ("out of memory", "micro-batches 1 -> 2"),
        ("out of memory", "micro-batches 2 -> 4"),
    ]
    assert "out of memory" not in {event.kind for event in read_record(plain.lead.folder).events}


def test_it_goes_on_from_its_checkpoint(make_task, small_device):
    task = make_task("lstm", execution=Execution(checkpoint_steps=5))
    seen = []
    assert not train(task, report=seen.append, should_stop=lambda: len(seen) == 12)
    small_device(2)
    assert train(task, report=seen.append)
    assert seen[12].done == 13
    details = [event.detail for event in read_record(task.lead.folder).events]
    assert "micro-batches 1 -> 2" in details


@pytest.mark.parametrize("shape", [{}, {"carry": True}])
def test_a_model_of_which_nothing_smaller_fits_says_so(make_task, small_device, shape):
    small_device(0)
    with pytest.raises(RunError, match="memory is too small"):
        train(make_task("lstm", shape=shape))
