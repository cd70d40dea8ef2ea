"""The Ray engine: a cohort is a task of a Ray cluster, sent again to another node when its own is lost.

The task goes on from the checkpoint that the lost one left in the study's folder.
"""

import os
import platform
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import Any

from isoloss.errors import InputError, RunError
from isoloss.strict import Strict
from isoloss.studies.engines.messages import Message
from isoloss.studies.engines.remote import check_sees, follow, train_here
from isoloss.studies.stop import StopSignal
from isoloss.training.task import Task
from isoloss.version import __version__

ASK_SECONDS = 2.0
"""Between two questions to the head."""

RAYS_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Of the environment: after so many seconds without a head, 60 unless set, Ray ends the process."""


class Options(Strict):
    """``address``: of a cluster; else RAY_ADDRESS, else one made on this machine for this study.

    ``cpus``, ``gpus``: what a cohort takes of a node; a part of a GPU lets several share it. ``retries``:
    nodes that a cohort may lose before it fails.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float | None = None
    retries: int = 3


def run(
    options: Options, workers: int | None, tasks: Sequence[Task], stops: Callable[[], int]
) -> Iterator[Message]:
    """Train the tasks on the cluster; ``workers``: at most so many at once.

    Raises InputError where Ray is missing, not reachable, without such a node, or a node sees another folder;
    RunError where the cluster is lost.
    """
    with redirect_stdout(sys.stderr):  # Ray tells of lost nodes there, where a result is to stand alone
        ray, head = connect(options, workers)
        try:
            places = nodes_for(ray, options, tasks[0], head, stops)
            yield from follow(RayJobs(ray, options, workers, places, head), tasks, stops)
        except ConnectionError as error:  # of an address ray://, after half a minute of tries
            raise head.lost(f"is lost ({error})") from None
        finally:
            ray.shutdown()


class Head:
    """The cluster's first machine, without which nothing is sent or heard.

    Half of Ray's patience is waited for it: Ray says no word of how to go on.
    """

    def __init__(self, address: str):
        self.address, self.heard, self.ask_at = address, time.monotonic(), 0.0
        self.patience = float(os.environ.get(RAYS_PATIENCE, "60")) / 2

    def check(self) -> None:
        """Raises RunError where it has been silent for too long."""
        if (now := time.monotonic()) < self.ask_at:
            return
        try:
            check_answers(self.address)
            self.heard = time.monotonic()
        except OSError as error:
            if now - self.heard > self.patience:
                raise self.lost(f"has not answered for {now - self.heard:.0f} seconds ({error})") from None
        self.ask_at = time.monotonic() + ASK_SECONDS

    def lost(self, what: str) -> RunError:
        mend = "start a cluster, or take --engine local, and run the same command: it goes on where it was"
        return RunError(f"the Ray cluster at {self.address} {what}", where="--engine ray", mend=mend)


def check(options: Options) -> None:
    """Raises InputError where Ray is not installed, or no cluster answers at the address."""
    if find_spec("ray") is None:
        raise InputError("Ray is not installed", where="--engine ray", mend="pip install ray")
    address = address_of(options)
    try:
        check_answers(address)
    except (OSError, ValueError) as error:
        raise no_cluster(address, error) from None


def address_of(options: Options) -> str:
    return options.address or os.environ.get("RAY_ADDRESS") or "local"


def no_cluster(address: str, error: Exception) -> InputError:
    what = f"no Ray cluster answers at {address} ({str(error).splitlines()[0]})"
    mend = "start it with `ray start --head` and name its address: --engine-set address=HOST:6379"
    return InputError(what, where="--engine ray", mend=mend)


def connect(options: Options, workers: int | None) -> tuple[Any, Head]:
    """The module, with a cluster behind it, and the head of that. Raises InputError as ``check``."""
    check(options)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    address = address_of(options)
    new, on_sigterm = address == "local", signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address,
            num_cpus=workers if new else None,
            include_dashboard=False if new else None,
            log_to_driver=False,
            configure_logging=False,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise no_cluster(address, error) from None
    finally:
        if threading.current_thread() is threading.main_thread():  # Ray's own keeps no checkpoint
            signal.signal(signal.SIGTERM, on_sigterm or signal.SIG_DFL)
    known = address not in ("local", "auto")
    return ray, Head(address if known else ray.get_runtime_context().gcs_address)


def check_answers(address: str) -> None:
    """Raises OSError or ValueError where nobody listens: Ray itself would try for many minutes."""
    if address not in ("local", "auto"):
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not port.isdigit():
            raise ValueError("an address is HOST:PORT")
        socket.create_connection((host, int(port)), timeout=10).close()


def nodes_for(ray: Any, options: Options, task: Task, head: Head, stops: Callable[[], int]) -> int:
    """How many cohorts the cluster can train at once, after asking each node that can train one.

    No answer is waited for after a stop. Raises InputError where there is no such node, or where one lacks
    this isoloss, the folder or the text; RunError where the cluster is lost.
    """
    needs = {"CPU": options.cpus, "GPU": options.gpus or 0.0}
    able, places = list[str](), 0
    for node in ray.nodes():
        has = node["Resources"]
        shares = [int(has.get(name, 0.0) / need) for name, need in needs.items() if need]
        if node["Alive"] and min(shares) > 0:
            able.append(node["NodeID"])
            places += min(shares)
    if not able:
        wants = " and ".join(f"{need:g} {name}" for name, need in needs.items() if need)
        mend = "start such a node, or ask for less: --engine-set gpus=0"
        raise InputError(f"no node of the cluster has {wants}", where="--engine ray", mend=mend)
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    ask = ray.remote(num_cpus=0, max_retries=0)(look_around)
    strategies = [affinity(node, soft=False) for node in able]
    pending = [ask.options(scheduling_strategy=there).remote(task, __version__) for there in strategies]
    answers, silent = list[Any](), pending
    while silent and not stops():
        head.check()
        answers, silent = ray.wait(pending, num_returns=len(pending), timeout=1.0)
    for answer in answers:
        try:
            complaint = ray.get(answer)
        except ray.exceptions.RayError as error:
            complaint = InputError(
                f"a node cannot run isoloss ({str(error).strip().splitlines()[-1]})",
                where="--engine ray",
                mend=f"install isoloss {__version__} on every node",
            )
        if complaint is not None:
            raise complaint
    return places


def look_around(task: Task, version: str) -> InputError | None:
    """On a node: what is not as on the machine of the command."""
    try:
        check_sees(task)
    except InputError as error:
        return error
    if version == __version__:
        return None
    what = f"the node {platform.node()} has isoloss {__version__}, this machine {version}"
    return InputError(what, where="--engine ray", mend="install the same version on every node")


def train_on_node(task: Task) -> None:
    """On a node: Ray's cancelling is a SIGINT, which asks for a checkpoint."""
    check_sees(task)
    with StopSignal() as stop:
        train_here(task, stop)


class RayJobs:
    """``jobs``: the futures of what runs or has run, ``queue``: what Ray is not told of yet."""

    def __init__(self, ray: Any, options: Options, workers: int | None, places: int, head: Head):
        self.ray, self.options, self.most, self.head = ray, options, workers or 2 * places, head
        self.queue: deque[Task] = deque()
        self.jobs: dict[str, Any] = {}
        self.running: set[str] = set()

    def submit(self, tasks: Sequence[Task]) -> None:
        self.queue.extend(tasks)

    def unfinished(self) -> set[str]:
        self.head.check()
        while self.queue and len(self.running) < self.most:
            task = self.queue.popleft()
            self.jobs[task.lead.run_id] = self.start(task)
            self.running.add(task.lead.run_id)
        refs = [self.jobs[run_id] for run_id in self.running]
        ready = set(self.ray.wait(refs, num_returns=len(refs), timeout=0)[0]) if refs else set()
        self.running = {run_id for run_id in self.running if self.jobs[run_id] not in ready}
        return self.running | {task.lead.run_id for task in self.queue}

    def start(self, task: Task) -> Any:
        """Send it; a process that took code of the user, or memory of a GPU, trains no other task."""
        remote = self.ray.remote(
            num_cpus=self.options.cpus,
            num_gpus=self.options.gpus or 0,
            max_retries=self.options.retries,
            max_calls=1 if task.family_files or self.options.gpus else 0,
        )
        return remote(train_on_node).options(name=task.lead.run_id).remote(task)

    def reason(self, run_id: str) -> str:
        try:
            self.ray.get(self.jobs[run_id])
        except self.ray.exceptions.LocalRayletDiedError:
            raise self.head.lost("has lost this machine: its raylet has ended") from None
        except Exception as error:  # whatever ended the task is the reason
            lines = [line for line in str(error).splitlines() if line.strip()]
            return f"its Ray task ended with {type(error).__name__}: {lines[-1].strip() if lines else ''}"
        return "its Ray task left no record: does its node see the study's folder?"

    def stop(self, *, at_once: bool) -> None:
        self.queue.clear()
        for run_id in self.running:
            self.ray.cancel(self.jobs[run_id], force=at_once)
