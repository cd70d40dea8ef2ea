"""Where the runs behind a fit or a forecast came from, as its file tells: checked before anything is read."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter


class _Finding(BaseModel):
    message: str
    kind: str = ""


class _Excluded(BaseModel):
    row: int
    reason: str


class _Sweep(BaseModel):
    message: str
    rows: list[int]


class _Source(BaseModel):
    """What is read of a ``source``; other keys are kept unread."""

    loss_unit: str = ""
    columns: dict[str, str] | None = None
    derived: dict[str, str] = {}
    notes: list[str] = []
    findings: list[_Finding] = []
    excluded: list[_Excluded] = []
    count: str = "params"
    given: int = 0
    flops_rule: str = ""
    flops_factor: float = 1.0
    sweep: _Sweep | None = None
    outliers: list[int] = []
    without_outliers: dict[str, float] = {}
    one_sided: str = ""


_READER = TypeAdapter(dict[str, _Source])


def check_source(source: Mapping[str, Any], rows: Sequence[int] | None) -> None:
    """Raises ValueError for a key of another kind than is written; ``rows`` are those of the runs."""
    sweep = _READER.validate_python({"source": source}, strict=True)["source"].sweep
    if sweep and rows is not None and not set(sweep.rows) & set(rows):
        raise ValueError("source.sweep.rows names none of its runs")
