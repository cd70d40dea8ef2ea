"""Workers that are suspended, or killed at random, while who started them lives; and a killed fork server."""

import io
import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from threading import Event

import pytest
from appended import read_lines
from rich.console import Console

from isoloss.records import load
from isoloss.studies.engines import local
from isoloss.studies.launch import launch
from isoloss.studies.status import holder
from isoloss.studies.stop import StopSignal

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="who holds a claim is not told here")

RUNS, KILLS = 60, 10
PATIENCE = 120.0


@pytest.fixture
def train(tiny, study_text, study_file, tmp_path):
    """train(folder, seeds=..., tokens=..., stop=...): runs of one small LSTM, and what came of them."""
    start, _, lstm, _ = study_text.split("[[scale.mini.models]]")
    path = study_file(text=f"{start}[[scale.mini.models]]{lstm}")

    def launched(folder, *, seeds=range(1), tokens=(640,), workers=2, stop=None):
        changes = [f"seeds={list(seeds)}", f"tokens={list(tokens)}"]
        options = {"changes": changes, "workers": workers, "checkpoint_seconds": 0.0, "stop": stop}
        return launch(str(path), out=tmp_path / folder, console=Console(file=io.StringIO()), **options)

    return launched


def working(out):
    """The processes that train a run of the study right now."""
    holders = (holder(folder) for folder in out.glob("runs/*"))
    return [number for number in holders if number not in (None, os.getpid())]


def at_work(out, ready):
    """One of them, once ``ready``."""
    end = time.monotonic() + PATIENCE
    while not (ready() and (numbers := working(out))):
        assert time.monotonic() < end, "nothing is trained"
        time.sleep(0.002)
    return numbers[0]


def has_checkpoint(out):
    return lambda: any(out.glob("runs/*/checkpoints/update-*"))


def facts(out):
    """All that was measured, by seed."""
    study = load(out)
    curves = study.curves().partition_by("run_id", as_dict=True)
    return {
        r.seed: ([e.model_dump() for e in r.evaluations], curves[r.run_id,].rows()) for r in study.records
    }


def times_finished(folder):
    return Counter(event["kind"] for event in read_lines(folder / "log.jsonl"))["finished"]


def test_workers_killed_at_random_lose_and_double_no_run(train, tmp_path):
    out, draw, killed, over = tmp_path / "killed", random.Random(0), [], Event()

    def kill():
        while len(killed) < KILLS and not over.is_set():
            for number in working(out)[:1]:
                time.sleep(draw.uniform(0.0, 0.05))
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
                    killed.append(number)
                time.sleep(draw.uniform(0.0, 0.1))
            time.sleep(0.002)

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(kill)
        try:
            first = train("killed", seeds=range(RUNS))
        finally:
            over.set()
        done.result()
    assert len(killed) >= KILLS // 2
    assert first.ended + len(first.failed) == first.planned == RUNS
    assert 0 < len(first.failed) <= KILLS
    assert all("SIGKILL" in reason for reason in first.failed.values())
    second = train("killed", seeds=range(RUNS))
    assert (second.already + second.ended, second.failed) == (RUNS, {})
    by_seed = facts(out)
    assert sorted(by_seed) == list(range(RUNS))
    finished = {folder.name: times_finished(folder) for folder in out.glob("runs/*")}
    assert {times for run_id, times in finished.items() if run_id not in first.failed} == {1}
    # The log says so before the record is there: who is killed in between finishes again.
    assert {finished[run_id] for run_id in first.failed} <= {1, 2}
    seeds = [record.seed for record in load(out).records if record.run_id in first.failed]
    train("calm", seeds=seeds)
    assert facts(tmp_path / "calm") == {seed: by_seed[seed] for seed in seeds}


def test_a_suspended_worker_is_given_up_and_its_run_goes_on(train, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "GIVE_UP_SECONDS", 0.5)
    out, stop = tmp_path / "out", StopSignal(())

    def suspend():
        number = at_work(out, has_checkpoint(out))
        os.kill(number, signal.SIGSTOP)
        stop.note()
        return number

    with ThreadPoolExecutor(1) as thread:
        suspended = thread.submit(suspend)
        outcome = train("out", tokens=[19_200], workers=1, stop=stop)
    assert (outcome.stopped, outcome.ended, outcome.failed) == (True, 0, {})
    end = time.monotonic() + PATIENCE
    while suspended.result() in working(out):
        assert time.monotonic() < end, "it lives on, and holds its claim"
        time.sleep(0.01)
    assert train("out", tokens=[19_200], workers=1).ended == 1
    (record,) = load(out).records
    assert record.attempt == 2


def test_a_killed_fork_server_costs_the_run_of_the_moment(train, tmp_path):
    out = tmp_path / "out"

    def kill():
        at_work(out, has_checkpoint(out))
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)

    with ThreadPoolExecutor(1) as thread:
        killed = thread.submit(kill)
        outcome = train("out", seeds=range(3), tokens=[6400], workers=1)
        killed.result()
    assert (outcome.planned, outcome.ended) == (3, 2)
    assert list(outcome.failed.values()) == ["its process ended with exit code 255"]
    second = train("out", seeds=range(3), tokens=[6400], workers=1)
    assert (second.already + second.ended, second.failed) == (3, {})
