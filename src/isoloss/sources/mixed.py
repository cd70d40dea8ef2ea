"""Rows of equal inputs that are no seeds: evaluation sets, sources, readings of one plot."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isoloss.neighbours import nearest
from isoloss.sources.naming import plain
from isoloss.sources.repeats import SETTINGS, with_labels
from isoloss.sources.sweeps import TUNED
from isoloss.sources.table import Runs, TableIssue, row_words, share

_SOURCES = frozenset({
    "lab", "laboratory", "organization", "organisation", "source", "paper", "team", "author",
})  # fmt: skip
_NAMED = 4  # of columns in which rows of equal inputs differ
LEAST_DIVERGED, MOST_DIVERGED = 5, 0.1
"""More accused rows than both, of those there are, and something else is wrong with the table."""


def mixtures(runs: Runs, design: Sequence[str]) -> Iterator[TableIssue]:
    """Rows of equal inputs that are no seeds: they differ in a setting, a label, or always the same way."""
    inputs = list(design)
    if not inputs:
        return
    data = with_labels(runs, few=False)
    settings = [name for name in (*SETTINGS, "tokens") if name in data.columns and name not in inputs]
    labels = [name for name in data.columns if name.startswith("label ")]
    repeats = data.filter(pl.len().over(inputs) > 1)
    differ = [name for name in [*settings, *labels] if _differs(repeats, inputs, name, name in labels)]
    if differ:
        words = ", ".join(name.removeprefix("label ") for name in differ[:_NAMED])
        words += f" and {len(differ) - _NAMED} more" if len(differ) > _NAMED else ""
        text = f"rows of equal {', '.join(inputs)} differ in {words}. They are no seeds"
        name = runs.columns.get(differ[0], differ[0].removeprefix("label "))
        value = _value_to_keep(repeats, inputs, differ[0])
        written = f"{value:.15g}" if isinstance(value, float) else f"'{value}'"
        column = name if name.isidentifier() else f'\\"{name}\\"'
        mend = f'keep one with --where "{column} = {written}"'
        yield TableIssue("no-seeds", "warn", (), f"{text}: {mend}", mend)
    elif not {"seed", "run_id"} & set(data.columns) and (gap := _steady_gap(repeats, inputs)):
        text = f"rows of equal {', '.join(inputs)} differ by {100 * gap:.2g}% always the same way"
        text += ": two evaluation sets, or two sources, not seeds?"
        yield TableIssue("stacked", "warn", (), text, "give the column that tells them apart, or keep one")
    for label in labels:
        if (
            plain(label.removeprefix("label ")) in _SOURCES
            and (kinds := data[label].n_unique()) > 1
            and label not in differ
        ):
            text = f"{label.removeprefix('label ')} has {kinds} values: one law over several sources"
            yield TableIssue("mixed-sources", "warn", (), text, "keep one with where")
    if pairs := _paired(runs.frame, inputs):
        text = f"{row_words(pairs)} come in pairs that are nearly equal: two readings of the same runs?"
        yield TableIssue("paired", "warn", pairs, text, "keep one reading, or name the runs with run_id")


def _value_to_keep(repeats: pl.DataFrame, inputs: list[str], name: str) -> Any:
    """Of a rate or a batch the value that is the best of most sizes, else the first."""
    told = repeats.drop_nulls(name)
    if name in TUNED:
        best = told.sort("loss", name).unique(inputs, keep="first", maintain_order=True)
        return best[name].mode().sort()[0]
    return told[name][0]


def _differs(repeats: pl.DataFrame, inputs: list[str], name: str, label: bool) -> bool:
    """Whether rows of equal inputs differ in ``name``; of a label, in values that most sizes share."""
    if repeats.is_empty():
        return False
    kinds = repeats.group_by(inputs).agg(pl.col(name).n_unique())
    if not label:
        return bool((kinds[name] > 1).any())
    size = "params" if "params" in inputs else inputs[0]  # a label of one size alone names a run
    spread = repeats.group_by(name).agg(pl.col(size).n_unique())[size]
    return share(kinds[name] > 1) > 0.5 and share(spread > 1) > 0.5


def _steady_gap(repeats: pl.DataFrame, inputs: list[str]) -> float | None:
    """The mean relative distance of two rows a design, where it is the same over at least 6 designs."""
    pairs = repeats.filter(pl.len().over(inputs) == 2).sort(*inputs, "row")
    if pairs.height < 12 or pairs.height < repeats.height:
        return None
    first, second = np.log(pairs["loss"].to_numpy().reshape(-1, 2)).T
    gap = second - first
    # Of seeds, a mean beyond 6 standard errors comes once in a hundred thousand tables of 6 designs.
    mean, error = abs(float(np.mean(gap))), float(np.std(gap, ddof=1)) / np.sqrt(len(gap))
    return mean if mean > max(8 * error, 1e-4) else None


def many_diverged(runs: Runs, diverged: Mapping[int, str]) -> Iterator[TableIssue]:
    """More rows with a loss far above that of smaller runs than diverge: two kinds of loss in one column?"""
    rows = tuple(row for row, why in diverged.items() if why.startswith("loss "))
    if len(rows) < LEAST_DIVERGED or len(rows) <= MOST_DIVERGED * runs.frame.height:
        return
    text = (
        f"{len(rows)} of {runs.frame.height} rows look diverged: are there losses of two kinds in one column?"
    )
    mend = "keep one kind with where, or --accept many-diverged"
    if name := _telling(with_labels(runs, few=True), rows):
        text = f"{text} {name} tells them apart."
        mend = f"keep one {name} with where, or --accept many-diverged"
    text += f" Row {rows[0]}: {diverged[rows[0]]}"
    yield TableIssue("many-diverged", "refuse", rows, text, mend)


def _telling(data: pl.DataFrame, rows: Sequence[int]) -> str:
    """The label whose values say best which rows are these; '' where none says half of it."""
    marked = data.with_columns(pl.col("row").is_in(list(rows)).alias("marked"))
    share = {"": 0.5}
    for name in data.columns:
        if name.startswith("label "):
            split = marked.group_by(name).agg(pl.col("marked").sum().alias("in"), pl.len())
            wrong = int(split.select(pl.min_horizontal("in", pl.col("len") - pl.col("in")).sum()).item())
            share[name.removeprefix("label ")] = 1 - wrong / min(len(rows), data.height - len(rows))
    return max(share, key=lambda name: share[name])


def _paired(frame: pl.DataFrame, inputs: list[str]) -> tuple[int, ...]:
    """Rows that each have one other row at a small share of the distance to the next, in sizes and loss."""
    names = [name for name in inputs if frame[name].dtype.is_numeric()]
    values = frame.select(*names, "loss").to_numpy()
    if not 16 <= len(values) <= 5000 or not np.all(np.isfinite(values) & (values > 0)):
        return ()
    if len(np.unique(values[:, :-1], axis=0)) < 0.9 * len(
        values
    ):  # exact repeats are seeds, or another finding
        return ()
    logs = np.log(values)
    span = np.ptp(logs, axis=0)
    distance, near = nearest(logs / np.where(span > 0, span, 1), 3)
    mutual = near[near[:, 1], 1] == np.arange(len(near))
    close = mutual & (distance[:, 1] < 0.15 * distance[:, 2]) & (distance[:, 1] < 0.02)
    return tuple(frame["row"].to_numpy()[close].tolist()) if close.mean() > 0.8 else ()
