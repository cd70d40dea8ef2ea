"""What is refused before the first update, and what stays fixed after."""

from dataclasses import replace

import pytest
import torch

from isoloss.errors import InputError
from isoloss.training import setup
from isoloss.training.device import Device
from isoloss.training.schedule import Segment
from isoloss.training.settings import Execution
from isoloss.training.setup import part_names, set_up
from isoloss.training.task import Member, Task


def test_members_may_differ_in_seed_and_rate_alone(make_task):
    task = make_task("transformer", seeds=(0, 1), rates=(0.01, 0.02))
    assert len(task.members) == 4
    lead = task.lead
    longer = lead.settings.model_copy(update={"tokens": (1280, 3200), "seed": 5})
    with pytest.raises(InputError) as caught:
        Task("test", (lead, Member(longer, "", lead.folder)), "small", task.tokens, task.execution)
    assert caught.value.what == "members of a cohort differ in tokens"
    assert caught.value.where == lead.run_id
    assert caught.value.mend == "put them in cohorts of their own"


def test_micro_batches_of_a_carried_state_are_refused(make_task):
    task = make_task("lstm", shape={"carry": True}, execution=Execution(micro_batches=2))
    with pytest.raises(InputError, match="a carried state cannot be kept over micro-batches"):
        set_up(task)
    assert set_up(replace(task, execution=Execution())).carries
    assert not set_up(make_task("lstm", execution=Execution(micro_batches=2))).carries


def test_a_device_that_is_not_there_is_refused_before_training(make_task):
    with pytest.raises(InputError, match="there is no device 'tpu' here"):
        set_up(make_task("transformer", execution=Execution(device="tpu")))


def test_the_device_of_a_run_is_made_the_current_one(make_task, monkeypatch):
    prepared = []
    monkeypatch.setattr(setup, "prepare_gpu", prepared.append)
    monkeypatch.setattr(setup, "choose", lambda wanted, family: Device(torch.device(wanted), autocast=True))
    monkeypatch.setattr(setup, "environment_of", lambda *_, **__: None)
    set_up(make_task("transformer", execution=Execution(device="cuda:1")))
    assert prepared == [torch.device("cuda:1")]


def test_a_gpus_evaluation_slides_over_more_than_its_windows(make_task, monkeypatch):
    run_setup = set_up(make_task("transformer"))  # 32 windows of 16 tokens are 512; logits get an eighth
    monkeypatch.setattr(setup, "memory_of", lambda device: 8 * 4.0 * 4096 * 300)
    assert run_setup.pieces(1) == 1
    assert replace(run_setup, device=Device(torch.device("meta"), autocast=False)).pieces(1) == 2


def test_tokens_of_another_text_are_refused(make_task, tmp_path):
    task = make_task("transformer")
    other = task.lead.settings.model_copy(update={"corpus_hash": "f" * 64})
    with pytest.raises(InputError) as caught:
        set_up(replace(task, members=(replace(task.lead, settings=other),)))
    assert "corpus" in str(caught.value)


def test_a_batch_is_a_function_of_seed_and_step(make_task):
    run_setup = set_up(make_task("transformer", seeds=(0, 1), rates=(0.01, 0.02)))
    x_KBT, y_KBT = run_setup.batch(3)
    assert x_KBT.shape == (4, 4, 16)
    assert x_KBT.dtype == torch.int64
    assert torch.equal(x_KBT[:, :, 1:], y_KBT[:, :, :-1]), "a target is the next input"
    # Members in order: seed 0 at both rates, then seed 1.
    assert torch.equal(x_KBT[0], x_KBT[1])
    assert not torch.equal(x_KBT[0], x_KBT[2])
    assert torch.equal(run_setup.batch(3)[0], x_KBT)
    assert not torch.equal(run_setup.batch(4)[0], x_KBT)


def test_the_schedule_of_a_setup_is_that_of_its_settings(make_task):
    run_setup = set_up(make_task("transformer"))  # 20 and 40 steps, a fifth of each cooled down
    assert run_setup.segments == [
        Segment(0, 0, 16),
        Segment(1, 16, 20),
        Segment(0, 16, 32),
        Segment(2, 32, 40),
    ]
    assert run_setup.trace == {0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32}


def test_the_curve_of_a_gated_model_has_its_parts():
    assert part_names(exits=1, gated=False) == ["total"]
    assert part_names(exits=3, gated=False) == ["total"]
    assert part_names(exits=2, gated=True) == ["total", "expected", "entropy", "exit_1", "exit_2"]
