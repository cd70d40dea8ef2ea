"""Training losses of a cohort under way, read from its newest checkpoint without torch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from isoloss import files
from isoloss.errors import InputError


@dataclass(frozen=True)
class CohortCurve:
    """``total_UK``: loss by update in the order of training, and by member; NaN where there is none yet."""

    checkpoint: str
    run_ids: tuple[str, ...]
    total_UK: NDArray[np.float64]


def newest(folder: Path, known: str = "") -> CohortCurve | None:
    """Of the cohort whose first member's ``folder`` this is; None without a checkpoint newer than ``known``.

    Only the curve is read, whatever the size of the model, and no checksum is taken: it is for looking at.
    """
    for saved in sorted((folder / "checkpoints").glob("update-*"), reverse=True):
        if saved.name <= known:
            return None
        try:
            run_ids = files.read_json(saved / "state.json")["run_ids"]
            with safe_open(saved / "state.safetensors", framework="numpy") as arrays:
                total_UK = np.asarray(arrays.get_tensor("curve")[:, :, 0], dtype=float)
            if total_UK.shape[1] == len(run_ids):
                return CohortCurve(saved.name, tuple(run_ids), total_UK)
        except (OSError, InputError, KeyError, TypeError, IndexError, SafetensorError):
            continue  # being removed, or damaged: the older one will do
    return None
