"""Columns of numbers that nobody reads and that change among the runs, such as a batch size."""

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from isoloss.laws import Array
from isoloss.sources.naming import BATCHES, SETTINGS_BY_NAME, plain
from isoloss.sources.table import Runs, TableIssue

_SIZES = (
    "params", "params_total", "params_executed", "tokens", "unique_tokens", "flops", "recurrence", "position",
)  # fmt: skip
_FEWEST_RUNS = 6
_LEFT = 0.25
"""Share of the variance that powers of the sizes may leave: batches are powers of two, and capped."""


def unread_settings(runs: Runs) -> Iterator[TableIssue]:
    """Settings that change among the runs by no rule of their size and that no input holds.

    By their name, or by few values: losses have many, and what follows from the sizes is no setting of its
    own.
    """
    frame = runs.frame
    sizes = [name for name in _SIZES if name in frame.columns and _positive(frame[name])]
    columns = [name for name in runs.unread.columns if name != "row"]
    if "batch_tokens" in frame.columns:  # the batch, in another unit
        columns = [name for name in columns if plain(name) not in BATCHES]
    if not columns or not sizes:
        return
    keys, batch = [f"size {name}" for name in sizes], pl.col("^batch_tokens$").name.prefix("size ")
    data = frame.select("row", *(pl.col(name).alias(f"size {name}") for name in sizes), batch)
    known = [name for name in data.columns if name != "row"]
    data = data.join(runs.unread, on="row", how="left", maintain_order="left")
    settings: list[str] = []
    named = {name: plain(name) in SETTINGS_BY_NAME for name in columns}
    for name in sorted(columns, key=lambda name: (not named[name], data[name].n_unique())):
        # What follows from the sizes and a setting that is told already, as steps do from a batch, is silent.
        if _changes(data, keys, name, few=not named[name]) and not _constant(data, [*known, *settings], name):
            settings.append(name)
    if settings:
        yield _issue(settings)


def _issue(settings: list[str]) -> TableIssue:
    batch = [f"--column batch_tokens={_quoted(name)}" for name in settings if plain(name) in BATCHES][:1]
    if len(settings) == 1:
        what, mend = f"{settings[0]} changes among the runs and is not used", "keep one value with --where"
        mend = f"name it with {batch[0]}" if batch else mend
    else:
        words = ", ".join(settings[:4]) + (f" and {len(settings) - 4} more" if len(settings) > 4 else "")
        what = f"{words} change among the runs and are not used"
        mend = ", or ".join(["keep one value of each with --where", *batch])
    return TableIssue("unread-setting", "warn", (), f"{what}: {mend}", mend)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w./-]+", name) else f"'{name}'"


def _positive(sizes: pl.Series) -> bool:
    return sizes.dtype.is_numeric() and bool((sizes.is_finite() & (sizes > 0)).fill_null(False).all())


def _changes(data: pl.DataFrame, keys: list[str], name: str, *, few: bool) -> bool:
    """Whether ``name`` has several values by no rule of the sizes ``keys``; ``few``: of three runs each."""
    known = data.drop_nulls([name, *keys]).filter(pl.col(name).is_finite())
    kinds = known[name].n_unique()
    if known.height < _FEWEST_RUNS or kinds < 2 or (few and 3 * kinds > known.height):
        return False
    if _differs(known, keys, name):
        return True
    size_Kn = np.log(known.select(keys).to_numpy().T)
    return not any(_steady(known, key, name) for key in keys) and not ruled(size_Kn, known[name].to_numpy())


def _differs(known: pl.DataFrame, keys: list[str], name: str) -> bool:
    """Whether runs of equal sizes differ in ``name``, in more than one size."""
    kinds = known.group_by(keys).agg(pl.col(name).n_unique())
    return int((kinds[name] > 1).sum()) > 1


def _constant(data: pl.DataFrame, keys: list[str], name: str) -> bool:
    """Whether ``name`` is one value wherever ``keys`` are equal, and they are often enough to tell."""
    kinds = (
        data.drop_nulls([name, *keys]).group_by(keys).agg(pl.len(), pl.col(name).n_unique().alias("kinds"))
    )
    repeated = kinds.filter(pl.col("len") > 1)
    return 2 * repeated["len"].sum() > data.height and bool((repeated["kinds"] == 1).all())


def _steady(known: pl.DataFrame, key: str, name: str) -> bool:
    """Whether ``name`` follows from the one size ``key``, of which there are several runs each."""
    return 3 * known[key].n_unique() <= known.height and not _differs(known, [key], name)


def ruled(size_Kn: Array, value_n: Array) -> bool:
    """Whether values rise or fall with a size, a product or ratio of two, or nearly as powers of them.

    ``size_Kn`` are logs.
    """
    K = len(size_Kn)
    pairs = [size_Kn[i] + sign * size_Kn[j] for i in range(K) for j in range(i) for sign in (1, -1)]
    if any(_monotone(size_n, value_n) for size_n in (*size_Kn, *pairs)):
        return True
    target_n = np.log(value_n) if value_n.min() > 0 else value_n
    design_nK = np.column_stack([np.ones(len(value_n)), *size_Kn])
    theta_K, _, rank, _ = np.linalg.lstsq(design_nK, target_n, rcond=None)
    free = len(target_n) - rank
    left = np.sum((target_n - design_nK @ theta_K) ** 2) / max(free, 1)
    return bool(free > 0 and left < _LEFT * np.var(target_n, ddof=1))


def _monotone(size_n: Array, value_n: Array) -> bool:
    size_n = np.round(size_n, 9)
    steps = [np.diff(value_n[np.lexsort([sign * value_n, size_n])]) for sign in (1, -1)]
    return any(bool(np.all(step >= 0) or np.all(step <= 0)) for step in steps)
