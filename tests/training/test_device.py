"""Where to compute and in what precision; what is not there is refused before anything runs."""

import os
import platform
import subprocess
import sys

import pytest
import torch

from isoloss import cpu
from isoloss.errors import InputError
from isoloss.training import device
from isoloss.training.device import Device, choose, find, one_core, prepare_gpu


@pytest.fixture
def machine(monkeypatch):
    """machine(cuda=2, bf16=True): as if this one had so many GPUs, which know bf16 or emulate it, ..."""

    def make(*, cuda=0, mps=False, bf16=False):
        def supported(including_emulation=True):
            return bf16 or including_emulation

        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return make


@pytest.mark.parametrize(
    ("devices", "kind"), [({"cuda": 1, "mps": True}, "cuda"), ({"mps": True}, "mps"), ({}, "cpu")]
)
def test_auto_takes_the_fastest_that_is_there(machine, devices, kind):
    machine(**devices)
    assert find("auto").type == kind


def test_a_named_gpu_is_taken_by_its_number(machine):
    machine(cuda=2)
    assert (find("cuda").index, find("cuda:0").index, find("cuda:1").index) == (None, 0, 1)
    assert find("cpu").type == "cpu", "the processor is there beside the GPUs"


@pytest.mark.parametrize(
    ("wanted", "what", "mend"),
    [
        ("cuda", "there is no device 'cuda' here", "use one of cpu, or auto"),
        ("mps", "there is no device 'mps' here", "use one of cpu, or auto"),
        ("tpu", "there is no device 'tpu' here", "use one of cpu, or auto"),
        ("", "there is no device '' here", "use one of cpu, or auto"),
        ("cpu:x", "'cpu:x' is not a device", "write cpu, cuda, cuda:1, mps or auto"),
    ],
)
def test_a_device_that_is_not_there_is_refused_with_those_that_are(machine, wanted, what, mend):
    machine()
    with pytest.raises(InputError) as caught:
        find(wanted)
    assert (caught.value.what, caught.value.mend) == (what, mend)


def test_a_gpu_beyond_the_last_is_refused_and_not_left_to_fail_in_every_run(machine):
    machine(cuda=2)
    with pytest.raises(InputError, match="no device 'cuda:2' here") as caught:
        find("cuda:2")
    assert caught.value.mend == "use one of cuda:0 to cuda:1"


@pytest.mark.parametrize("family", ["transformer", "lstm", "looped"])
def test_a_processor_computes_in_float32_whatever_it_can(machine, family):
    machine(cuda=1, bf16=True)
    assert choose("cpu", family).dtype == "float32"


def test_lstms_stay_in_float32_on_a_gpu_whatever_it_can(machine):
    machine(cuda=1, bf16=True)
    assert choose("auto", "transformer").dtype == "bfloat16 autocast"
    assert choose("auto", "lstm").dtype == "float32"
    machine(cuda=1, bf16=False)
    assert choose("auto", "transformer").dtype == "float32"


@pytest.fixture
def current(monkeypatch):
    """Which GPUs were made the current one; cuDNN rounds as it does by itself."""
    made = []
    monkeypatch.setattr(torch.cuda, "set_device", made.append)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    return made


def test_the_gpu_trained_on_is_the_current_one_and_rounds_nothing(current):
    prepare_gpu(torch.device("cpu"))
    assert current == []
    assert torch.backends.cudnn.allow_tf32, "negative control"
    prepare_gpu(torch.device("cuda"))  # the current one already, which set_device would refuse to hear
    assert current == []
    assert not torch.backends.cudnn.allow_tf32
    prepare_gpu(torch.device("cuda:1"))
    assert current == [torch.device("cuda:1")]


@pytest.mark.parametrize(("gpus", "wanted", "threads"), [(0, "cpu", 1), (2, "cpu", 1), (2, "cuda:1", 3)])
def test_a_processor_gives_a_worker_one_thread_whatever_else_is_there(
    machine, monkeypatch, gpus, wanted, threads
):
    before = torch.get_num_threads()
    machine(cuda=gpus)
    monkeypatch.setattr(device, "prepare_cpu", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    torch.set_num_threads(3)
    try:
        one_core(wanted)
        assert torch.get_num_threads() == threads
        assert os.environ["OMP_NUM_THREADS"] == str(threads)
    finally:
        torch.set_num_threads(before)


def test_the_precision_named_is_the_precision_used():
    a = torch.ones(4, 4)
    with Device(torch.device("cpu"), autocast=True).precision():
        assert (a @ a).dtype == torch.bfloat16
    with Device(torch.device("cpu"), autocast=False).precision():
        assert (a @ a).dtype == torch.float32


# What the record says of it


def test_the_environment_names_machine_versions_and_precision(machine):
    machine()
    environment = device.environment_of(Device(torch.device("cpu"), autocast=True), cohort_size=3)
    assert (environment.device, environment.device_name) == ("cpu", cpu.name())
    assert (environment.torch, environment.python) == (str(torch.__version__), platform.python_version())
    assert (environment.dtype, environment.cohort_size) == ("bfloat16 autocast", 3)
    assert environment.threads == torch.get_num_threads()


def test_a_gpu_is_named_by_its_driver(machine, monkeypatch):
    machine(cuda=2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"made-up GPU {device.index}")
    assert device.device_name(torch.device("cuda:1")) == "made-up GPU 1"


def test_an_installed_package_has_no_commit_and_a_broken_checkout_is_no_error(monkeypatch, tmp_path):
    place = tmp_path / "a" / "b" / "c" / "device.py"
    monkeypatch.setattr(device, "__file__", str(place))
    assert device.code_version() == (None, None)
    (tmp_path / ".git").mkdir()  # git finds no repository in it
    assert device.code_version() == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert device.code_version() == (None, None), "a machine without git"


def test_numbers_that_slow_a_processor_down_count_as_zero():
    before = float(torch.tensor([1e-39]).mul(0.5)) == 0  # whatever ran earlier in this process
    torch.set_flush_denormal(False)
    tiny = torch.tensor([1e-39])
    assert tiny * 0.5 > 0, "negative control: it is a denormal number, not 0"
    try:
        device.prepare_cpu()
        assert tiny * 0.5 == 0
    finally:
        torch.set_flush_denormal(before)


@pytest.fixture
def afresh():
    device.glibc.cache_clear()
    yield
    device.glibc.cache_clear()


def test_memory_is_kept_and_returned_on_glibc_alone(monkeypatch, afresh):
    monkeypatch.setattr(torch, "set_flush_denormal", lambda flush: True)
    calls, trims = [], []

    class Library:
        def __init__(self, name):
            pass

        def mallopt(self, parameter, value):
            calls.append((parameter, value))

        def malloc_trim(self, pad):
            trims.append(pad)

    monkeypatch.setattr(device.ctypes, "CDLL", Library)
    monkeypatch.setattr(device.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(device.sys, "platform", "linux")
    device.prepare_cpu()
    device.return_freed()
    # malloc.h: M_TRIM_THRESHOLD is -1, M_MMAP_THRESHOLD is -3.
    assert dict(calls) == {-3: 2**25, -1: 2**31 - 1}
    assert trims == [0]
    device.glibc.cache_clear()
    monkeypatch.setattr(device.platform, "libc_ver", lambda: ("", ""))  # musl
    device.prepare_cpu()
    device.return_freed()
    assert len(calls) == 2
    assert len(trims) == 1


HELD = """
import torch
from isoloss.training import device

def resident():  # or swapped out, where others need the memory
    lines = [line.split() for line in open("/proc/self/status") if line.startswith(("VmRSS:", "VmSwap:"))]
    return sum(int(line[1]) for line in lines) / 1024

def megabytes(count):  # of 1 MiB each, with one that stays behind them
    return [torch.ones(2**18) for _ in range(count)], torch.ones(2**18)

device.prepare_cpu()
torch.ones(2**18)
before = resident()
blocks, last = megabytes(100)
del blocks
kept = resident() - before
device.return_freed()
returned = kept - (resident() - before)
large = torch.ones(2**26)  # 256 MiB, more than what is free
del large
print(kept, returned, resident() - before)
"""


@pytest.mark.skipif(device.glibc() is None, reason="of glibc alone")
def test_what_was_freed_is_kept_until_it_is_returned_and_large_blocks_never():
    ended = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    kept, returned, left = map(float, ended.stdout.split())
    assert kept > 95
    assert returned > 95
    assert left < 10
