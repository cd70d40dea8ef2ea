"""The Slurm engine: cohorts as jobs of an array, through submitit; a preempted job goes on where it was.

Slurm asks a job to end by SIGTERM where it preempts, and shortly before its time is over by the signal that
submitit chose. Both leave a checkpoint; the job is then queued again, by Slurm or by submitit.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from pydantic import Field

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.strict import Strict
from isoloss.studies.engines.messages import Ended, Message
from isoloss.studies.engines.queue import JOBS, command, job_ids, queue
from isoloss.studies.engines.remote import follow, study_folder, train_here
from isoloss.studies.stop import StopSignal
from isoloss.training.task import Task

MOST_IN_ARRAY = 1000
"""Jobs of an array; Slurm's own limit is 1,001 unless a site has set another."""

REQUEUES = 1000
"""How often a job may run out of time: each part of a long run begins where the last one ended."""

KILL_SECONDS = 600.0
"""A preempted job that has saved waits so long to be killed; Slurm may not queue one again that has ended."""

ASK_SECONDS = 1.0, 30.0
"""From one question to Slurm's queue to the next: the first after a change, doubled up to the second."""

OUT_OF_REACH_SECONDS = 600.0
"""A queue that gives no answer for so long ends the command; the jobs go on."""


class Options(Strict):
    """``partition``, ``account``, ``hours``, ``memory``, ``cpus``, ``gpus``: of each job, as of sbatch.

    ``setup``: shell lines before it starts. ``sbatch``: any other option of sbatch, by name.
    ``wait``: follow the jobs to their end, or leave them to Slurm.
    """

    partition: str | None = None
    account: str | None = None
    hours: float = 4.0
    memory: str | None = None
    cpus: int = 1
    gpus: int | None = None
    setup: str | list[str] = Field(default_factory=list[str])
    sbatch: dict[str, str | int] = Field(default_factory=dict[str, str | int])
    wait: bool = True


def run(
    options: Options, workers: int | None, tasks: Sequence[Task], stops: Callable[[], int]
) -> Iterator[Message]:
    """Train the tasks as jobs; ``workers``: at most so many of an array at once.

    Raises InputError as ``check``, and where Slurm refuses the jobs.
    """
    check(options)
    jobs = SlurmJobs(tasks[0], options, workers)
    if options.wait:
        yield from follow(jobs, tasks, stops)
        return
    jobs.submit(tasks)
    for task in tasks:
        yield Ended(task, "queued")


def check(options: Options) -> None:
    """Raises InputError where Slurm or submitit is not here, or Slurm does not answer."""
    if find_spec("submitit") is None:
        mend = "pip install submitit"
        raise InputError("submitit is not installed", where="--engine slurm", mend=mend)
    if shutil.which("sbatch") is None:
        mend = "run the command on a machine of the cluster that has sbatch"
        raise InputError("Slurm is not here (no sbatch)", where="--engine slurm", mend=mend)
    queue()


class Job:
    """What a node runs; submitit asks ``checkpoint`` what to run when the job is queued again."""

    def __call__(self, task: Task) -> str:
        out_of_time = signal.SIGUSR2
        with StopSignal((signal.SIGINT, signal.SIGTERM, out_of_time)) as stop:
            outcome = train_here(task, stop)
            if outcome == "stopped" and stop.last == signal.SIGTERM:
                time.sleep(KILL_SECONDS)
        if outcome == "stopped" and stop.last == out_of_time:
            signal.raise_signal(out_of_time)  # to submitit, which queues the job again and exits
        return outcome

    def checkpoint(self, task: Task) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, task)


class SlurmJobs:
    """Jobs of one study. Which job trains a run is kept in its folder, for later commands to find."""

    def __init__(self, task: Task, options: Options, workers: int | None):
        import submitit

        self.folder, self.answered, self.there = study_folder(task), time.monotonic(), dict[str, str]()
        self.every, self.ask_at = ASK_SECONDS[0], 0.0
        self.ids = job_ids(self.folder)
        setup = [options.setup] if isinstance(options.setup, str) else options.setup
        wanted = {
            "slurm_job_name": f"isoloss-{task.study}",
            "slurm_partition": options.partition,
            "slurm_account": options.account,
            "slurm_time": max(1, round(60 * options.hours)),
            "slurm_mem": options.memory,
            "slurm_cpus_per_task": options.cpus,
            "slurm_gpus_per_node": options.gpus or None,
            "slurm_setup": setup or None,
            "slurm_array_parallelism": workers or MOST_IN_ARRAY,
            "slurm_additional_parameters": {"requeue": True, **options.sbatch},
        }
        self.executor = submitit.AutoExecutor(
            self.folder / "slurm", cluster="slurm", slurm_max_num_timeout=REQUEUES
        )
        self.executor.update_parameters(**{key: value for key, value in wanted.items() if value is not None})

    def submit(self, tasks: Sequence[Task]) -> None:
        there = queue()
        new = [task for task in tasks if self.ids.get(task.lead.run_id) not in there]
        for start in range(0, len(new), MOST_IN_ARRAY):
            part = new[start : start + MOST_IN_ARRAY]
            try:
                jobs = self.executor.map_array(Job(), part)
            except Exception as error:  # submitit's own classes say what sbatch said
                what = f"Slurm refuses the jobs: {str(error).strip().splitlines()[-1]}"
                mend = "see --engine-set partition, account, hours, memory, cpus, gpus and sbatch"
                raise InputError(what, where="--engine slurm", mend=mend) from None
            pairs = zip(part, jobs, strict=True)
            submitted = {member.run_id: job.job_id for task, job in pairs for member in task.members}
            self.ids |= submitted
            self.there |= dict.fromkeys(submitted.values(), "PENDING")  # though the queue may not answer next
            files.write_json(self.folder / JOBS, self.ids)
        self.every, self.ask_at = ASK_SECONDS[0], 0.0

    def unfinished(self) -> set[str]:
        if time.monotonic() >= self.ask_at:
            self.ask()
        return {run_id for run_id, job in self.ids.items() if job in self.there}

    def ask(self) -> None:
        before = self.there
        try:
            self.there, self.answered = queue(), time.monotonic()
        except InputError as error:
            if time.monotonic() - self.answered > OUT_OF_REACH_SECONDS:
                mend = "the jobs go on; run the same command again to follow them"
                raise RunError(error.what, where=error.where, mend=mend) from None
        self.every = ASK_SECONDS[0] if self.there != before else min(2 * self.every, ASK_SECONDS[1])
        self.ask_at = time.monotonic() + self.every

    def reason(self, run_id: str) -> str:
        job = self.ids.get(run_id)
        log = self.folder / "slurm" / f"{job}_0_log.err"
        if not log.is_file():
            unseen = f"its node does not see {self.folder}"
            return f"its Slurm job {job} ended before it began: it was cancelled, or {unseen}"
        said = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return f"its Slurm job {job} ended without a record; its last words: {said[-1] if said else 'none'}"

    def stop(self, *, at_once: bool) -> None:
        """Those that wait are taken back; SIGINT asks a running one for a checkpoint.

        Raises RunError where Slurm does not answer.
        """
        try:
            self.there = queue()  # since the last question jobs may have begun or ended
            mine = [job for job in dict.fromkeys(self.ids.values()) if job in self.there]
            waiting = [job for job in mine if at_once or self.there[job] == "PENDING"]
            if waiting:
                command("scancel", *waiting)
        except InputError as error:
            mend = "the jobs go on; run the same command again to follow them, or end them with scancel"
            raise RunError(error.what, where=error.where, mend=mend) from None
        if running := [job for job in mine if job not in waiting]:
            with suppress(InputError):  # of a job that has ended just now
                command("scancel", "--signal=INT", *running)
        self.every, self.ask_at = ASK_SECONDS[0], 0.0
