"""Ratios of times in words: who is faster, by how much, or that it cannot be told from these repeats."""

from collections.abc import Sequence

from isoloss.teach.race.counts import ALONE
from isoloss.teach.result import Row


def factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def winner(row: Row, a: str, b: str) -> str | None:
    """The faster of two, if the interval of a's time over b's leaves out 1."""
    return b if row["low"] > 1 else a if row["high"] < 1 else None


def by(row: Row) -> str:
    """The winner's factor with its interval; the loser's time over the winner's."""
    low, value, high = row["low"], row["value"], row["high"]
    if high < 1:
        low, value, high = 1 / high, 1 / value, 1 / low
    return f"{factor(value)} times, {factor(low)} to {factor(high)}"


def compared(rows: Sequence[Row], a: str, b: str, at: str, *, numbers: bool = True) -> str:
    """Who is faster where; ``at`` names the column of places, and its first letter stands for it.

    Three places or more without a gap are named by their ends alone: the tables hold them all.
    """
    letter, parts = {"length": "T", "n_before": "n"}[at], []
    order = sorted(row[at] for row in rows)
    for name in (b, a, None):
        own = sorted((row for row in rows if winner(row, a, b) == name), key=lambda row: row[at])
        if not own:
            continue
        places = [f"{row[at]:,}" + (f" ({by(row)})" if numbers else "") for row in own]
        begin = order.index(own[0][at])
        if len(own) > 2 and order[begin : begin + len(own)] == [row[at] for row in own]:
            where = f"every {letter} measured from {places[0]} to {places[-1]}"
        else:
            where = f"{letter} = {', '.join(places)}"
        said = f"{the(name)} is faster" if name else f"no clear difference between {the(a)} and {the(b)}"
        parts.append(f"{said} at {where}")
    return "; ".join(parts)


def the(name: str) -> str:
    return name if name == ALONE.name else f"the {name}"


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
