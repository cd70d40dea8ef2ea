"""One run on several devices of this machine: a process each, started by torchrun's elastic launcher.

The first process claims the run's folders and writes to them; the one that started them says how far it is.
"""

import logging
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from isoloss import files
from isoloss.errors import RunError
from isoloss.records.store import read_failure
from isoloss.studies import progress_file
from isoloss.studies.engines.messages import cause
from isoloss.training.device import find
from isoloss.training.distributed import check_ranks
from isoloss.training.task import Progress, Task

LOOK_SECONDS = 0.1
"""Between two looks at the folder, and at whether to stop."""

Answer = tuple[str, str]


def launch(
    rank: Callable[[Task, Any], Answer],
    task: Task,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> Answer:
    """What ``rank`` of the task and of an event, which asks it to stop, answers in the first process.

    Raises RunError where a process dies without a reason, InputError where the devices are not here.
    """
    check_ranks(task.execution.ranks, find(task.execution.device))
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    for member in task.members:
        files.remove_file(member.folder / "failure.json")  # of an earlier attempt
    seen: Progress | None = None
    asked = multiprocessing.get_context("spawn").Event()
    # In a thread of its own the launcher leaves this process's signals alone.
    with ThreadPoolExecutor(1) as thread:
        answers = thread.submit(elastic_launch(config(task), rank), task, asked)
        while not answers.done():
            if should_stop():
                asked.set()
            progress = progress_file.read(task.lead.folder)
            if progress is not None and progress != seen:
                seen = progress
                report(progress)
            wait([answers], timeout=LOOK_SECONDS)
    try:
        answer = answers.result()[0]
    except ChildFailedError as error:
        number, death = error.get_first_failure()
        answer = "failed", f"rank {number} of {task.execution.ranks} ended with {cause(death.exitcode)}"
    if answer[0] != "failed":
        return answer
    if failure := read_failure(task.lead.folder):
        return "failed", failure["reason"]
    raise RunError(answer[1], mend="run the same command again: it goes on from its newest checkpoint")


def config(task: Task) -> Any:
    """Of the launcher: the ranks meet on the loopback device, and one that dies is not started again."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    talkers = [name for name in logging.root.manager.loggerDict if "torch.distributed.elastic" in name]
    for name in [*talkers, "torch.multiprocessing.spawn"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they say of a death is said by us
    return LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=task.execution.ranks,
        run_id=task.lead.run_id,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),  # what ranks print goes where this process's goes
    )
