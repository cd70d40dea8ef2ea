"""Columns that no forecast was asked by: an error or a doubt."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoloss import text
from isoloss.errors import InputError
from isoloss.laws import Array, rise_together
from isoloss.sources.row_checks import ONE_EPOCH
from isoloss.sources.sweeps import ALIKE, TUNED

SIZES = ("params", "tokens", "flops")
OTHERS = ("recurrence", "unique_tokens", "position")
"""More inputs that the loss falls in."""
Doubt = dict[str, Any]
"""A doubt as the ``source`` of a result carries it, beside those of the table's checks."""


def check_scales(
    known: Mapping[str, Array],
    differ: Mapping[str, Array],
    *,
    derived: Mapping[str, str] | None = None,
    written: bool = False,
) -> None:
    """Raises InputError for a size in columns ``differ`` that moves the loss beside the ``known`` inputs.

    ``derived`` has the rule of a column that the table has not, as of unique tokens from epochs.
    ``written``: in a file that carries runs, of which no rows can be left out.
    """
    table = "give the table itself and " if written else ""
    for name, column in differ.items():
        if name in TUNED or not _differs(column) or not _tells(name, column, known):
            continue
        rule = (derived or {}).get(name, "")
        column_kept = rule.split()[-1] if rule else name  # a table keeps rows by a column of its own
        named = f"{name} ({rule.partition(' = ')[2]})" if rule else name
        if empty := int(np.isnan(column).sum()):  # a plain model beside looped ones, or a value forgotten
            what = f"{named} is empty in {empty:,} of {text.plural(len(column), 'run')}"
            mend = f"fill {column_kept} in, or keep one value of it with where"
            raise InputError(what, where="forecast", mend=mend)
        asked = text.listed(list(known))
        keep = f"{table}keep one value of {column_kept} with where"
        mend = f"give a value of {name} beside {asked}, or {keep}"
        if name in OTHERS:  # a plan takes none
            mend = f"{keep}, or give forecast or design --input {name}="
        raise InputError(f"the runs differ in {named} too", where="forecast", mend=mend)


def _differs(column: Array) -> bool:
    """Whether a column holds several values, not one that is rounded; an empty cell is one beside others."""
    filled = column[~np.isnan(column)]
    if len(filled) < len(column):
        return len(filled) > 0
    return bool(np.ptp(filled) > ALIKE * np.abs(filled).max())


def _tells(name: str, column: Array, known: Mapping[str, Array]) -> bool:
    """Whether what varies can move the loss of runs whose ``known`` inputs are the same."""
    if name in SIZES:  # of several inputs the FLOPs follow, or are another count of them
        return len(known) == 1 and not _follows(column, known)
    if name == "unique_tokens":
        return "tokens" not in known or (_repeated(column, known) and _differs(known["tokens"] / column))
    return True


def _follows(column: Array, known: Mapping[str, Array]) -> bool:
    """Whether a size follows from the one that is ``known``, as along a line of compute-optimal models."""
    (size,) = known.values()
    ratio = column / size
    return not np.isnan(ratio).any() and (
        not _differs(ratio) or bool(rise_together(["known", "other"], np.log([size, column])))
    )


def _repeated(unique: Array, known: Mapping[str, Array]) -> bool:
    return "tokens" in known and bool(np.any(known["tokens"] > ONE_EPOCH * unique))


def unasked_doubts(known: Mapping[str, Array], differ: Mapping[str, Array]) -> list[Doubt]:
    """Of a rate or a batch in ``differ`` that changes by no rule of the ``known`` sizes, and of what each
    run has in common: a line of sizes, data that are repeated.
    """
    doubt = "changes from run to run and the forecast does not use it"
    out = [
        _doubt("tuned", f"{name} {doubt}", f"keep the best {name} of each size")
        for name in TUNED
        if name in differ and not _by_rule(differ[name], known)
    ]
    line = [name for name in ("params", "tokens") if len(known) == 1 and _on_line(differ.get(name), known)]
    if line:
        follow = f"{text.listed(line)} {'follows' if len(line) == 1 else 'follow'} {next(iter(known))}"
        out.append(_doubt("one-line", f"{follow} in these runs: the forecast holds on their line alone", ""))
    unique = differ.get("unique_tokens")
    if unique is not None and _repeated(unique, known):
        out.append(_doubt("repeated", _repeat_words(unique, known["tokens"]), ""))
    return out


def _on_line(column: Array | None, known: Mapping[str, Array]) -> bool:
    return column is not None and _differs(column) and _follows(column, known)


def _repeat_words(unique: Array, tokens: Array) -> str:
    if _differs(unique):
        times = text.number(float(tokens[0] / unique[0]), 3)
        return f"each run sees its data {times} times: so does the forecast"
    return f"the runs repeat {text.count(float(unique[0]))} unique tokens: so does the forecast"


def sweep_doubt(message: str) -> Doubt:
    """That the best of each size was kept."""
    return _doubt("sweep", message, "")


def _doubt(kind: str, message: str, mend: str) -> Doubt:
    return {"kind": kind, "rows": [], "message": message, "mend": mend}


def _by_rule(column: Array, known: Mapping[str, Array]) -> bool:
    """Whether a rate falls with a size, or a batch grows, as a recipe has it; or whether it stands still."""
    filled_n = ~np.isnan(column)
    column, inputs = column[filled_n], [size[filled_n] for size in known.values()]
    if not _differs(column):
        return True
    sizes = [*inputs, np.prod(inputs, axis=0)]
    steps = [np.diff(column[np.lexsort([column, size])]) for size in sizes]
    steps += [np.diff(column[np.lexsort([-column, size])]) for size in sizes]
    return any(np.all(step >= 0) or np.all(step <= 0) for step in steps)
