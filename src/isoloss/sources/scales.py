"""Scales: sizes, loops, unique tokens, the position. The loss falls in each: what varies must be an input."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from isoloss import text
from isoloss.laws import Array, Form, registered, rise_together
from isoloss.sources.sweeps import ALIKE, numbers_of
from isoloss.sources.table import ONE_EPOCH, Runs, TableIssue

SIZES = ("params", "tokens", "flops")
OTHERS = ("recurrence", "unique_tokens", "position")
"""More inputs that the loss falls in."""
_NAMED = ("chinchilla", "data-constrained", "loop-total", "context-params")
"""Laws that are named where they take a scale that another law does not."""


def unread_scales(runs: Runs, forms: Sequence[Form], inputs: Mapping[str, Array]) -> Iterator[TableIssue]:
    """Scales that move the loss beside the ``inputs`` of the laws ``forms``, none of which takes them."""
    if not forms or any(form.gives != "loss" for form in forms):
        return
    taken = [runs.columns[name] for name in inputs if name in runs.columns]
    unknown = [name for name in (*SIZES, *OTHERS) if name not in inputs]
    # A law of one's own may have another name for a scale.
    scales = [name for name in unknown if runs.columns.get(name) not in taken]
    unread = moving(inputs, numbers_of(runs.frame, scales))
    sizes = [name for name in unread if name in SIZES]
    for name in unread:
        if name in sizes[1:]:  # as C does, where D is told
            continue
        needed = {*inputs, name}
        takes = {law: set(registered(law).inputs) for law in _NAMED}
        laws = [law for law in _NAMED if needed <= takes[law] <= needed | set(runs.frame.columns)]
        keep = f"keep one value of {kept_by(name, runs.source)} with --where"
        mend = " or ".join([*(f"fit {law}" for law in laws[:1]), keep])
        of = f"{text.listed([form.name for form in forms])} {'does' if len(forms) == 1 else 'do'} not read"
        what = f"the runs differ in {named(name, runs.source)} too, which {of}. {text.capital(mend)}"
        yield TableIssue("unread-scale", "warn", (), what, mend)


def moving(known: Mapping[str, Array], differ: Mapping[str, Array]) -> list[str]:
    """The scales among columns ``differ`` that vary and move the loss beside the ``known`` inputs."""
    scales = [name for name in differ if name in (*SIZES, *OTHERS)]
    return [name for name in scales if differs(differ[name]) and _tells(name, known, differ)]


def named(name: str, source: Mapping[str, Any]) -> str:
    """A scale's name, with how it follows where the table has no such column."""
    rule = source.get("derived", {}).get(name, "")
    return f"{name} ({rule.partition(' = ')[2]})" if rule else name


def kept_by(name: str, source: Mapping[str, Any]) -> str:
    """The table's own column by which ``where`` keeps one value of a scale."""
    rule = source.get("derived", {}).get(name, "")
    ours = rule.split()[-1] if rule else name
    return (source.get("columns") or {}).get(ours, ours)


def differs(column: Array) -> bool:
    """Whether a column holds several values, not one that is rounded; an empty cell is one beside others."""
    filled = column[~np.isnan(column)]
    if len(filled) < len(column):
        return len(filled) > 0
    return bool(np.ptp(filled) > ALIKE * np.abs(filled).max())


def follows(column: Array, known: Mapping[str, Array]) -> bool:
    """Whether a size follows from the one that is ``known``, as along a line of compute-optimal models."""
    (size,) = known.values()
    ratio = column / size
    return not np.isnan(ratio).any() and (
        not differs(ratio) or bool(rise_together(["known", "other"], np.log([size, column])))
    )


def repeated(unique: Array, tokens: Array) -> bool:
    """Whether runs pass more than once over their data."""
    return bool(np.any(tokens > ONE_EPOCH * unique))


def _tells(name: str, known: Mapping[str, Array], differ: Mapping[str, Array]) -> bool:
    """Whether what varies can move the loss of runs whose ``known`` inputs are the same."""
    column = differ[name]
    if name in SIZES:  # of several inputs the FLOPs follow, or are another count of them
        return len(known) == 1 and set(known) <= {*SIZES, *OTHERS} and not follows(column, known)
    if name == "unique_tokens":
        tokens = known.get("tokens", differ.get("tokens"))
        return tokens is None or (repeated(column, tokens) and differs(tokens / column))
    return True
