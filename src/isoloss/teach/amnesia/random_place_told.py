"""Tell the letter at a random place: who gets it sooner, and from which distances."""

from statistics import fmean

from isoloss.figures.figure import Figure
from isoloss.teach.amnesia import charts
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1
from isoloss.teach.amnesia.outcomes import cells, outcomes
from isoloss.teach.amnesia.settings import RandomPlaceSettings
from isoloss.teach.amnesia.verdicts import account, bests, counted, headline, span, table_lines, verdict
from isoloss.teach.result import Basis, Row, Sentence, Tables

NAMES = ("length", "width")
BASELINES = (("chance", "chance, 1 in 26"),)


def basis(settings: RandomPlaceSettings, tables: Tables) -> Basis:
    return counted(tables["curves"], settings.seeds)


def sentences(settings: RandomPlaceSettings, tables: Tables) -> list[Sentence]:
    found: list[Sentence] = []
    far = cells(tables.get("distances", []), NAMES)
    for (length, width), rows in cells(tables["curves"], NAMES).items():
        where = "" if not found else f"-{length}-{width}"
        texts = [*told(rows), *by_distance(rows, far.get((length, width), []))]
        found.extend(Sentence(key=key + where, text=f"{length} letters: {text}") for key, text in texts)
    return found


def told(rows: list[Row]) -> list[tuple[str, str]]:
    sides, ended = outcomes(rows), bests(rows)
    texts = []
    if ATTENTION in ended and BIAS_1 in ended:
        texts.append(("verdict", verdict(ended[ATTENTION], ended[BIAS_1])))
    return texts + [(f"side-{number}", account(rates)) for number, rates in enumerate(sides.values())]


def by_distance(rows: list[Row], distances: list[Row]) -> list[tuple[str, str]]:
    """Nearest and farthest of each side at its best rate, seeds in a span."""
    texts = []
    for number, (side, own) in enumerate(cells(at_best(rows, distances), ("side",)).items()):
        ends = sorted({row["distance"] for row in own})
        near, far = (
            span([row["value"] for row in own if row["distance"] == end]) for end in (ends[0], ends[-1])
        )
        texts.append(
            (
                f"distance-{number}",
                f"{side[0]}, trained, answers {near} at distance {ends[0]} and {far} at distance {ends[-1]} "
                f"(n = {own[0]['n']:,} unseen strings a seed and distance).",
            )
        )
    return texts


def at_best(rows: list[Row], distances: list[Row]) -> list[Row]:
    chosen = {side: one.rate for side, one in bests(rows).items()}
    return [row for row in distances if row["rate"] == chosen[row["side"]]]


def figures(settings: RandomPlaceSettings, tables: Tables) -> list[Figure]:
    rows = tables.get("curves", [])
    if not any(row["update"] for row in rows):
        return []
    groups = cells(rows, NAMES)
    key, first = next(iter(groups.items()))
    found = [_curves(key[0], first)]
    if distances := at_best(first, cells(tables.get("distances", []), NAMES).get(key, [])):
        found.append(_distances(key[0], distances))
    return [*found, _sweep(rows)] if len(groups) > 1 else found


def _curves(length: int, rows: list[Row]) -> Figure:
    chart, table = charts.curves(rows, [(rows[0]["chance"], "chance, 1 in 26")])
    title = f"A letter anywhere in {length}: {headline(dict(told(rows)).get('verdict', 'so far'))}"
    return Figure(
        name="random-place",
        chart=chart,
        title=title,
        subtitle=f"{charts.how_counted(rows)}",
        characters=charts.TITLE_CHARACTERS,
        description="Accuracy against updates for a Transformer and an LSTM, with the chance line.",
        shows=(
            "Same strings, same updates, about the same parameters. An LSTM that latches near answers can "
            "grow from there to far ones; attention has to find the mark first and then the letter behind it."
        ),
        would_change="The Transformer's seeds arriving before the LSTM's would turn the title round.",
        table=table,
    )


def _distances(length: int, rows: list[Row]) -> Figure:
    chart, table = charts.by_distance(rows, [(rows[0]["chance"], "chance, 1 in 26")])
    title = f"Accuracy by distance, trained on {length} letters: {_farthest(rows)}"
    return Figure(
        name="random-place-distance",
        chart=chart,
        title=title,
        subtitle=(
            "Thin: a seed with its Wilson 95% interval; thick: the median of seeds; "
            f"n = {rows[0]['n']:,} unseen strings a seed and distance"
        ),
        characters=charts.TITLE_CHARACTERS,
        description="Accuracy against the distance from the answer to the question, a line a side.",
        shows="A memory that fades would slope down to the right; one not yet learned is low everywhere.",
        would_change="A slope down to the right at the end of longer training would be a limit of reach.",
        table=table,
    )


def _farthest(rows: list[Row]) -> str:
    far = max(row["distance"] for row in rows)
    means = [
        f"{side} {100 * fmean(row['value'] for row in own if row['distance'] == far):.0f}%"
        for (side,), own in cells(rows, ("side",)).items()
    ]
    return f"at distance {far} {', '.join(means)} (n = {rows[0]['n']:,} strings a seed)"


def _sweep(rows: list[Row]) -> Figure:
    chart, table = charts.sweep(rows, NAMES, ("chance",))
    title = "A letter at a random place: where every seed ended, by length and width"
    return Figure(
        name="random-place-sweep",
        chart=chart,
        title=title,
        subtitle="A point a seed at its side's best rate, with Wilson 95% intervals; tick: chance",
        description="Final accuracy of each seed, a panel a length and width, a row a side.",
        shows="How the order of the sides moves with length and width at these updates.",
        would_change="Sides changing places between lengths would make the order a matter of length.",
        table=table,
    )


def lines(settings: RandomPlaceSettings, tables: Tables) -> list[str]:
    return table_lines(tables["curves"], NAMES, BASELINES)
