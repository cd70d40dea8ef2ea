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

from isoloss.records import load

KILLS = 20

STUDY = """
name = "crash"
[scale.mini]
corpus = "crash"
vocabulary = 280
context = 16
batch_size = 4
tokens = [6400, 32000]
seeds = [0, 1, 2, 3]
evaluation = { windows = 8, final_windows = 16, trace_windows = 4 }
[[scale.mini.models]]
family = "transformer"
shapes = [{ n_layer = 2, d_model = 16, n_head = 2, dropout = 0.1 }]
learning_rates = [0.01]
[[scale.mini.models]]
family = "lstm"
shapes = [{ n_layer = 2, d_model = 16 }]
learning_rates = [0.01]
[[scale.mini.models]]
family = "looped"
shapes = [{ n_layer = 1, d_model = 16, n_head = 2, recurrence = 2 }]
learning_rates = [0.01]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the study file, and an environment with the corpus in it."""
    folder = tmp_path_factory.mktemp("crash")
    draw = random.Random(1)
    words = [a + b for a in ("ba", "de", "gi", "ko", "lu") for b in ("n", "ta", "vor", "sil", "me")]
    (folder / "text").mkdir()
    for number in range(10):
        (folder / "text" / f"{number}.txt").write_text(" ".join(draw.choices(words, k=1500)))
    (folder / "study.toml").write_text(STUDY)
    environment = os.environ | {"ISOLOSS_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    isoloss(environment, "corpus", "add", "crash", str(folder / "text"))
    isoloss(environment, "corpus", "tokenize", "crash", "--vocabulary", "280")
    return folder, environment


def isoloss(environment, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "isoloss.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(place, out):
    folder, environment = place
    command = [sys.executable, "-m", "isoloss.cli", "run", str(folder / "study.toml"), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--checkpoint-seconds", "0.3"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run_to_the_end(place, out, *options):
    folder, environment = place
    study = str(folder / "study.toml")
    return json.loads(isoloss(environment, "run", study, "--out", str(out), "--json", *options))


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


def test_twenty_kills_lose_and_double_nothing(place, tmp_path):
    draw, out, hits = random.Random(0), tmp_path / "killed", 0
    for _ in range(KILLS):
        process = start(place, out)
        time.sleep(draw.uniform(0.5, 6.0))
        hits += process.poll() is None
        # Sometimes the parent alone dies and its workers must notice; sometimes all die at once.
        everyone = draw.random() < 0.5
        with contextlib.suppress(ProcessLookupError):  # it may be done already
            os.killpg(process.pid, signal.SIGKILL) if everyone else process.kill()
        process.wait()
        if out.exists() and (out / "study.json").exists():
            load(out)  # whatever is there by now must be whole
    assert hits >= KILLS // 2, "most kills must have hit a living study, or the test shows nothing"
    outcome = run_to_the_end(place, out)
    assert (outcome["planned"], outcome["failed"]) == (12, {})
    assert outcome["already"] + outcome["ended"] == 12
    killed = facts(out)
    assert len(killed) == 12
    run_to_the_end(place, tmp_path / "calm")
    assert killed == facts(tmp_path / "calm")
    assert any(record.attempt > 1 for record in load(out).records), "no run was ever resumed"
    leftovers = [path for path in out.rglob("*") if ".part" in path.name]
    assert not leftovers


def test_control_a_torn_record_is_not_accepted(place, tmp_path):
    out = tmp_path / "torn"
    run_to_the_end(place, out, "--set", "tokens=[1280]", "--set", "seeds=[0]")
    record = next((out / "runs").glob("*/record.json"))
    record.write_bytes(record.read_bytes()[:-40])
    with pytest.raises(Exception, match="is not JSON"):
        load(out)
