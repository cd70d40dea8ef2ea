"""SIGKILL, twenty times, at any moment: every run is there once, and is what it would have been."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from isoloss.errors import InputError
from isoloss.records import load

KILLS, MOST_UPDATES = 20, 14
"""Between two kills at most so many updates of 320, also where a fast study's names are seen in part."""
PATIENCE = 120.0
"""Seconds after which a study that writes nothing more fails the test."""


@pytest.fixture
def study(tiny, study_file, study_text):
    """Ten runs of 32 updates, some with dropout: its masks are part of what a resumed run must repeat."""
    text = study_text.replace("n_head = 2 }", "n_head = 2, dropout = 0.1 }", 1)
    text = text.replace("tokens = [640, 1280]", "tokens = [640, 1920]\nseeds = [0, 1, 2, 3]")
    return study_file(text=text)


def command(study, out, *options):
    return [sys.executable, "-m", "isoloss.cli", "run", str(study), "--out", str(out), *options]


WARM = """
import json, multiprocessing, os, signal, sys
import torch._dynamo
from isoloss.cli import main
from isoloss.studies import launch
from isoloss.studies.engines import local
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if child := os.fork():
        print(child, flush=True)
        continue
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    local.worker_class = lambda: multiprocessing.get_context("fork").Process
    sys.argv = json.loads(line)
    try:
        main()
    finally:
        os._exit(0)
"""
"""A process that has imported all; each line that it reads is a command that a fork of it runs. Imports are
most of a start, and a kill that hits them shows nothing."""


@pytest.fixture
def start(study):
    """start(out, warm=True) -> the process id of ``isoloss run``, in a session of its own."""
    ready = subprocess.Popen(
        [sys.executable, "-c", WARM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def begin(out, *, warm):
        arguments = command(study, out, "--checkpoint-seconds", "0")
        if not warm:
            return subprocess.Popen(
                arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
        ready.stdin.write(json.dumps(arguments[2:]) + "\n")
        ready.stdin.flush()
        return Forked(int(ready.stdout.readline()))

    yield begin
    ready.stdin.close()
    ready.stdout.close()
    ready.wait(timeout=60)


class Forked:
    """What the test needs of a Popen, for a process that is not its child."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        while self.poll() is None:
            time.sleep(0.001)


def run_to_the_end(study, out, *options):
    done = subprocess.run(
        command(study, out, "--json", *options), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for_writes(process, out, writes):
    """Until so many new names, of finished files and of begun ones, or MOST_UPDATES were seen there, or the
    study ended."""
    seen, deadline = names_in(out), time.monotonic() + PATIENCE
    enough, most = len(seen) + writes, updates_in(seen) + MOST_UPDATES
    while process.poll() is None and len(seen) < enough and updates_in(seen) < most:
        assert time.monotonic() < deadline, "the study writes nothing"
        time.sleep(0.005)
        seen |= names_in(out)


def names_in(folder):
    return {(here, name) for here, folders, names in os.walk(folder) for name in (*folders, *names)}


def updates_in(names):
    """Of all runs, by their newest checkpoints."""
    newest = dict(sorted((here, int(name[7:])) for here, name in names if name.startswith("update-")))
    return sum(newest.values())


def facts(out):
    """All that a study measured, by run: evaluations, curve, positions."""
    study = load(out)
    return {
        record.run_id: (
            [e.model_dump() for e in record.evaluations],
            study.curves().filter(pl.col("run_id") == record.run_id).drop("run_id").rows(),
            study.positions().filter(pl.col("run_id") == record.run_id).drop("run_id").rows(),
        )
        for record in study.records
    }


def test_twenty_kills_lose_and_double_nothing(study, start, tmp_path):
    draw, out, hits = random.Random(0), tmp_path / "killed", 0
    for number in range(KILLS):
        process = start(out, warm=number % 5 > 0)
        # From "has not written yet" to some checkpoints later; the moment after the last write is drawn too.
        wait_for_writes(process, out, draw.randrange(0, 100))
        time.sleep(draw.uniform(0.0, 0.03))
        hits += process.poll() is None
        # Sometimes the parent alone dies and its workers must notice; sometimes all die at once.
        everyone = draw.random() < 0.5
        with contextlib.suppress(ProcessLookupError):  # it may be done already, or not lead its group yet
            if everyone:
                os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        if (out / "study.json").exists():
            load(out)  # whatever is there by now must be whole
    assert hits >= KILLS // 2, "most kills must have hit a living study, or the test shows nothing"
    outcome = run_to_the_end(study, out)
    assert (outcome["planned"], outcome["failed"]) == (10, {})
    assert outcome["already"] + outcome["ended"] == 10
    killed = facts(out)
    assert len(killed) == 10
    run_to_the_end(study, tmp_path / "calm")
    assert killed == facts(tmp_path / "calm")
    assert any(record.attempt > 1 for record in load(out).records), "no run was ever resumed"
    leftovers = [path for path in out.rglob("*") if ".part" in path.name]
    assert not leftovers


def test_control_a_torn_record_is_not_accepted(study, tmp_path):
    out = tmp_path / "torn"
    run_to_the_end(study, out, "--set", "tokens=[640]", "--set", "seeds=[0]")
    record = next((out / "runs").glob("*/record.json"))
    record.write_bytes(record.read_bytes()[:-40])
    with pytest.raises(InputError, match="is not JSON"):
        load(out)
