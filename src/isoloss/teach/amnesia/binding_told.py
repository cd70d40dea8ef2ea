"""Tell binding: who has learned which value belongs to which key, and who only knows the values."""

from isoloss.figures.figure import Figure
from isoloss.teach.amnesia import charts
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1
from isoloss.teach.amnesia.outcomes import Outcome, cells, outcomes
from isoloss.teach.amnesia.settings import BindingSettings
from isoloss.teach.amnesia.value_set import FORMULA
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

NAMES = ("keys", "pairs", "width")
BASELINES = (("value_set", "knows the values only"), ("chance", "chance"))


def basis(settings: BindingSettings, tables: Tables) -> Basis:
    return counted(tables["curves"], settings.seeds)


def sentences(settings: BindingSettings, tables: Tables) -> list[Sentence]:
    found: list[Sentence] = []
    for (keys, pairs, width), rows in cells(tables["curves"], NAMES).items():
        where = "" if not found else f"-{keys}-{pairs}-{width}"
        said = f"{pairs} pairs of {keys} keys"
        found.extend(Sentence(key=key + where, text=f"{said}: {text}") for key, text in told(rows))
        found.append(Sentence(key=f"baselines{where}", text=f"{said}: {baselines(rows[0])}", exact=True))
    return found


def told(rows: list[Row]) -> list[tuple[str, str]]:
    """Key and text of one cell: the verdict, where each side stands at the line, the lower one first."""
    sides, ended = outcomes(rows), bests(rows)
    texts = []
    if ATTENTION in ended and BIAS_1 in ended:
        texts.append(("verdict", verdict(ended[ATTENTION], ended[BIAS_1])))
    lower_first = sorted(enumerate(sides), key=lambda one: ended[one[1]].mean)
    texts += [(f"line-{n}", against_line(ended[side], rows[0]["value_set"])) for n, side in lower_first]
    return texts + [(f"side-{n}", account(rates)) for n, rates in enumerate(sides.values())]


def against_line(one: Outcome, line: float) -> str:
    """Where each seed's Wilson interval lies against the value-set line."""
    intervals = [share.interval for share in one.shares]
    above, below = sum(low > line for low, _ in intervals), sum(high < line for _, high in intervals)
    on = one.seeds - above - below
    text = (
        f"{one.side} ended above the value-set line of {line:.3f} in {above} of {one.seeds} seeds, "
        f"on it in {on}, below it in {below} (Wilson intervals; "
        f"{span([s.value for s in one.shares])}, {strings(one)})"
    )
    if on == one.seeds:
        text += f": within {one.last:,} updates no better than knowing the values but not the pairing"
    return f"{text}."


def baselines(row: Row) -> str:
    return (
        f"guessing any of {row['values']} values is right {row['chance']:.3f} of the time, always "
        f"the most frequent value of the string {row['value_set']:.3f} = {FORMULA}."
    )


def figures(settings: BindingSettings, tables: Tables) -> list[Figure]:
    rows = tables.get("curves", [])
    if not any(row["update"] for row in rows):
        return []
    groups = cells(rows, NAMES)
    key, first = next(iter(groups.items()))
    found = [_curves(key, first)]
    return [*found, _sweep(rows)] if len(groups) > 1 else found


def _curves(key: tuple, rows: list[Row]) -> Figure:
    keys, pairs, _ = key
    chart, table = charts.curves(rows, [(rows[0][column], name) for column, name in BASELINES])
    title = f"Binding {pairs} pairs: {headline(dict(told(rows)).get('verdict', 'so far'))}"
    return Figure(
        name="binding",
        chart=chart,
        title=title,
        subtitle=f"{pairs} pairs, {keys} keys, {rows[0]['values']} values. {charts.how_counted(rows)}",
        characters=charts.TITLE_CHARACTERS,
        description=(
            "Accuracy against updates for a Transformer and an LSTM, with chance and the value-set line."
        ),
        shows=(
            "The upper dotted line is what memory without binding earns: always the string's most frequent "
            "value. A side that leaves it has begun to answer by key."
        ),
        would_change="The LSTM leaving the value-set line, or the Transformer staying on it.",
        table=table,
    )


def _sweep(rows: list[Row]) -> Figure:
    chart, table = charts.sweep(rows, NAMES, ("value_set", "chance"))
    title = "Binding: where every seed ended, by keys and pairs"
    return Figure(
        name="binding-sweep",
        chart=chart,
        title=title,
        subtitle="A point a seed at its side's best rate, with Wilson 95% intervals; ticks: both baselines",
        description="Final accuracy of each seed, a panel a number of keys and pairs, a row a side.",
        shows="Where each side ended, by keys and pairs: how much there is to hold at once.",
        would_change="Ends that do not move with the number of keys and pairs.",
        table=table,
    )


def lines(settings: BindingSettings, tables: Tables) -> list[str]:
    return table_lines(tables["curves"], NAMES, BASELINES)
