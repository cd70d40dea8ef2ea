"""Which device a task gets, and what its process starts with."""

import io
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from isoloss.corpus import library
from isoloss.errors import InputError, RunError
from isoloss.studies import runner
from isoloss.studies.engines import local
from isoloss.studies.engines.local import free_device
from isoloss.studies.engines.messages import Ended, Engine
from isoloss.studies.launch import launch
from isoloss.studies.stop import StopSignal


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


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_workers_than_one_are_refused_and_not_waited_for(workers):
    with pytest.raises(InputError, match=f"{workers} workers train nothing"):
        runner.devices("cpu", workers)


def test_a_task_goes_to_the_device_that_is_free():
    def busy(*devices):
        return [SimpleNamespace(device=device) for device in devices]

    places = ["cuda:0", "cuda:1", "cuda:0"]
    assert free_device(places, busy()) == "cuda:0"
    assert free_device(places, busy("cuda:0")) == "cuda:0"
    assert free_device(places, busy("cuda:0", "cuda:0")) == "cuda:1"
    with pytest.raises(StopIteration):
        free_device(places, busy("cuda:0", "cuda:0", "cuda:1"))


LATE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
before = set(sys.modules)
import torch
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe
model = torch.nn.Linear(2, 2)
MemberAdamW(model, 1, Recipe())
print(len(set(sys.modules) - before))
"""


def imported_late(*preloaded):
    """How many modules a worker that was forked with these imports for itself, to build its optimiser."""
    done = subprocess.run(
        [sys.executable, "-c", LATE, *preloaded], capture_output=True, text=True, timeout=120, check=True
    )
    return int(done.stdout)


def test_the_fork_server_has_imported_what_an_update_needs():
    assert imported_late(*local.PRELOADED) < 20
    assert imported_late("torch") > 50, "control: torch alone imports its compiler with the first optimiser"


class Deaf:
    """A process that SIGKILL alone ends, as one that is suspended; ``stop`` is asked when it starts."""

    exitcode = -9
    stop: StopSignal
    asks = 1

    def __init__(self, **_):
        self.sentinel, self.end = os.pipe()
        self.alive = False

    def start(self):
        self.alive = True
        self.stop.times = self.asks

    def is_alive(self):
        return self.alive

    def terminate(self):
        pass

    def kill(self):
        self.alive = False
        os.close(self.end)


@pytest.mark.parametrize(("asks", "seconds"), [(1, 0.2), (2, 1e9)])
def test_a_worker_that_does_not_answer_is_given_up(tiny, study_file, tmp_path, monkeypatch, asks, seconds):
    monkeypatch.setattr(local, "GIVE_UP_SECONDS", seconds)
    with StopSignal() as stop:
        kind = type("Deafer", (Deaf,), {"stop": stop, "asks": asks})
        monkeypatch.setattr(local, "worker_class", lambda: kind)
        console = Console(file=io.StringIO())
        outcome = launch(str(study_file()), out=tmp_path / "out", workers=2, console=console, stop=stop)
    assert outcome.stopped
    assert (outcome.ended, outcome.failed) == (0, {})


def test_a_stop_asked_before_the_study_began_trains_nothing(tiny, study_file, tmp_path):
    stop, path, console = StopSignal(()), str(study_file()), Console(file=io.StringIO())
    stop.note()
    with pytest.raises(KeyboardInterrupt):
        launch(path, out=tmp_path / "out", console=console, stop=stop)
    assert not (tmp_path / "out").exists()


def test_a_signal_while_text_is_tokenized_ends_it_there(tiny, study_file, tmp_path, monkeypatch):
    tokenize, came = library.tokenize, []

    def interrupted(*args, **options):
        signal.raise_signal(signal.SIGTERM)
        came.append("on")
        return tokenize(*args, **options)

    monkeypatch.setattr(library, "tokenize", interrupted)
    with StopSignal() as stop, pytest.raises(KeyboardInterrupt):
        launch(str(study_file()), out=tmp_path / "out", console=Console(file=io.StringIO()), stop=stop)
    assert not came
    assert not (tmp_path / "out").exists()


def test_a_signal_while_runs_train_is_taken_note_of(tiny, study_file, tmp_path, monkeypatch):
    def engine(tasks, stops):
        signal.raise_signal(signal.SIGINT)
        assert stops() == 1
        yield from (Ended(task, "stopped") for task in tasks)

    monkeypatch.setattr("isoloss.studies.launch.engine_of", lambda *_: Engine(False, engine))
    with StopSignal() as stop:
        outcome = launch(
            str(study_file()), out=tmp_path / "out", console=Console(file=io.StringIO()), stop=stop
        )
    assert outcome.stopped


def test_a_study_in_a_thread_hears_no_signals_and_breaks_nothing():
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(StopSignal).result().before == []


class Flaky:
    """A process whose fork server is dead for the first ``failures`` starts."""

    def __init__(self, failures):
        self.failures, self.tries = failures, 0

    def start(self):
        self.tries += 1
        if self.tries <= self.failures:
            raise EOFError


def test_a_dead_fork_server_is_made_anew_also_where_it_takes_a_moment_to_end(monkeypatch):
    monkeypatch.setattr(local, "PAUSES", (0.0, 0.0, 0.001))
    once, slowly, always = Flaky(1), Flaky(2), Flaky(9)
    local.begin(once)
    local.begin(slowly)
    assert (once.tries, slowly.tries) == (2, 3)
    with pytest.raises(RunError, match="no process can be started"):
        local.begin(always)
