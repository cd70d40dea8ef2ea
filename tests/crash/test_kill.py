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

KILLS = 20
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


def start(study, out):
    return subprocess.Popen(
        command(study, out, "--checkpoint-seconds", "0"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run_to_the_end(study, out, *options):
    done = subprocess.run(
        command(study, out, "--json", *options), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for_writes(process, out, writes):
    """Until so many new names, of finished files and of begun ones, were seen there, or the study ended."""
    seen, deadline = names_in(out), time.monotonic() + PATIENCE
    enough = len(seen) + writes
    while process.poll() is None and len(seen) < enough:
        assert time.monotonic() < deadline, "the study writes nothing"
        time.sleep(0.001)
        seen |= names_in(out)


def names_in(folder):
    return {(here, name) for here, folders, names in os.walk(folder) for name in (*folders, *names)}


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


def test_twenty_kills_lose_and_double_nothing(study, tmp_path):
    draw, out, hits = random.Random(0), tmp_path / "killed", 0
    for _ in range(KILLS):
        process = start(study, out)
        # From "has not written yet" to some checkpoints later; the moment after the last write is drawn too.
        wait_for_writes(process, out, draw.randrange(0, 100))
        time.sleep(draw.uniform(0.0, 0.03))
        hits += process.poll() is None
        # Sometimes the parent alone dies and its workers must notice; sometimes all die at once.
        everyone = draw.random() < 0.5
        with contextlib.suppress(ProcessLookupError):  # it may be done already
            os.killpg(process.pid, signal.SIGKILL) if everyone else process.kill()
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
