"""Tell the first letter: what the LSTM's start changes, and attention beside it."""

from isoloss.figures.figure import Figure
from isoloss.teach.amnesia import charts
from isoloss.teach.amnesia.names import ATTENTION, BIAS_3, DEFAULT, LSTMS
from isoloss.teach.amnesia.outcomes import best, cells, outcomes
from isoloss.teach.amnesia.settings import FirstLetterSettings
from isoloss.teach.amnesia.verdicts import (
    account,
    bests,
    counted,
    headline,
    span,
    strings,
    table_lines,
    verdict,
)
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.text import percent

NAMES = ("length", "width")
BASELINES = (("chance", "chance, 1 in 26"),)


def basis(settings: FirstLetterSettings, tables: Tables) -> Basis:
    return counted(tables["curves"], settings.seeds)


def sentences(settings: FirstLetterSettings, tables: Tables) -> list[Sentence]:
    found: list[Sentence] = []
    for (length, width), rows in cells(tables["curves"], NAMES).items():
        where = "" if not found else f"-{length}-{width}"
        found.extend(Sentence(key=key + where, text=f"{length} letters: {text}") for key, text in told(rows))
    return found


def told(rows: list[Row]) -> list[tuple[str, str]]:
    """Key and text of one cell: the start's effect, attention against the best start, each side's course."""
    sides, ended = outcomes(rows), bests(rows)
    lstms = [ended[name] for name in LSTMS if name in ended]
    texts = []
    if DEFAULT in ended and BIAS_3 in ended:
        texts.append(("start", verdict(ended[BIAS_3], ended[DEFAULT])))
    if ATTENTION in ended and lstms:
        texts.append(("attention", verdict(ended[ATTENTION], best(lstms))))
    texts += [(f"side-{number}", account(rates)) for number, rates in enumerate(sides.values())]
    if DEFAULT in ended:
        texts.append(("chance", against_chance(rows)))
    return texts


def against_chance(rows: list[Row]) -> str:
    """Whether torch's default start, at its end, can be told from guessing."""
    one, chance = bests(rows)[DEFAULT], rows[0]["chance"]
    near = sum(share.interval[0] <= chance <= share.interval[1] for share in one.shares)
    return (
        f"Guessing gives {percent(chance, 1)}; {one.side} ended at {span([s.value for s in one.shares])}, "
        f"with chance inside the Wilson interval in {near} of {one.seeds} seeds ({strings(one)})."
    )


def figures(settings: FirstLetterSettings, tables: Tables) -> list[Figure]:
    rows = tables.get("curves", [])
    groups = cells(rows, NAMES)
    if not any(row["update"] for row in rows):
        return []
    found = [_curves(*next(iter(groups.items())))]
    return [*found, _sweep(rows)] if len(groups) > 1 else found


def _curves(key: tuple, rows: list[Row]) -> Figure:
    length = key[0]
    chart, table = charts.curves(rows, [(rows[0]["chance"], "chance, 1 in 26")])
    title = f"First of {length} letters: {headline(dict(told(rows)).get('start', 'so far'))}"
    return Figure(
        name="first-letter",
        chart=chart,
        title=title,
        subtitle=f"{charts.how_counted(rows)}",
        characters=charts.TITLE_CHARACTERS,
        description="Accuracy against updates for a Transformer and four LSTM starts, with the chance line.",
        shows=(
            "Same strings, same updates, about the same parameters. The four LSTMs differ in nothing but the "
            "weights and biases that they start from."
        ),
        would_change="The four starts on one line would make the start irrelevant.",
        table=table,
    )


def _sweep(rows: list[Row]) -> Figure:
    chart, table = charts.sweep(rows, NAMES, ("chance",))
    title = "First letter: where every seed ended, by length and width"
    return Figure(
        name="first-letter-sweep",
        chart=chart,
        title=title,
        subtitle="A point a seed at its side's best rate, with Wilson 95% intervals; tick: chance",
        description="Final accuracy of each seed, a panel a length and width, a row a side.",
        shows="How the order of the sides moves with the distance of the first letter.",
        would_change="Sides changing places between lengths would make the order a matter of length.",
        table=table,
    )


def lines(settings: FirstLetterSettings, tables: Tables) -> list[str]:
    return table_lines(tables["curves"], NAMES, BASELINES)
