"""A study whose runs take two processes each: one that dies, the record in the usual place, what is asked."""

import multiprocessing
import os
import signal
from contextlib import ExitStack
from functools import partial

import polars as pl
import pytest
import torch
import train_planned

from isoloss import cpu
from isoloss.errors import InputError
from isoloss.records import load
from isoloss.studies import plan, runner, spec
from isoloss.studies.engines import worker
from isoloss.studies.engines.messages import Ended, Engine
from isoloss.studies.launch import engine_of
from isoloss.training.settings import Execution

SMALL = (
    'corpus="tiny"',
    "vocabulary=300",
    "context=16",
    "batch_size=8",
    "micro_batches=2",
    "tokens=[15360]",
    "evaluation={windows=8, final_windows=8, trace_windows=4}",
    "models=[{family='looped', shape={n_layer=2, n_head=2, recurrence=2}, shapes=[{d_model=16}],"
    " learning_rates=[0.01]}]",
)
"""The `paper` scale of loops, shrunk: 120 updates."""


def shrunk(*changes):
    """The study, its scale and its plan."""
    study = spec.read("looped")
    scale = spec.scale_of(study, "paper", [*SMALL, "device='cpu'", *changes])
    return study, scale, plan.plan(scale, gpu=False)


def train(planned, out, execution, should_stop=lambda: False):
    """Train in this process, which starts the ranks itself."""
    study, scale, runs = planned

    def here(tasks, stops):
        for task in tasks:
            try:
                with ExitStack() as claims:
                    yield Ended(task, *worker.train_claimed(task, claims, lambda _: None, should_stop))
            except Exception as error:
                yield Ended(task, *worker.fail(task, error))

    engine = Engine(gpu=False, run=here)
    return train_planned.train(study, scale, runs, out, engine, execution=execution)


@pytest.fixture(autouse=True)
def process(monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
    yield
    torch.set_num_threads(threads)


def losses(out):
    (place,) = out.glob("runs/*")
    return pl.read_parquet(place / "curve.parquet")["total"]


def test_a_rank_that_dies_fails_its_run_which_goes_on_by_ranks_or_by_one_process(tiny, tmp_path):
    planned = shrunk("ranks=2", "shard=true", "activation_checkpointing=loop")
    one = Execution(device="cpu", checkpoint_steps=5)
    assert train(planned, tmp_path / "alone", one).ended == 1
    made = iter(range(1, 10_000))
    out = tmp_path / "out"
    assert train(planned, out, one, lambda: next(made) >= 5).stopped is False
    (place,) = out.glob("runs/*")
    assert [saved.name for saved in (place / "checkpoints").iterdir()] == ["update-000000005"]

    killed = []

    def kill():
        """The second rank, once both have gone on from the one process's checkpoint and left one."""
        saved = [path.name for path in (place / "checkpoints").glob("update-*")]
        if not killed and max(saved) > "update-000000005":
            ranks = [child for child in multiprocessing.active_children() if "Spawn" in child.name]
            killed.append(max(ranks, key=lambda rank: int(rank.name.rpartition("-")[2])))
            os.kill(killed[0].pid, signal.SIGKILL)
        return False

    several = planned[1].execution.model_copy(update={"checkpoint_steps": 5})
    outcome = train(planned, out, several, kill)
    reason = "rank 1 of 2 ended with SIGKILL; out of memory is the usual cause"
    assert list(outcome.failed.values()) == [
        f"{reason}\n  To mend it: run the same command again: it goes on from its newest checkpoint"
    ]
    assert train(planned, out, one).ended == 1
    events = [(event.kind, event.detail) for event in load(out).records[0].events]
    begun = [("started", ""), ("resumed", "2 ranks, FSDP2"), ("resumed", "")]
    assert [event for event in events if event[0] in ("started", "resumed")] == begun
    assert ("environment changed", f"device_name: 2 x {cpu.name()} -> {cpu.name()}") in events
    assert (losses(out) - losses(tmp_path / "alone")).abs().max() < 1e-3


# Before anything starts


def test_a_study_says_what_its_runs_are_computed_with_and_none_is_another_run(tiny):
    study, scale, runs = shrunk("ranks=2", "shard=true", "activation_checkpointing=loop")
    execution = scale.execution
    assert (execution.ranks, execution.shard, execution.activation_checkpointing) == (2, True, "loop")
    assert [run.run_id for run in runs] == [run.run_id for run in shrunk()[2]]
    assert study.scale["paper"].execution == Execution(micro_batches=128)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (["ranks=3"], "3 ranks cannot divide 8 sequences"),
        (["shard=true"], "one rank cannot share a model"),
        (["ranks=0"], "greater than 0"),
        (["activation_checkpointing=layer"], "'none', 'block' or 'loop'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_plan(tiny, changes, what):
    with pytest.raises(InputError, match=what):
        shrunk(*changes)


def test_ranks_of_a_run_get_devices_of_their_own(monkeypatch):
    monkeypatch.setattr(runner, "cores", lambda: 5)
    assert runner.devices("cpu", None, 2) == ["cpu"] * 2
    assert runner.devices("cpu", None, 8) == ["cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    assert runner.devices("auto", None, 4) == ["cuda:0", "cuda:4"]
    assert runner.devices("cuda", 3, 4) == ["cuda:0", "cuda:4", "cuda:0"]
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    with pytest.raises(InputError, match="there are 8 GPUs for them"):
        runner.local_engine("auto", None, 16)


@pytest.mark.parametrize("engine", ["slurm", "ray"])
def test_a_job_asks_for_a_gpu_and_a_core_a_rank(engine):
    scale = spec.scale_of(spec.read("looped"), "paper", ["ranks=8"])
    for settings, expected in (([], (8, 8)), (["cpus=16", "gpus=0"], (16, 0))):
        job = engine_of(engine, settings, scale, None)
        assert (job.run.args[0].cpus, job.run.args[0].gpus) == expected


def test_models_that_share_ranks_are_not_stacked(tiny, monkeypatch):
    runs = shrunk("seeds=[0, 1]")[2]
    monkeypatch.setattr(runner, "members_at_once", lambda run, sharers: 8)

    def groups(ranks):
        engine, execution = Engine(gpu=True, run=None), Execution(ranks=ranks)
        how = {"engine": engine, "execution": execution, "task_of": None, "say": print}
        return [len(group) for group in runner.groups_of(runs, partial(runner.most_members, **how))]

    assert groups(1) == [2]
    assert groups(2) == [1, 1]
