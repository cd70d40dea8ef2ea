"""The engines for many machines, on real ones: a Ray of three nodes and a Slurm, each on this machine."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import slurm_node
from appended import read_lines
from slurm_node import queued, said, wait_for
from user_family import PLAIN

from isoloss import files
from isoloss.records import load
from isoloss.studies.engines.ray import RAYS_PATIENCE
from isoloss.studies.status import status


def skip_unless(present, what):
    """In CI it must be there; elsewhere the test is skipped by name."""
    if not present:
        if os.environ.get("CI"):
            pytest.fail(what)
        pytest.skip(what)


SLOW = (
    PLAIN
    + """
HERE = Path(__file__).parent


class Slow(Bigram):
    def forward(self, x_BT):
        time.sleep(0.1 * (self.training and (HERE / "slow").exists()))
        while self.training and (HERE / "hold").exists():
            (HERE / f"held-{os.getpid()}").touch()
            time.sleep(0.02)
        return super().forward(x_BT)


register(Family("my-slow", WidthShape, Slow))
if "MARK" in os.environ:
    Path(os.environ["MARK"]).write_text(os.environ["SLURM_JOB_ID"])
"""
)
"""With a file ``slow`` a run lasts half a minute, so that what is sent to it meets it half-way; with a file
``hold`` it waits in an update, deaf to a stop."""


@pytest.fixture(scope="module")
def study(tiny, study_text, tmp_path_factory):
    """The arguments of a study: two runs of 300 steps, slow if wished, and one short one."""
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
    events = [event for path in out.glob("runs/*/log.jsonl") for event in read_lines(path)]
    return sum(event["kind"] in ("started", "resumed") for event in events)


def checkpoints(out):
    """The newest of each run that trains or was stopped."""
    saved = (sorted(place.glob("update-*")) for place in out.glob("runs/*/checkpoints"))
    return [updates[-1] for updates in saved if updates]


def run(study, out, *options, checkpoint_seconds=0.5, as_json=True):
    command = [sys.executable, "-m", "isoloss.cli", "run", study / "my.toml", "--out", out, *options]
    command += ["--family", study / "slow.py", "--checkpoint-seconds", str(checkpoint_seconds)]
    command += ["--json"] * as_json
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, talk = process.communicate(timeout=300)
    assert process.returncode == 0, out + talk
    return json.loads(out)


def attempts(folder):
    return [record.attempt for record in load(folder).records if record.family == "my-slow"]


def states(folder):
    return Counter(run.state for run in status(folder))


@pytest.fixture
def slow(study):
    """The file that makes updates slow, until it is removed."""
    path = study / "slow"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def hold(study):
    """hold(process, count): from now on runs wait in an update until ``study / "hold"`` is removed.

    It returns when so many wait, or the process has ended.
    """

    def wait_until_held(process, count):
        for old in study.glob("held-*"):
            old.unlink()
        (study / "hold").touch()
        wait_for(lambda: len(list(study.glob("held-*"))) >= count or process.poll() is not None)

    yield wait_until_held
    (study / "hold").unlink(missing_ok=True)


def stop_twice_and_go_on(study, alone, slow, hold, out, at_once, *engine):
    """Ctrl-C keeps what was trained; after SIGTERM it kills what did not answer that."""

    def asked_to_stop(number):
        """A command whose runs are in the middle of an update when it gets the signal."""
        before = began(out)
        process = run(study, out, *engine, checkpoint_seconds=600, as_json=False)
        wait_for(lambda: began(out) > before or process.poll() is not None)
        hold(process, at_once)
        process.send_signal(number)
        waits = "lstm 1x8, seed 0: stopped before its first checkpoint\n"
        assert waits in process.stderr, "what waits is given up at once"
        assert (process.poll(), states(out)["running"]) == (None, at_once)
        return process

    def kept_by(process):
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 1, stdout + stderr
        assert stdout.endswith("Stopped. Run the same command again to go on where it was.\n"), (
            stdout + stderr
        )
        assert "Traceback" not in stderr
        wait_for(lambda: states(out) == {"waiting": 3})  # nothing that trains holds a run's claim
        half = [*out.rglob(".*.part"), *out.glob("runs/*/failure.json"), *out.glob("runs/*/record.json")]
        assert not half
        return [files.read_json(path)["done"] for path in sorted(out.glob("runs/*/checkpoints/*/state.json"))]

    process = asked_to_stop(signal.SIGINT)
    (study / "hold").unlink()
    kept = kept_by(process)
    assert len(kept) == at_once, "none was due, so the stop asked for it"
    assert min(kept) > 0
    process = asked_to_stop(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert kept_by(process) == kept, "killed without a word"
    (study / "hold").unlink()
    slow.unlink()
    assert ended(run(study, out, *engine))["ended"] == 3
    assert attempts(out).count(2) == at_once, "they went on from what the first stop kept"
    assert measured(out) == measured(alone)


@pytest.fixture(scope="module")
def nodes():
    """A Ray of two; ``order`` does what tests/studies/ray_nodes.py says, ``options`` are to train on it."""
    skip_unless(importlib.util.find_spec("ray"), "Ray is not installed: pip install 'isoloss[ray]'")
    program = [sys.executable, Path(__file__).with_name("ray_nodes.py"), "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(program, text=True, bufsize=1, **pipes) as nodes,
    ):
        patch.setenv("RAY_AUTH_MODE", "disabled")

        def order(what):
            nodes.stdin.write(f"{what}\n")
            assert nodes.stdout.readline() == "done\n"

        address = nodes.stdout.readline().strip()
        options = ("--engine", "ray", "--engine-set", f"address={address}", "--workers", "2")
        yield SimpleNamespace(address=address, options=options, order=order)
        nodes.stdin.close()


@pytest.mark.timeout(400)
def test_ray_trains_on_when_a_node_is_lost(study, alone, slow, hold, nodes, tmp_path):
    out = tmp_path / "out"
    process = run(study, out, *nodes.options)
    wait_for(lambda: len(checkpoints(out)) == 2 or process.poll() is not None)
    hold(process, 2)
    assert states(out)["running"] == 2
    nodes.order("node")
    (study / "hold").unlink()
    slow.unlink()
    result = ended(process)
    assert (result["ended"], result["failed"]) == (3, {})
    assert sorted(attempts(out)) == [1, 2], "the run that was lost went on elsewhere"
    assert measured(out) == measured(alone)


@pytest.mark.timeout(400)
def test_ray_keeps_checkpoints_when_it_is_stopped(study, alone, slow, hold, nodes, tmp_path):
    stop_twice_and_go_on(study, alone, slow, hold, tmp_path / "out", 2, *nodes.options)


@pytest.mark.timeout(400)
def test_a_ray_that_loses_its_head_is_said_with_the_way_on(
    study, alone, slow, hold, nodes, tmp_path, monkeypatch
):
    """The last one on these nodes, which end with it."""
    monkeypatch.setenv(RAYS_PATIENCE, "20")
    out = tmp_path / "out"
    one = next(record.run_id for record in load(alone).records if record.family == "my-slow")
    shutil.copytree(alone / "runs" / one, out / "runs" / one)
    process = run(study, out, *nodes.options)
    wait_for(lambda: (began(out) >= 3 and states(out)["done"] >= 2) or process.poll() is not None)
    hold(process, 1)
    nodes.order("head")
    stdout, stderr = process.communicate(timeout=120)
    nodes.order("end")
    assert (process.returncode, stdout) == (1, ""), stderr
    lost = f"isoloss: --engine ray: the Ray cluster at {nodes.address} has not answered for "
    assert lost in stderr
    way = stderr.partition(lost)[2].splitlines()[1]
    assert way.endswith(
        "start a cluster, or take --engine local, and run the same command: it goes on where it was"
    )
    assert "Traceback" not in stderr
    assert not [*out.glob("runs/*/failure.json")]
    wait_for(lambda: states(out) == {"done": 2, "waiting": 1})  # what was finished stays
    (study / "hold").unlink()
    slow.unlink()
    ended(run(study, out))
    assert measured(out) == measured(alone)


def slurm(folder, monkeypatch, cores=1):
    skip_unless(importlib.util.find_spec("submitit"), "no submitit: pip install 'isoloss[slurm]'")
    skip_unless(slurm_node.missing() is None, f"no {slurm_node.missing()}: apt-get install slurm-wlm")
    return slurm_node.cluster(folder, monkeypatch, cores)


@pytest.mark.timeout(400)
def test_slurm_trains_on_when_a_job_is_preempted_or_out_of_time(study, alone, slow, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def others():
        assert process.poll() is None, process.communicate()
        return set(queued("--states=RUNNING")) - {preempted}

    with slurm(tmp_path, monkeypatch):
        process = run(study, out, "--engine", "slurm", "--engine-set", "memory=500MB")
        # One that is killed before it has saved then goes on from there.
        wait_for(lambda: checkpoints(out) or process.poll() is not None)
        assert states(out) == {"running": 1, "queued": 2}
        (preempted,) = queued("--states=RUNNING")
        said("scontrol", "requeue", preempted)
        wait_for(lambda: len(list(out.glob("runs/*/log.jsonl"))) >= 2 and others())
        before = began(out)
        said("scancel", "--signal=USR2", *others())
        wait_for(lambda: began(out) > before or process.poll() is not None)
        slow.unlink()
        result = ended(process)
        assert states(out) == {"done": 3}
    assert (result["ended"], result["failed"]) == (3, {})
    assert attempts(out) == [2, 2], "each of the two was queued again and went on"
    assert measured(out) == measured(alone)


@pytest.mark.timeout(400)
def test_slurm_keeps_checkpoints_when_it_is_stopped(study, alone, slow, hold, tmp_path, monkeypatch):
    options = ("--engine", "slurm", "--engine-set", "memory=500MB")
    with slurm(tmp_path, monkeypatch, cores=2):
        stop_twice_and_go_on(study, alone, slow, hold, tmp_path / "out", 2, *options)
        wait_for(lambda: not queued())


@pytest.mark.timeout(400)
def test_a_slurm_job_gets_the_setup_lines_and_is_missed_when_it_is_killed(
    study, slow, tmp_path, monkeypatch, isoloss
):
    out, mark, line = tmp_path / "out", tmp_path / "mark", tmp_path / "line"
    setup = f'setup=["export MARK={mark}", "echo $SLURM_JOB_ID > {line}"]'
    settings = [word for one in ("memory=500MB", "wait=false", setup) for word in ("--engine-set", one)]
    with slurm(tmp_path, monkeypatch):
        assert ended(run(study, out, "--engine", "slurm", *settings))["queued"] == 3
        wait_for(lambda: began(out) >= 1)
        assert mark.read_text() == line.read_text().strip() != ""
        assert states(out) == {"running": 1, "queued": 2}
        said("scancel", *queued("--states=PENDING"))
        said("scancel", "--signal=KILL", *queued())
        wait_for(lambda: not queued())
        _, lines, _ = isoloss("status", out)
    assert lines.startswith("3 waiting\n")
    gone = "is no longer in the queue and left no record; the same `isoloss run` goes on where it was"
    assert lines.count(f": its Slurm job {files.read_json(out / 'slurm.json').popitem()[1][:-1]}") == 3
    assert lines.count(gone) == 3


@pytest.mark.timeout(400)
def test_slurm_queues_a_run_of_two_ranks_again(study, alone, slow, tmp_path, monkeypatch):
    out, one = tmp_path / "out", 'models=[{family="my-slow", shapes=[{d_model=8}], learning_rates=[0.01]}]'
    with slurm(tmp_path, monkeypatch, cores=2):
        process = run(
            study, out, "--engine", "slurm", "--engine-set", "memory=1500MB", "--set", "ranks=2",
            "--set", one, "--set", "seeds=[0]", "--set", "tokens=[19200]", checkpoint_seconds=600,
        )  # fmt: skip
        wait_for(lambda: began(out) >= 1 or process.poll() is not None)
        said("scancel", "--signal=USR2", *queued())
        wait_for(lambda: began(out) >= 2 or process.poll() is not None)
        slow.unlink()
        result = ended(process)
    assert (result["ended"], result["failed"], attempts(out)) == (1, {}, [2])
    (record,) = load(out).records
    assert [event.detail for event in record.events if event.kind in ("started", "resumed")] == [
        "2 ranks, DDP"
    ] * 2
    of_one = next(other for other in load(alone).records if other.run_id == record.run_id)
    assert record.evaluations[-1].loss == pytest.approx(of_one.evaluations[-1].loss, abs=1e-3)
