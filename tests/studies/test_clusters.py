"""The engines for many machines, on real ones: a Ray of three nodes and a Slurm, each on this machine."""

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import slurm_node
from slurm_node import said, wait_for

from isoloss import files
from isoloss.records import load
from isoloss.studies.status import status


def skip_unless(there, what):
    """In CI it must be there; elsewhere the test is skipped by name."""
    if not there:
        if os.environ.get("CI"):
            pytest.fail(what)
        pytest.skip(what)


SLOW = """
import time

import torch

from isoloss.models import Family, Shape, register


class WidthShape(Shape):
    d_model: int


class Slow(torch.nn.Module):
    def __init__(self, shape, vocab, context):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, shape.d_model)
        self.mix = torch.nn.Linear(shape.d_model, shape.d_model)
        self.head = torch.nn.Linear(shape.d_model, vocab)

    def forward(self, x_BT):
        time.sleep(0.02 * self.training)
        return self.head(self.mix(self.embedding(x_BT)))


register(Family("my-slow", WidthShape, Slow))
"""
"""Long enough to be taken away from, at no cost."""


@pytest.fixture(scope="module")
def study(tiny, study_text, tmp_path_factory):
    """The arguments of a study: two runs of 300 slow steps, and one short one."""
    folder = tmp_path_factory.mktemp("clusters")
    head, _, lstm = study_text.split("[[scale.mini.models]]")[:3]
    keys = ["shapes = [{ d_model = 8 }]", "seeds = [0, 1]", "tokens = [19_200]", "learning_rates = [0.01]"]
    slow = "\n".join(['family = "my-slow"', *keys, "\n"])
    (folder / "my.toml").write_text("[[scale.mini.models]]\n".join([head, slow, lstm]), "utf-8")
    (folder / "slow.py").write_text(SLOW, "utf-8")
    return folder


@pytest.fixture(scope="module")
def alone(study):
    """The same study on the local engine."""
    ended(run(study, study / "out"))
    return study / "out"


def measured(folder):
    """What must not depend on where a run was trained, by run: numbers and the files that hold them."""
    kept = ("settings", "counts", "data", "status", "evaluations", "steps", "files")
    return {record.run_id: {key: getattr(record, key) for key in kept} for record in load(folder).records}


def began(out):
    """How often a run of the folder has begun or gone on."""
    events = [event for path in out.glob("runs/*/log.jsonl") for event in files.read_lines(path)]
    return sum(event["kind"] in ("started", "resumed") for event in events)


def run(study, out, *options):
    command = [sys.executable, "-m", "isoloss.cli", "run", study / "my.toml", "--out", out, "--json"]
    command += ["--family", study / "slow.py", "--checkpoint-seconds", "0.5", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, talk = process.communicate(timeout=300)
    assert process.returncode == 0, out + talk
    return json.loads(out)


def attempts(folder):
    return [record.attempt for record in load(folder).records if record.family == "my-slow"]


def states(folder):
    return Counter(run.state for run in status(folder))


@pytest.mark.timeout(400)
def test_ray_trains_on_when_a_node_is_lost(study, alone, tmp_path, monkeypatch):
    skip_unless(importlib.util.find_spec("ray"), "Ray is not installed: pip install 'isoloss[ray]'")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    out, program = tmp_path / "out", [sys.executable, Path(__file__).with_name("ray_nodes.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program, text=True, **pipes) as nodes:
        address = f"address={nodes.stdout.readline().strip()}"
        process = run(study, out, "--engine", "ray", "--engine-set", address)
        wait_for(lambda: len(list(out.glob("runs/*/checkpoints"))) == 2 or process.poll() is not None)
        assert states(out)["running"] == 2
        nodes.stdin.write("one\n")
        nodes.stdin.flush()
        assert nodes.stdout.readline() == "gone\n"
        result = ended(process)
        nodes.stdin.close()
    assert (result["ended"], result["failed"]) == (3, {})
    assert sorted(attempts(out)) == [1, 2], "the run that was lost went on elsewhere"
    assert measured(out) == measured(alone)


@pytest.mark.timeout(400)
def test_slurm_trains_on_when_a_job_is_preempted_or_out_of_time(study, alone, tmp_path, monkeypatch):
    skip_unless(importlib.util.find_spec("submitit"), "no submitit: pip install 'isoloss[slurm]'")
    skip_unless(slurm_node.missing() is None, f"no {slurm_node.missing()}: apt-get install slurm-wlm")
    out = tmp_path / "out"

    def running():
        assert process.poll() is None, process.communicate()
        return said("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()

    with slurm_node.cluster(tmp_path, monkeypatch):
        process = run(study, out, "--engine", "slurm", "--engine-set", "memory=500MB")
        wait_for(lambda: began(out) >= 1 and running())
        assert states(out) == {"running": 1, "queued": 2}
        said("scontrol", "requeue", *running())
        wait_for(lambda: began(out) >= 2 and running())
        said("scancel", "--signal=USR2", *running())
        result = ended(process)
        assert states(out) == {"done": 3}
    assert (result["ended"], result["failed"]) == (3, {})
    assert attempts(out) == [2, 2], "each of the two was queued again and went on"
    assert measured(out) == measured(alone)


@pytest.mark.timeout(400)
def test_slurm_queues_a_run_of_two_ranks_again(study, alone, tmp_path, monkeypatch):
    skip_unless(importlib.util.find_spec("submitit"), "no submitit: pip install 'isoloss[slurm]'")
    skip_unless(slurm_node.missing() is None, f"no {slurm_node.missing()}: apt-get install slurm-wlm")
    out, one = tmp_path / "out", 'models=[{family="my-slow", shapes=[{d_model=8}], learning_rates=[0.01]}]'
    with slurm_node.cluster(tmp_path, monkeypatch, cores=2):
        process = run(
            study, out, "--engine", "slurm", "--engine-set", "memory=1500MB", "--set", "ranks=2",
            "--set", one, "--set", "seeds=[0]", "--set", "tokens=[19200]",
        )  # fmt: skip
        wait_for(lambda: began(out) >= 1 or process.poll() is not None)
        said("scancel", "--signal=USR2", *said("squeue", "--noheader", "--format=%i").split())
        result = ended(process)
    assert (result["ended"], result["failed"], attempts(out)) == (1, {}, [2])
    (record,) = load(out).records
    assert [event.detail for event in record.events if event.kind in ("started", "resumed")] == [
        "2 ranks, DDP"
    ] * 2
    of_one = next(other for other in load(alone).records if other.run_id == record.run_id)
    assert record.evaluations[-1].loss == pytest.approx(of_one.evaluations[-1].loss, abs=1e-3)
