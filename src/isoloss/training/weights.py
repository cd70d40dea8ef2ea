"""Weights of one trained member as a safetensors file: arrays and their names, no code."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from isoloss import files

NAME = "weights.safetensors"


def write(path: Path, named: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> None:
    """Write them in one step, in ``dtype`` if given. Copies, since safetensors refuses shared memory."""
    own = {name: tensor.detach().to("cpu", dtype, copy=True).contiguous() for name, tensor in named.items()}
    files.write_bytes(path, save(own))
