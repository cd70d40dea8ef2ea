"""How a GPU trains a run: how many members as one module, and in how many micro-batches, from its memory.

Two rules, of bytes and of tokens; neither was measured by this package on a GPU. The share of an H100's peak
behind ``STACK_TOKENS`` is that of a prototype: eight models of 16,384 tokens a step ran up to six times as
fast as one.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch

from isoloss import files
from isoloss.models import family, shape_of
from isoloss.studies.estimate import PROCESS_BYTES, bytes_of
from isoloss.studies.plan import PlannedRun
from isoloss.training.device import device_name, find, memory_of
from isoloss.training.settings import Execution
from isoloss.training.speed import tokens_per_second
from isoloss.training.task import Task

STACK_TOKENS = 131_072
"""Tokens a step from which a GPU is busy with a small model."""

LARGEST_PARAMS = 5_000_000
"""Above this size one model fills a GPU by itself."""

MOST_MEMBERS = 64

SHARE = 0.8
"""Of the memory that an estimate may fill: it is one of float32 on a CPU, and libraries want some."""

SECONDS = 1.0
"""Of a calibration, after a warm-up as long."""

CALIBRATION_PAYS = 60.0
"""Seconds that a run must take."""

REMOTE_BYTES = 80e9
"""Memory of a cluster's GPU that this machine cannot ask."""


@cache
def gpu_bytes() -> float:
    return memory_of(torch.device("cuda")) if torch.cuda.is_available() else REMOTE_BYTES


def members_at_once(run: PlannedRun, memory: float | None = None, sharers: float = 1.0) -> int:
    """As many as make a step large enough, and fit beside those of the others that share the GPU."""
    if run.counts.params > LARGEST_PARAMS:
        return 1
    process = PROCESS_BYTES[family(run.settings.family).stacked]
    fit = int((SHARE * (memory or gpu_bytes()) / sharers - process) / (run.memory_bytes - process))
    wanted = -(-STACK_TOKENS // run.settings.batch_tokens)
    return max(1, min(wanted, fit, MOST_MEMBERS))


def execution_on_gpu(
    run: PlannedRun, execution: Execution, memory: float | None = None, sharers: float = 1.0
) -> Execution:
    """With the fewest micro-batches, in powers of two times those asked for, whose estimate fits."""
    shape = shape_of(run.settings.family, run.settings.shape)
    micro_batches, there = execution.micro_batches, memory or gpu_bytes()
    while (
        2 * micro_batches <= run.settings.batch_size
        and not run.settings.shape.get("carry")
        and bytes_of(run.settings, shape, run.counts, micro_batches, there) > SHARE * there / sharers
    ):
        micro_batches *= 2
    return execution.model_copy(update={"micro_batches": micro_batches})


def calibrated(
    run: PlannedRun,
    task_of: Callable[[Sequence[PlannedRun]], Task],
    sharers: float,
    *,
    alike: int,
    say: Callable[[str], None],
) -> int:
    """Members at once: half, just or twice what the rule says, by tokens a second on this machine.

    ``alike``: so many such runs there are; where one cohort takes them all anyhow nothing is timed.

    Measured once for a GPU, its software and a shape, and kept in HOME/calibration.json. On a GPU that is
    shared nothing is: alone there it would be another's speed.
    """
    most = members_at_once(run, sharers=sharers)
    if most == 1 or run.seconds < CALIBRATION_PAYS or sharers > 1.0:
        return most
    counts = sorted({min(count, alike) for count in (most // 2, most, 2 * most)})
    if len(counts) == 1:
        return most
    path, key = files.home() / "calibration.json", what_is_timed(run)
    known: dict[str, dict[str, float]] = files.read_json(path) if path.is_file() else {}
    speeds = known.setdefault(key, {})
    for count in counts:
        if str(count) not in speeds:
            say(f"timing {count} x {run.label} at once on this GPU (once; then kept) ...")
            speeds[str(count)] = speed(run, count, task_of)
            files.write_json(path, known)
    return max(counts, key=lambda count: speeds[str(count)])


def what_is_timed(run: PlannedRun) -> str:
    alike = run.settings.model_copy(update={"seed": 0, "learning_rate": 1.0, "tokens": ()})
    device = device_name(find("auto"))
    return f"{device}, torch {torch.__version__}, {files.hash_of(alike.model_dump(mode='json'))[:16]}"


def speed(run: PlannedRun, members: int, task_of: Callable[[Sequence[PlannedRun]], Task]) -> float:
    """Tokens a second of so many together; 0 where they do not fit."""
    settings = [run.settings.model_copy(update={"seed": seed}) for seed in range(members)]
    try:
        return round(tokens_per_second(task_of([replace(run, settings=one) for one in settings]), SECONDS), 1)
    except torch.OutOfMemoryError:
        return 0.0
    finally:
        gc.collect()
        torch.cuda.empty_cache()
