"""One run on two ranks is the run of one process, but for rounding; and the test can tell."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch
import two_ranks
from appended import read_lines
from safetensors.torch import load_file

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.models import build_cohort, family, shape_of
from isoloss.studies.engines import ranks as engine
from isoloss.training import distributed, loop
from isoloss.training.distributed import ALONE, Ranks
from isoloss.training.settings import Execution
from isoloss.training.setup import set_up

RUN = {"shape": {"n_layer": 2}, "tokens": (640, 1280)}
CLOSE = 1e-3
"""Nats: float32 sums in another order move a loss by 1e-6, other data by a tenth."""


@pytest.fixture(scope="module")
def pair(task_in, tmp_path_factory):
    """What two processes found, and where they trained; asked to stop from the beginning."""
    place = tmp_path_factory.mktemp("ranks")
    execution = Execution(device="cpu", ranks=2, micro_batches=4)
    task = task_in(place, "transformer", folder="ddp", execution=execution, **RUN)
    _, results = engine.launch(two_ranks.measure, task, lambda progress: None, lambda: True)
    return SimpleNamespace(results=results, ddp=task, sharded=two_ranks.sharded(task))


@pytest.fixture(scope="module")
def alone(task_in, tmp_path_factory):
    """The same run by one process, and one of another seed."""
    place = tmp_path_factory.mktemp("alone")
    tasks = [task_in(place, "transformer", seeds=(seed,), folder=f"{seed}", **RUN) for seed in (0, 1)]
    assert all(loop.train(task) for task in tasks)
    return tasks


def curve(task):
    return pl.read_parquet(task.lead.folder / "curve.parquet")["total"].to_numpy()


def events(task):
    return [(event["kind"], event["detail"]) for event in read_lines(task.lead.folder / "log.jsonl")]


@pytest.mark.parametrize("name", two_ranks.SHAPES)
def test_gradients_are_those_of_one_process(pair, name):
    differences = pair.results[name]
    control = "control: the same data twice"
    assert differences[control] > 0.01
    assert differences[f"loss, {control}"] > 1e-4
    assert differences["loss, DDP"] < 1e-12
    away = {method: share for method, share in differences.items() if method.startswith(("DDP", "FSDP2"))}
    assert len(away) == 6
    assert max(away.values()) < 1e-10


def test_a_run_by_ddp_is_that_of_one_process(pair, alone):
    assert (pair.results["stopped"], pair.results["ended"]) == (True, True)
    one, other = map(curve, alone)
    assert np.abs(curve(pair.ddp) - one).max() < CLOSE
    assert np.abs(other - one).max() > 10 * CLOSE
    assert events(pair.ddp) == [("started", "2 ranks, DDP"), ("resumed", "2 ranks, DDP"), ("finished", "")]
    record = files.read_json(pair.ddp.lead.folder / "record.json")
    assert record["environment"]["device_name"].startswith("2 x ")
    assert len(record["evaluations"]) == len(
        files.read_json(alone[0].lead.folder / "record.json")["evaluations"]
    )


def test_a_sharded_checkpoint_is_one_of_one_process_which_goes_on_from_it(pair, alone, task_in, tmp_path):
    assert pair.results["cut"]
    (saved,) = (pair.sharded.lead.folder / "checkpoints").iterdir()
    whole = task_in(tmp_path, "transformer", **RUN)
    made = iter(range(1, 10_000))
    assert not loop.train(whole, should_stop=lambda: next(made) >= two_ranks.CUT)
    (mine,) = (whole.lead.folder / "checkpoints").iterdir()
    theirs, ours = (load_file(place / "state.safetensors") for place in (saved, mine))
    assert {name: t.numel() for name, t in theirs.items()} == {name: t.numel() for name, t in ours.items()}
    assert any(name.startswith("trunk/") for name in ours)
    weights = [name for name in ours if name.startswith(("model.", "trunk/model."))]
    assert max(float((theirs[name] - ours[name]).abs().max()) for name in weights) < CLOSE
    assert loop.train(replace(pair.sharded, execution=Execution(device="cpu")))
    assert np.abs(curve(pair.sharded) - curve(alone[0])).max() < CLOSE
    assert events(pair.sharded)[:2] == [("started", "2 ranks, FSDP2"), ("resumed", "")]


def test_the_largest_model_of_a_paper_is_built_counted_and_divided(pair):
    paper = pair.results["paper"]
    assert paper["built"] == paper["formula"] > 1.4e9
    assert paper["mine"] == pytest.approx(paper["built"] / 2, abs=1), "the gate's bias is one number"


# In one process


def test_ranks_divide_a_batch_and_miss_nothing():
    rows = np.arange(12)
    parts = [rows[Ranks(number, 3).part(12)] for number in range(3)]
    assert np.concatenate(parts).tolist() == rows.tolist()
    assert {len(part) for part in parts} == {4}
    assert rows[ALONE.part(12)].tolist() == rows.tolist()


def test_blocks_are_the_layers_of_each_family():
    names = {name: ["Block", "Block"] for name in ("transformer", "looped")} | {"lstm": ["LSTM", "LSTM"]}
    for name, expected in names.items():
        values = {"n_layer": 2, "d_model": 8} | ({} if name == "lstm" else {"n_head": 2})
        shape = shape_of(name, values | ({"recurrence": 2} if name == "looped" else {}))
        model = build_cohort(family(name), shape, 40, 8, [0])
        assert [type(block).__name__ for block in distributed.blocks(model)] == expected


@pytest.mark.parametrize(("every", "calls"), [("block", 2 * (2 * 3)), ("loop", 2 * (2 * 3))])
def test_what_is_checkpointed_is_computed_twice_with_the_same_gradients(every, calls):
    shape = shape_of("looped", {"n_layer": 2, "d_model": 8, "n_head": 2, "recurrence": 3})
    x = torch.arange(8).view(1, 1, 8)
    gradients, made = [], []
    for checkpointed in (False, True):
        model = build_cohort(family("looped"), shape, 40, 8, [0])
        if checkpointed:
            for block in model.stack:
                block.attention.register_forward_hook(lambda *_: made.append(1))
            distributed.checkpoint_activations(model, every)
        two_ranks.forward(model, x, x).total.mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert len(made) == calls
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize(
    ("family", "shape", "execution", "what"),
    [
        ("lstm", {"carry": True}, {"ranks": 2}, "a carried state cannot be kept over ranks"),
        ("lstm", {"dropout": 0.1}, {"ranks": 2}, "ranks would all drop out the same"),
        ("lstm", {"dropout": 0.1}, {"activation_checkpointing": "block"}, "would drop out anew"),
        ("lstm", {}, {"ranks": 3}, "3 ranks cannot divide 4 sequences"),
        ("lstm", {}, {"shard": True}, "one rank cannot share a model"),
    ],
)
def test_what_ranks_cannot_do_is_refused_before_training(make_task, family, shape, execution, what):
    with pytest.raises(InputError, match=what):
        set_up(make_task(family, shape=shape, execution=Execution(**execution)))


def test_members_of_a_cohort_cannot_share_ranks(make_task):
    with pytest.raises(InputError, match="2 members cannot share ranks"):
        set_up(make_task("lstm", seeds=(0, 1), execution=Execution(ranks=2)))


def test_one_process_is_not_taken_for_two(make_task):
    with pytest.raises(RunError, match="this is one of 1 processes, not of 2"):
        set_up(make_task("lstm", execution=Execution(ranks=2)))


def test_ranks_need_what_they_talk_by_and_a_gpu_each(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda:1")
    distributed.check_ranks(2, cpu)
    with pytest.raises(InputError, match="several ranks do not run on mps"):
        distributed.check_ranks(2, torch.device("mps"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    distributed.check_ranks(3, gpu)
    with pytest.raises(InputError, match="there are 3 GPUs for them"):
        distributed.check_ranks(4, gpu)
    for backend, device in (("nccl", gpu), ("gloo", cpu)):
        monkeypatch.setattr(torch.distributed, f"is_{backend}_available", lambda: False)
        with pytest.raises(InputError, match=f"this PyTorch has no {backend}"):
            distributed.check_ranks(2, device)
        distributed.check_ranks(1, device)
