"""What the engines for many machines share, without the machines: refusals, verdicts, how a study stands."""

import io
import json
import os
import shutil
import socket
from itertools import pairwise
from types import SimpleNamespace

import pytest
from rich.console import Console

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.records.store import read_failure, write_failure
from isoloss.studies import launch, progress_file
from isoloss.studies.engines import queue, ray, remote, slurm, worker
from isoloss.studies.engines.messages import Ended
from isoloss.studies.status import status
from isoloss.studies.stop import StopSignal
from isoloss.training.task import Progress


def ask(study_file, out, engine, *settings):
    console = Console(file=io.StringIO())
    return launch.launch(str(study_file()), out=out, engine=engine, engine_settings=settings, console=console)


@pytest.mark.parametrize(
    ("engine", "settings", "what"),
    [
        ("cloud", [], "there is no engine 'cloud'"),
        ("local", ["cpus=2"], "the local engine has no settings"),
        ("ray", ["cpu=2"], "unknown key 'cpu'; did you mean 'cpus'"),
        ("ray", ["cpus"], "'cpus' is not KEY=VALUE"),
        ("slurm", ["hours=soon"], "hours: Input should be a valid number"),
    ],
)
def test_an_engine_or_a_setting_that_there_is_not_is_refused(
    tiny, study_file, tmp_path, engine, settings, what
):
    with pytest.raises(InputError, match=what):
        ask(study_file, tmp_path / "out", engine, *settings)
    assert not (tmp_path / "out").exists()


def test_what_is_not_installed_is_named_before_anything_trains(tiny, study_file, tmp_path, monkeypatch):
    for name, package in (("ray", "ray"), ("slurm", "submitit")):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(InputError, match=r"not installed\n.*pip install " + package):
            ask(study_file, tmp_path / "out", name)
    assert not (tmp_path / "out").exists()


def test_an_address_where_nobody_listens_is_said_at_once():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        ray.check_answers(address)
    for nobody in (address, "ray://" + address):
        with pytest.raises(OSError, match="refused"):
            ray.check_answers(nobody)
    for port in ("nowhere", "first:here", "first:"):
        with pytest.raises(ValueError, match="an address is HOST:PORT"):
            ray.check_answers(port)


def test_a_head_that_is_silent_for_a_moment_is_no_loss(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(ray.time, "monotonic", lambda: now[0])
    monkeypatch.setenv(ray.RAYS_PATIENCE, "20")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        head = ray.Head(f"127.0.0.1:{port}")
        head.check()
    for now[0] in (5.0, 9.0):
        head.check()
    with socket.create_server(("127.0.0.1", port)):
        now[0] = 12.0
        head.check()
    now[0] = 21.0
    head.check()
    now[0] = 23.0
    with pytest.raises(
        RunError, match=rf"{port} has not answered for 11 seconds.*refused.*\n.*--engine local"
    ):
        head.check()


def test_a_slurm_that_is_not_here_or_does_not_answer_is_said(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="no submitit: pip install 'isoloss[slurm]'")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="Slurm is not here"):
        slurm.check(slurm.Options())
    for program in ("sbatch", "squeue"):
        (tmp_path / program).write_text(
            "#!/bin/sh\necho 'slurm_load_jobs error: no controller' >&2\nexit 1\n"
        )
        (tmp_path / program).chmod(0o755)
    with pytest.raises(InputError, match="squeue fails: slurm_load_jobs error: no controller"):
        slurm.check(slurm.Options())


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_an_engine_out_of_reach_leaves_no_study(tiny, study_file, tmp_path, monkeypatch, engine):
    if engine == "slurm":
        monkeypatch.setenv("PATH", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings, out = ["address=127.0.0.1:" + str(port)] if engine == "ray" else [], tmp_path / "out"
    why = "no Ray cluster answers|Ray is not installed|Slurm is not here|submitit is not"
    with pytest.raises(InputError, match=why):
        launch.launch(str(study_file()), out=out, engine=engine, engine_settings=settings)
    assert not out.exists()


@pytest.fixture
def slurm_says(tmp_path, monkeypatch):
    """slurm_says(squeue="echo 7_0 RUNNING", ...): programs of a line of shell, alone in the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def say(**programs):
        for program, line in programs.items():
            (tmp_path / program).write_text(f"#!/bin/sh\n{line}\n")
            (tmp_path / program).chmod(0o755)

    return say


@pytest.mark.parametrize(
    ("at_once", "commands"), [(False, ["7_1", "--signal=INT 7_0 7_2"]), (True, ["7_0 7_1 7_2"])]
)
def test_a_job_that_ends_while_slurm_is_asked_to_stop_is_no_error(slurm_says, tmp_path, at_once, commands):
    slurm_says(
        squeue="echo 7_0 RUNNING; echo 7_1 PENDING; echo 7_2 RUNNING; echo 8 RUNNING",
        scancel=f'echo "$*" >> {tmp_path}/told; [ "$1" != --signal=INT ]',
    )
    jobs = object.__new__(slurm.SlurmJobs)
    jobs.ids, jobs.there = {"a": "7_0", "b": "7_1", "c": "7_2", "d": "6_0"}, {"6_0": "RUNNING"}
    jobs.stop(at_once=at_once)
    assert (tmp_path / "told").read_text().splitlines() == commands, "its own, as they stand now"


def test_a_slurm_that_does_not_hear_a_stop_is_said_with_what_goes_on(slurm_says):
    slurm_says(squeue="echo no controller >&2; exit 1")
    jobs = object.__new__(slurm.SlurmJobs)
    with pytest.raises(
        RunError, match=r"squeue fails: no controller\n.*the jobs go on; run the same command"
    ):
        jobs.stop(at_once=False)


def test_the_queue_is_asked_less_often_while_nothing_changes(monkeypatch):
    now, states, asked = [0.0], [{"7_0": "PENDING"}], []
    monkeypatch.setattr(slurm.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(slurm, "queue", lambda: asked.append(now[0]) or dict(states[0]))
    jobs = object.__new__(slurm.SlurmJobs)
    jobs.ids, jobs.there, jobs.answered, jobs.every, jobs.ask_at = {"a": "7_0"}, {}, 0.0, 1.0, 0.0
    for second in range(200):
        now[0] = float(second)
        assert jobs.unfinished() == {"a"}
    assert asked[:6] == [0, 1, 3, 7, 15, 31]
    assert max(b - a for a, b in pairwise(asked)) == slurm.ASK_SECONDS[1]
    states[0] = {}
    now[0] = 250.0
    assert jobs.unfinished() == set()
    assert jobs.ask_at == 251.0, "after a change soon again"


def test_a_queue_that_is_silent_after_a_submission_ends_no_job(monkeypatch, tmp_path):
    jobs = object.__new__(slurm.SlurmJobs)
    jobs.ids, jobs.there, jobs.answered, jobs.folder = {}, {}, slurm.time.monotonic(), tmp_path
    jobs.executor = SimpleNamespace(
        map_array=lambda job, part: [SimpleNamespace(job_id=f"7_{n}") for n, _ in enumerate(part)]
    )
    answers = iter([{}])

    def answer():
        if (states := next(answers, None)) is None:
            raise InputError("squeue fails: no controller")
        return states

    monkeypatch.setattr(slurm, "queue", answer)
    members = [SimpleNamespace(run_id="a")]
    monkeypatch.setattr(slurm, "Job", lambda: None)
    jobs.submit([SimpleNamespace(lead=members[0], members=members)])
    assert jobs.unfinished() == {"a"}, "it is not taken for one that ended without a record"


@pytest.mark.parametrize(
    ("files", "gpus", "calls"), [((), 0, 0), (("own.py",), 0, 1), ((), 1, 1), ((), None, 0)]
)
def test_a_ray_process_with_a_gpu_or_own_code_trains_one_task(files, gpus, calls):
    asked = {}

    class Remote:
        def options(self, **_):
            return self

        def remote(self, task):
            return task

    fake = SimpleNamespace(remote=lambda **options: asked.update(options) or (lambda function: Remote()))
    task = SimpleNamespace(family_files=files, lead=SimpleNamespace(run_id="a"))
    ray.RayJobs(fake, ray.Options(gpus=gpus), None, 1, ray.Head("local")).start(task)
    assert asked["max_calls"] == calls


def test_a_gpu_is_asked_for_where_the_study_is_meant_for_one():
    def gpu(settings, **scale):
        scale = SimpleNamespace(**{"meant_for": "cpu", "device": "auto", "ranks": 1} | scale)
        return launch.engine_of("slurm", settings, scale, None).gpu

    assert [gpu([]), gpu([], meant_for="gpu"), gpu([], device="cuda")] == [False, True, True]
    assert [gpu(["gpus=2"]), gpu(["gpus=0"], meant_for="gpu")] == [True, False]


# A node, and how a job ended


@pytest.fixture
def task(ran):
    """One of the study ``ran``, finished; a ``copy`` of its folder may be written to."""
    folder = ran.folder / "runs" / ran.ids["lstm"]
    member = SimpleNamespace(run_id=folder.name, folder=folder, label="lstm 1x8")
    where = {"tokens": ran.folder, "execution": SimpleNamespace(device="cpu")}
    return SimpleNamespace(lead=member, members=[member], **where)


def test_a_node_that_does_not_see_the_folders_says_which(task, tmp_path):
    remote.check_sees(task)
    elsewhere = SimpleNamespace(folder=tmp_path / "runs" / "x")
    for change, what in (
        ({"lead": elsewhere}, "study's folder"),
        ({"tokens": tmp_path / "x"}, "token"),
    ):
        with pytest.raises(InputError, match=f"the node {os.uname().nodename} does not see the {what}"):
            remote.check_sees(SimpleNamespace(**vars(task) | change))


class Jobs:
    """Ends each job at once; ``end`` is what its node does."""

    def __init__(self, end=lambda task: None):
        self.end, self.submitted, self.stops = end, [], []

    def submit(self, tasks):
        self.submitted += tasks
        for task in tasks:
            self.end(task)

    def unfinished(self):
        return set()

    def reason(self, run_id):
        return "its node is gone"

    def stop(self, *, at_once):
        self.stops.append(at_once)


def outcomes(jobs, task, stops=lambda: 0):
    return [(end.outcome, end.reason) for end in remote.follow(jobs, [task], stops) if isinstance(end, Ended)]


def test_the_folder_says_how_a_job_ended(task, tmp_path):
    assert outcomes(Jobs(), task) == [("done", "")]
    lost = SimpleNamespace(run_id="x", folder=tmp_path / "x", label="x")
    lost = SimpleNamespace(lead=lost, members=[lost])
    write_failure(lost.lead.folder, "of an earlier attempt")
    assert outcomes(Jobs(), lost) == [("failed", "its node is gone")]
    assert read_failure(lost.lead.folder)["reason"] == "its node is gone"
    broken = Jobs(lambda task: write_failure(task.lead.folder, "broken"))
    assert outcomes(broken, lost) == [("failed", "broken")]


def test_after_a_stop_nothing_is_submitted_and_jobs_are_asked_to_end(task, tmp_path):
    lost = SimpleNamespace(run_id="x", folder=tmp_path / "x", label="x")
    lost, jobs = SimpleNamespace(lead=lost, members=[lost]), Jobs()
    assert outcomes(jobs, lost, lambda: 1) == [("stopped", "")]
    assert (jobs.submitted, jobs.stops) == ([], [False])
    assert not (tmp_path / "x").exists()


def test_on_a_node_a_claim_is_waited_for_and_a_failure_is_written(task, monkeypatch):
    answers, waits = iter([("busy", ""), ("done", "")]), []
    monkeypatch.setattr(remote.time, "sleep", waits.append)
    monkeypatch.setattr(worker, "one_core", lambda device: None)
    monkeypatch.setattr(worker, "train_claimed", lambda *_: next(answers))
    monkeypatch.setattr(worker, "fail", lambda task, error: ("failed", repr(error)))
    with StopSignal() as stop:
        assert remote.train_here(task, stop) == "done"
        assert waits == [remote.BUSY_SECONDS]
        assert remote.train_here(task, stop) == "failed", "StopIteration: there is no third answer"
        answers = iter([("busy", "")])
        stop.note()
        assert remote.train_here(task, stop) == "stopped"


# How a study stands


def test_progress_is_written_now_and_then_and_decides_nothing(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_file.time, "monotonic", lambda: now[0])
    heard = []
    report = progress_file.noted(tmp_path, heard.append)
    for done in range(1, 6):
        now[0] += 1.0
        report(Progress("a", "lstm 1x8", done, 100, 64 * done, 3.0, 1e4, 1, 0))
    assert [progress.done for progress in heard] == [1, 2, 3, 4, 5]
    assert progress_file.read(tmp_path).done == 4, "every second second"
    for damaged in ("{", "{}", "[]", '{"x": 1}'):
        (tmp_path / progress_file.NAME).write_text(damaged)
        assert progress_file.read(tmp_path) is None
    progress_file.remove(tmp_path)
    assert progress_file.read(tmp_path) is None


@pytest.mark.parametrize("damaged", ["[1, 2]", '{"run": 7}', "null"])
def test_jobs_that_are_none_are_named(tmp_path, damaged):
    assert queue.job_ids(tmp_path) == {}
    (tmp_path / queue.JOBS).write_text(damaged)
    with pytest.raises(InputError, match=r"slurm\.json: is not a job of each run"):
        queue.job_ids(tmp_path)


def test_every_planned_run_has_a_state(ran, tmp_path, monkeypatch):
    out = shutil.copytree(ran.folder, tmp_path / "out")
    queued, claimed = (out / "runs" / ran.ids[family] for family in ("lstm", "looped"))
    for folder in (queued, claimed):
        (folder / "record.json").unlink()
    files.write_json(out / queue.JOBS, {queued.name: "7_0"})
    monkeypatch.setattr("isoloss.studies.status.queue", lambda user: {"7_0": "PENDING"})
    with files.claim(claimed / "claim.lock"):
        before = sorted(out.rglob("*"))
        states = {run.run_id: run.state for run in status(out)}
    assert (states.pop(queued.name), states.pop(claimed.name)) == ("queued", "running")
    assert sorted(states.values()) == ["done"] * 4 + ["failed"] * 2
    monkeypatch.setattr("isoloss.studies.status.queue", lambda user: {"7_0": "RUNNING"})
    assert {run.run_id: run.state for run in status(out)}[queued.name] == "running"
    monkeypatch.setattr("isoloss.studies.status.queue", lambda user: {"8_0": "RUNNING"})
    known = {run.run_id: (run.state, run.reason) for run in status(out)}
    gone = "its Slurm job 7_0 is no longer in the queue and left no record; the same `isoloss run` goes on"
    assert known[queued.name] == ("waiting", f"{gone} where it was")
    assert known[claimed.name] == ("waiting", "")
    (saved := claimed / "checkpoints" / "update-000000092").mkdir(parents=True)
    stopped = next(run for run in status(out) if run.run_id == claimed.name)
    assert (stopped.state, stopped.reason) == ("waiting", "stopped; goes on from step 92")
    saved.rmdir()
    saved.parent.rmdir()
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    known = {run.run_id: (run.state, run.reason) for run in status(out)}
    silent = "its Slurm job 7_0 may wait or run, which is not known: squeue fails: [Errno 2] No such file"
    assert known[queued.name] == ("waiting", f"{silent} or directory: 'squeue'")
    assert known[claimed.name] == ("waiting", "")
    assert sorted(state for state, _ in known.values()) == ["done"] * 4 + ["failed"] * 2 + ["waiting"] * 2
    assert sorted(out.rglob("*")) == before, "looking leaves nothing"
    json.dumps([run.to_json() for run in status(out)])
