"""Checkpoints: safetensors and JSON in a folder that appears in one step; the newest two are kept.

Loading falls back to the older one if the newer does not match its checksum, and never runs code.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from isoloss import files
from isoloss.errors import InputError
from isoloss.training.evaluation import PositionSums
from isoloss.training.state import Measured, State, put_back, tensors

FORMAT = 2
KEEP = 2


def save(folder: Path, state: State, run_ids: Sequence[str], notes: dict[str, Any]) -> None:
    """Write ``folder/update-N``. ``notes`` are kept with it (attempt, events, environment)."""
    target = folder / f"update-{state.done:09d}"
    if not target.exists():
        arrays = {name: tensor.contiguous() for name, tensor in tensors(state).items()}
        arrays |= {f"trunk/{name}": tensor.contiguous() for name, tensor in (state.trunk or {}).items()}
        arrays["curve"] = torch.from_numpy(state.curve_UKP)
        measured = [describe(number, m, arrays) for number, m in enumerate(state.measured)]
        with files.new_folder(target) as place:
            whole = copies_of_views(arrays)
            files.replace_file(place / "state.safetensors", lambda path: save_file(whole, path))
            scalars = {
                "format": FORMAT,
                "run_ids": list(run_ids),
                "segment": state.segment,
                "step": state.step,
                "done": state.done,
                "diverged": state.diverged,
                "measured": measured,
                "wall_seconds": state.wall_seconds,
                "cpu_seconds": state.cpu_seconds,
                "sha256": files.sha256(place / "state.safetensors"),
                "notes": notes,
            }
            files.write_json(place / "state.json", scalars)
    for old in sorted(folder.glob("update-*"))[:-KEEP]:
        files.remove_folder(old)


def copies_of_views(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """safetensors refuses tensors that share memory, as an embedding used at both ends might."""
    return {name: tensor.detach().cpu().clone() for name, tensor in arrays.items()}


def describe(number: int, measured: Measured, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """The JSON half of one evaluation; its float64 sums go to ``arrays``."""
    members: list[dict[str, Any] | None] = []
    for k, sums in enumerate(measured.sums):
        if sums is not None:
            for field, array in enumerate(sums.arrays):
                arrays[f"measured.{number}.{k}.{field}"] = torch.from_numpy(array)
        members.append(None if sums is None else {"parts": list(sums.parts), "windows": sums.windows})
    return {"step": measured.step, "branch": measured.branch, "members": members}


def restore(folder: Path, state: State, run_ids: Sequence[str]) -> dict[str, Any] | None:
    """Put the newest usable checkpoint of these runs into ``state``; its notes, or None if there is none.

    One that is damaged, of another format or of another cohort is removed: it could never be used, and would
    be taken for newer than those that this attempt is going to write.
    """
    for saved in sorted(folder.glob("update-*"), reverse=True):
        try:
            scalars = files.read_json(saved / "state.json")
            mine = scalars["format"] == FORMAT and scalars["run_ids"] == list(run_ids)
            whole = files.sha256(saved / "state.safetensors") == scalars["sha256"]
            arrays = load_file(saved / "state.safetensors") if mine and whole else None
        except (FileNotFoundError, KeyError, TypeError, InputError, SafetensorError):
            arrays = None
        if arrays is not None:
            fill(state, scalars, arrays)
            return scalars["notes"]
        files.remove_folder(saved)
    return None


def fill(state: State, scalars: dict[str, Any], arrays: dict[str, Tensor]) -> None:
    put_back(state, arrays)
    trunk = {name.removeprefix("trunk/"): t for name, t in arrays.items() if name.startswith("trunk/")}
    state.trunk = trunk or None
    state.curve_UKP = arrays["curve"].numpy().copy()
    for name in ("segment", "step", "done", "diverged", "wall_seconds", "cpu_seconds"):
        setattr(state, name, scalars[name])
    state.measured = [
        Measured(
            entry["step"],
            entry["branch"],
            [None if m is None else read_sums(number, k, m, arrays) for k, m in enumerate(entry["members"])],
        )
        for number, entry in enumerate(scalars["measured"])
    ]


def read_sums(number: int, k: int, member: dict[str, Any], arrays: dict[str, Tensor]) -> PositionSums:
    fields = [arrays[f"measured.{number}.{k}.{field}"].numpy().copy() for field in range(4)]
    return PositionSums(tuple(member["parts"]), *fields, windows=member["windows"])
