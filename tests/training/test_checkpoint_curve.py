"""The curve of a cohort under way, read without torch from what training saved."""

import itertools

import numpy as np
import polars as pl

from isoloss.studies import checkpoint_curve
from isoloss.training import loop
from isoloss.training.settings import Execution


def test_it_is_what_the_record_says_later(make_task):
    task = make_task("transformer", seeds=(0, 1), folder="cut", execution=Execution(checkpoint_steps=10))
    made = itertools.count(1)
    assert not loop.train(task, should_stop=lambda: next(made) >= 25)
    curve = checkpoint_curve.newest(task.lead.folder)
    assert curve.checkpoint == "update-000000025"
    assert curve.run_ids == tuple(member.run_id for member in task.members)
    assert checkpoint_curve.newest(task.lead.folder, curve.checkpoint) is None
    assert checkpoint_curve.newest(task.members[1].folder) is None
    assert loop.train(task)
    assert checkpoint_curve.newest(task.lead.folder) is None
    for member, total_U in zip(task.members, curve.total_UK.T, strict=True):
        recorded = pl.read_parquet(member.folder / "curve.parquet")["total"].to_numpy()
        assert np.array_equal(total_U[:25], recorded[:25])
        assert np.isnan(total_U[25:]).all()
