"""Compiling the step: only where it pays, noted in the record, and the same training to rounding."""

import shutil

import numpy as np
import polars as pl
import pytest

from isoloss.models import shape_of
from isoloss.records.store import read_record
from isoloss.training import compiling
from isoloss.training.loop import train
from isoloss.training.settings import Execution

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")


def settings_of(make_task, family="transformer", tokens=(1280, 2560)):
    settings = make_task(family, tokens=tokens).lead.settings
    return settings, shape_of(family, settings.shape)


@needs_compiler
def test_only_long_runs_of_stacked_families_are_compiled(make_task, monkeypatch):
    long = 64 * 10**7
    assert compiling.pays(*settings_of(make_task, tokens=(long,)), "cpu", 1)
    assert not compiling.pays(*settings_of(make_task), "cpu", 1)
    assert not compiling.pays(*settings_of(make_task, "lstm", (long,)), "cpu", 1)
    assert not compiling.pays(*settings_of(make_task, tokens=(long,)), "cuda", 1), "a GPU is done sooner"
    assert compiling.pays(*settings_of(make_task, tokens=(1000 * long,)), "cuda", 1)
    assert not compiling.pays(*settings_of(make_task, tokens=(1000 * long,)), "mps", 1)
    assert not compiling.pays(*settings_of(make_task, tokens=(2 * long,)), "cuda", 1)
    assert compiling.pays(*settings_of(make_task, tokens=(2 * long,)), "cuda", 64), "a cohort is so many runs"
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not compiling.pays(*settings_of(make_task, tokens=(long,)), "cpu", 1)


def curve(task, k=0):
    return pl.read_parquet(task.members[k].folder / "curve.parquet")["total"].to_numpy()


@needs_compiler
@pytest.mark.filterwarnings("ignore")  # the compiler's own, of its own parts
def test_a_compiled_cohort_trains_as_plainly_resumes_bitwise_and_says_so(make_task, monkeypatch):
    plain = make_task("transformer", seeds=(0, 1), folder="plain")
    train(plain)
    monkeypatch.setitem(compiling.ENOUGH_FLOPS, "cpu", 0.0)
    whole = make_task("transformer", seeds=(0, 1), folder="whole")
    train(whole)
    stopped = make_task(
        "transformer", seeds=(0, 1), folder="stopped", execution=Execution(checkpoint_steps=5)
    )
    seen = []
    assert not train(stopped, report=seen.append, should_stop=lambda: len(seen) == 13)
    assert train(stopped)
    for k in range(2):
        np.testing.assert_allclose(curve(whole, k), curve(plain, k), rtol=1e-4)
        np.testing.assert_array_equal(curve(stopped, k), curve(whole, k))
    assert read_record(whole.lead.folder).environment.compiled
    assert not read_record(plain.lead.folder).environment.compiled
