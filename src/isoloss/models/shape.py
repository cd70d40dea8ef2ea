"""What every family's shape settings share: strict, frozen, unknown keys refused. Imports no torch."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Base of a family's shape: the numbers that fix its weights, and nothing else."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
