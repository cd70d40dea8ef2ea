"""Columns that no forecast was asked by: an error or a doubt."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoloss import text
from isoloss.errors import InputError
from isoloss.laws import Array
from isoloss.sources.scales import OTHERS, differs, follows, kept_by, moving, named, repeated
from isoloss.sources.sweeps import TUNED

Doubt = dict[str, Any]
"""A doubt as the ``source`` of a result carries it, beside those of the table's checks."""


def check_scales(
    known: Mapping[str, Array],
    differ: Mapping[str, Array],
    source: Mapping[str, Any],
    *,
    written: bool = False,
) -> None:
    """Raises InputError for a size in columns ``differ`` that moves the loss beside the ``known`` inputs.

    ``source`` tells of their table. ``written``: in a file that carries runs, of which no rows can be left
    out.
    """
    table = "give the table itself and " if written else ""
    for name in moving(known, differ):
        called, column = named(name, source), kept_by(name, source)
        empty = int(np.isnan(differ[name]).sum())
        if empty:  # a plain model beside looped ones, or a value forgotten
            what = f"{called} is empty in {empty:,} of {text.plural(len(differ[name]), 'run')}"
            mend = f"fill {column} in, or keep one value of it with where"
            raise InputError(what, where="forecast", mend=mend)
        asked = text.listed(list(known))
        keep = f"{table}keep one value of {column} with where"
        mend = f"give a value of {name} beside {asked}, or {keep}"
        if name in OTHERS:  # a plan takes none
            mend = f"{keep}, or give forecast or design --input {name}="
        raise InputError(f"the runs differ in {called} too", where="forecast", mend=mend)


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
    if unique is not None and "tokens" in known and repeated(unique, known["tokens"]):
        out.append(_doubt("repeated", _repeat_words(unique, known["tokens"]), ""))
    return out


def _on_line(column: Array | None, known: Mapping[str, Array]) -> bool:
    return column is not None and differs(column) and follows(column, known)


def _repeat_words(unique: Array, tokens: Array) -> str:
    if differs(unique):
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
    if not differs(column):
        return True
    sizes = [*inputs, np.prod(inputs, axis=0)]
    steps = [np.diff(column[np.lexsort([column, size])]) for size in sizes]
    steps += [np.diff(column[np.lexsort([-column, size])]) for size in sizes]
    return any(np.all(step >= 0) or np.all(step <= 0) for step in steps)
