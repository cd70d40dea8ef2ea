"""Hugging Face's Trainer: ``trainer_state.json`` in the folder of a run and of each checkpoint. Plain JSON.

``training_args.bin`` could run code and is not opened.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isoloss.errors import InputError
from isoloss.sources.logs.counting import counts
from isoloss.sources.logs.logged import LoggedRun, files_named, object_in, run_name

_CHECKPOINT = re.compile(r"checkpoint-\d+")


def runs(source: str) -> Iterator[LoggedRun]:
    """One run a folder: the log of its newest state, and FLOPs and tokens at each state that is there."""
    root = Path(source)
    states: dict[Path, list[tuple[Path, dict[str, Any]]]] = {}
    for file in files_named(root, "trainer_state.json", "trainer_state.json"):
        folder = file.parent
        folder = folder.parent if _CHECKPOINT.fullmatch(folder.name) else folder
        states.setdefault(folder, []).append((file, _state(file)))
    root = root.parent if root.is_file() else root
    for folder, found in states.items():
        found.sort(key=lambda pair: pair[1]["global_step"])
        file, newest = found[-1]
        rows = [_named(row) for row in newest["log_history"]]
        rows += [_progress(state) for _, state in found]
        settings, counted = counts(folder, file.parent)
        settings["planned_steps"] = newest.get("max_steps")
        origin = f"{file}; params counted from {counted}" if counted else str(file)
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
    other = {
        "loss": "train_loss", "train_loss": "mean_of_training", "num_input_tokens_seen": "tokens",
        "total_flos": "flops",
    }  # fmt: skip
    return {other.get(name, name): value for name, value in row.items() if value or name != "total_flos"}


def _progress(state: dict[str, Any]) -> dict[str, Any]:
    """At a state's step; Trainer writes 0 for tokens and FLOPs that it did not count."""
    done = {"tokens": state.get("num_input_tokens_seen"), "flops": state.get("total_flos")}
    return {"step": state["global_step"]} | {name: value for name, value in done.items() if value}


def _status(state: dict[str, Any]) -> str:
    stopped = state
    for key in ("stateful_callbacks", "TrainerControl", "args", "should_training_stop"):
        stopped = stopped.get(key) if isinstance(stopped, dict) else None
    planned = state.get("max_steps")
    ended = isinstance(planned, int) and 0 < planned <= state["global_step"]
    return "finished" if ended or stopped is True else "running"
