"""Hugging Face's Trainer: ``trainer_state.json`` in the folder of a run and of each checkpoint. Plain JSON.

``training_args.bin`` could run code and is not opened.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from isoloss.errors import InputError
from isoloss.sources.logs.counting import WITH_HEAD, counts
from isoloss.sources.logs.logged import LoggedRun, files_named, object_in, run_name

_CHECKPOINT = re.compile(r"checkpoint-\d+")


def runs(source: str) -> Iterator[LoggedRun]:
    """One run a folder: the log of its newest state, and counts by all the states that are there."""
    root = Path(source)
    states: dict[Path, list[tuple[Path, dict[str, Any]]]] = {}
    for file in files_named(root, "trainer_state.json", "trainer_state.json"):
        folder = file.parent
        folder = folder.parent if _CHECKPOINT.fullmatch(folder.name) else folder
        states.setdefault(folder, []).append((file, _state(file)))
    root = root.parent if root.is_file() else root
    for folder, checkpoints in states.items():
        checkpoints.sort(key=lambda pair: pair[1]["global_step"])
        file, newest = checkpoints[-1]
        settings, counted = counts(folder, file.parent)
        head = settings.pop(WITH_HEAD, None)
        tokens = _by_step({state["global_step"]: _tokens(state, head) for _, state in checkpoints})
        flops = _by_step({} if settings else {s["global_step"]: s.get("total_flos") for _, s in checkpoints})
        rows = [_named(row) for row in newest["log_history"]]
        steps = {row["step"] for row in rows if isinstance(row.get("step"), int)}
        rows[:0] = [{"step": step, "tokens": tokens(step), "flops": flops(step)} for step in sorted(steps)]
        settings["planned_steps"] = newest.get("max_steps")
        origin = f"{file}; params {f'counted from {counted}' if counted else 'with the head, from FLOPs'}"
        name = run_name(folder, root) if folder.is_relative_to(root) else folder.resolve().name
        yield LoggedRun(name, origin, rows, settings, _status(newest))


def _state(file: Path) -> dict[str, Any]:
    state = object_in(file)
    log = state.get("log_history")
    steps = isinstance(state.get("global_step"), int)
    if not (steps and isinstance(log, list) and all(isinstance(row, dict) for row in log)):
        mend = "name the folder that Trainer wrote to"
        raise InputError("is no state of a trainer", where=str(file), mend=mend)
    return state


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """Trainer calls the training loss ``loss``, and its mean over the whole run ``train_loss``."""
    other = {"loss": "train_loss", "train_loss": "mean_of_training", "num_input_tokens_seen": "tokens"}
    return {other.get(name, name): value for name, value in row.items()}


def _tokens(state: dict[str, Any], params: int | None) -> float | None:
    """As counted, 0 being not counted; else out of FLOPs = 6 params tokens, head included."""
    return state.get("num_input_tokens_seen") or (params and state.get("total_flos", 0) / (6 * params))


def _by_step(done: dict[int, float | None]) -> Callable[[int], float | None]:
    """A count at any step: as at the states; between them where all have the same number a step."""
    known = {step: float(count) for step, count in done.items() if step and count}
    rates = [count / step for step, count in known.items()]
    steady = len(rates) > 1 and max(rates) < min(rates) * (1 + 1e-9)
    return lambda step: known.get(step, rates[0] * step if steady else None)


def _status(state: dict[str, Any]) -> str:
    stopped = state
    for key in ("stateful_callbacks", "TrainerControl", "args", "should_training_stop"):
        stopped = stopped.get(key) if isinstance(stopped, dict) else None
    planned = state.get("max_steps")
    ended = isinstance(planned, int) and 0 < planned <= state["global_step"]
    return "finished" if ended or stopped is True else "running"
