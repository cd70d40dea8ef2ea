"""Checkpoints: safetensors and JSON in a folder that appears in one step; the newest two are kept.

Loading falls back to the older one if the newer does not match its checksum, and never runs code.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.training.distributed import ALONE, Ranks, gathered, parts
from isoloss.training.evaluation import PositionSums
from isoloss.training.state import Measured, State, beginning_with, put_back, tensors

FORMAT = 3
KEEP = 2
SCALARS = ("segment", "step", "done", "diverged", "wall_seconds", "cpu_seconds")
"""Fields of the state that JSON holds as they are."""


def save(
    folder: Path, state: State, run_ids: Sequence[str], notes: dict[str, Any], ranks: Ranks = ALONE
) -> None:
    """Write ``folder/update-N``. ``notes`` are kept with it (attempt, events, environment).

    Ranks must all call it; any number of them can go on from it.
    """
    target = folder / f"update-{state.done:09d}"
    arrays = tensors(state) | {f"trunk/{name}": tensor for name, tensor in (state.trunk or {}).items()}
    arrays = gathered(arrays, ranks)
    if not ranks.leads:
        return
    if not target.exists():
        arrays["curve"] = torch.from_numpy(state.curve_UKP)
        measured = [describe(number, m, arrays) for number, m in enumerate(state.measured)]
        with files.new_folder(target) as part:
            write_tensors(part / "state.safetensors", arrays)
            values = {
                "format": FORMAT,
                "run_ids": list(run_ids),
                **{name: getattr(state, name) for name in SCALARS},
                "measured": measured,
                "sha256": files.sha256(part / "state.safetensors"),
                "notes": notes,
            }
            files.write_json(part / "state.json", values)
    for old in sorted(folder.glob("update-*"))[:-KEEP]:
        files.remove_folder(old)


def write_tensors(path: Path, arrays: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> None:
    """A safetensors file: arrays and their names, no code; in ``dtype`` if given.

    Copies, since safetensors refuses tensors that share memory, as an embedding used at both ends might.
    """
    whole = {name: t.detach().to("cpu", dtype, copy=True).contiguous() for name, t in arrays.items()}
    files.replace_file(path, lambda temporary: save_file(whole, temporary))


def describe(number: int, measured: Measured, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """The JSON half of one evaluation; its float64 sums go to ``arrays``."""
    members: list[dict[str, Any] | None] = []
    for k, sums in enumerate(measured.sums):
        if sums is not None:
            for field, array in enumerate(sums.arrays):
                arrays[f"measured.{number}.{k}.{field}"] = torch.from_numpy(array)
        members.append(None if sums is None else {"parts": list(sums.parts), "windows": sums.windows})
    if measured.sliding_KGN is not None:
        arrays[f"measured.{number}.sliding"] = torch.from_numpy(measured.sliding_KGN)
    return {"step": measured.step, "branch": measured.branch, "members": members}


def restore(
    folder: Path, state: State, run_ids: Sequence[str], ranks: Ranks = ALONE
) -> dict[str, Any] | None:
    """Put the newest usable checkpoint of these runs into ``state``; its notes, or None if there is none.

    Ranks must all call it; RunError where they do not read the same.

    One that is damaged, of another format or of another cohort is removed: it could never be used, and would
    be taken for newer than those that this attempt is going to write.
    """
    notes = None
    for saved in sorted(folder.glob("update-*"), reverse=True):
        if (content := read(saved, run_ids)) is not None:
            values, arrays = content
            fill(state, values, arrays, ranks)
            notes = values["notes"]
            break
        files.remove_folder(saved)
    if ranks.any(float(ranks.mean(torch.tensor(float(state.done)))) != state.done):
        raise RunError("its ranks read different checkpoints", where=str(folder), mend="run it again")
    return notes


def read(saved: Path, run_ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Both halves of a checkpoint, None if it cannot be used."""
    try:
        values = files.read_json(saved / "state.json")
        mine = values["format"] == FORMAT and values["run_ids"] == list(run_ids)
        if mine and files.sha256(saved / "state.safetensors") == values["sha256"]:
            return values, load_file(saved / "state.safetensors")
    except (FileNotFoundError, KeyError, TypeError, InputError, SafetensorError):
        pass
    return None


def fill(state: State, values: dict[str, Any], arrays: dict[str, Tensor], ranks: Ranks) -> None:
    held = tensors(state)
    put_back(state, parts(arrays, held, ranks))
    state.trunk = parts(beginning_with("trunk/", arrays), held, ranks) or None
    state.curve_UKP = arrays["curve"].numpy().copy()
    for name in SCALARS:
        setattr(state, name, values[name])
    state.measured = [
        Measured(
            entry["step"],
            entry["branch"],
            [None if m is None else read_sums(number, k, m, arrays) for k, m in enumerate(entry["members"])],
            arrays[key].numpy().copy() if (key := f"measured.{number}.sliding") in arrays else None,
        )
        for number, entry in enumerate(values["measured"])
    ]


def read_sums(number: int, k: int, member: dict[str, Any], arrays: dict[str, Tensor]) -> PositionSums:
    fields = [arrays[f"measured.{number}.{k}.{field}"].numpy().copy() for field in range(4)]
    return PositionSums(tuple(member["parts"]), *fields, windows=member["windows"])
