"""Which device a task gets."""

from types import SimpleNamespace

import pytest
import torch

from isoloss.studies import runner
from isoloss.studies.engines.local import free_device


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_each_gpu_gets_a_worker(two_gpus):
    assert runner.devices("auto", None) == ["cuda:0", "cuda:1"]
    assert runner.devices("cuda", 3) == ["cuda:0", "cuda:1", "cuda:0"]
    assert runner.devices("cuda:1", None) == ["cuda:1"]


def test_each_core_gets_a_worker(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(runner, "cores", lambda: 5)
    assert runner.devices("cpu", None) == ["cpu"] * 5
    assert runner.devices("cpu", 2) == ["cpu"] * 2


def test_a_task_goes_to_the_device_that_is_free():
    def busy(*devices):
        return [SimpleNamespace(task=SimpleNamespace(execution=SimpleNamespace(device=d))) for d in devices]

    places = ["cuda:0", "cuda:1", "cuda:0"]
    assert free_device(places, busy()) == "cuda:0"
    assert free_device(places, busy("cuda:0")) == "cuda:0"
    assert free_device(places, busy("cuda:0", "cuda:0")) == "cuda:1"
    with pytest.raises(StopIteration):
        free_device(places, busy("cuda:0", "cuda:0", "cuda:1"))
