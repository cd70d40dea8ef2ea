"""Tell the three tests of memory: who is ahead, what each side did, where it stands against the baselines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isoloss.figures.figure import Figure
from isoloss.teach import prose
from isoloss.teach.amnesia.contest import draw
from isoloss.teach.amnesia.contest.outcomes import (
    Outcome,
    best,
    course,
    outcomes,
    spoken,
    verdict,
)
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, DEFAULT, LSTMS
from isoloss.teach.amnesia.settings import ContestSettings
from isoloss.teach.amnesia.value_set import FORMULA
from isoloss.teach.result import Basis, Sentence, Tables
from isoloss.teach.shares import span
from isoloss.teach.versus import Told
from isoloss.text import percent

Texts = Iterator[tuple[str, Told]]
"""Keys of sentences, and what they say."""


@dataclass(frozen=True)
class MeasuredCell:
    """What one task at one size came to, and its looks at each side's best rate.

    ``first``: a row, which names the cell; ``distances``: None where the answers were not scored by distance.
    """

    first: dict[str, Any]
    sides: dict[str, list[Outcome]]
    bests: dict[str, Outcome]
    curves: pl.DataFrame
    distances: pl.DataFrame | None


def cells_of(tables: Tables, names: Sequence[str]) -> list[MeasuredCell]:
    """The cells in the order of their first row; none before anything has been trained."""
    curves, distances = (
        pl.DataFrame(rows, infer_schema_length=None).partition_by(names, as_dict=True) if rows else {}
        for rows in (tables.get("curves"), tables.get("distances"))
    )
    cells: list[MeasuredCell] = []
    for key, rows in curves.items():
        sides = outcomes(rows)
        bests = {side: best(rates) for side, rates in sides.items()}
        far = at_best_rate(distances[key], bests) if key in distances else None
        cells.append(MeasuredCell(rows.row(0, named=True), sides, bests, at_best_rate(rows, bests), far))
    return cells


def at_best_rate(rows: pl.DataFrame, bests: dict[str, Outcome]) -> pl.DataFrame:
    """The rows of each side at the rate that suits it."""
    rates = {side: outcome.rate for side, outcome in bests.items()}
    return rows.filter(pl.col("rate") == pl.col("side").replace_strict(rates))


@dataclass(frozen=True)
class Contest:
    """A test of memory told. ``names``: columns that name a cell; ``heading``: a cell in words.

    ``pairs``: who is compared with whom, by the sentence's key; of several opponents with the best.
    ``baselines``: columns and names of what can be had without memory. ``before`` and ``after``: what is said
    before and after each side's course.
    """

    name: str
    names: tuple[str, ...] = ("length", "width")
    heading: str = "{length} letters"
    pairs: dict[str, tuple[str, tuple[str, ...]]] = field(
        default_factory=lambda: {"verdict": (ATTENTION, (BIAS_1,))}
    )
    baselines: dict[str, str] = field(default_factory=lambda: {"chance": "chance, 1 in 26"})
    before: Callable[[MeasuredCell], Texts] = lambda cell: iter(())
    after: Callable[[MeasuredCell], Texts] = lambda cell: iter(())

    def verdicts(self, cell: MeasuredCell) -> dict[str, Told]:
        """Each pair's verdict by key, if both are there."""
        verdicts: dict[str, Told] = {}
        for key, (side, others) in self.pairs.items():
            rivals = [cell.bests[other] for other in others if other in cell.bests]
            if side in cell.bests and rivals:
                verdicts[key] = verdict(cell.bests[side], best(rivals))
        return verdicts

    def basis(self, settings: ContestSettings, tables: Tables) -> Basis:
        n = tables["curves"][0]["n"] if tables["curves"] else 1
        return Basis(
            n=int(n or 1),
            units="unseen strings a point",
            seeds=settings.seeds,
            interval="Wilson 95% interval",
        )

    def sentences(self, settings: ContestSettings, tables: Tables) -> list[Sentence]:
        sentences: list[Sentence] = []
        for number, cell in enumerate(cells_of(tables, self.names)):
            suffix = "".join(f"-{cell.first[name]}" for name in self.names) if number else ""
            heading = self.heading.format(**cell.first)
            courses = ((f"side-{n}", Told(course(rates), "")) for n, rates in enumerate(cell.sides.values()))
            texts = [*self.verdicts(cell).items(), *self.before(cell), *courses, *self.after(cell)]
            sentences += [
                Sentence(
                    key=key + suffix,
                    text=f"{heading}: {told.text}",
                    short=told.short,
                    ahead=told.ahead,
                    exact=key == "baselines",
                )
                for key, told in texts
            ]
        return sentences

    def figures(self, settings: ContestSettings, tables: Tables) -> list[Figure]:
        if not any(row["update"] for row in tables.get("curves", [])):
            return []
        first, *others = cells = cells_of(tables, self.names)
        # The title states the finding without its numbers, which the figure shows.
        told = self.verdicts(first).get(next(iter(self.pairs)))
        finding = told.text.split(": ")[0] if told else "so far"
        levels = [(first.first[column], label) for column, label in self.baselines.items()]
        drawing = draw.curves(first.curves, levels)
        figures = [self.figure("", drawing, first.first, finding=finding)]
        if first.distances is not None:
            drawing, ends = draw.by_distance(first.distances, levels), _farthest(first.distances)
            figures.append(self.figure("-distance", drawing, first.distances.row(0, named=True), ends=ends))
        if others:
            rows = pl.concat([cell.curves for cell in cells])
            figures.append(self.figure("-sweep", draw.sweep(rows, self.names, list(self.baselines)), {}))
        return figures

    def figure(self, kind: str, drawing: draw.Drawing, row: dict[str, Any], **words: str) -> Figure:
        return prose.figure("amnesia", self.name + kind, *drawing, **row | words)

    def lines(self, settings: ContestSettings, tables: Tables) -> list[str]:
        """A bar a side at its best rate, and one a baseline."""
        lines: list[str] = []
        for cell in cells_of(tables, self.names):
            lines.append(", ".join(f"{name} {cell.first[name]}" for name in self.names))
            for side, outcome in cell.bests.items():
                low = min(share.low for share in outcome.shares)
                high = max(share.high for share in outcome.shares)
                lines.append(
                    f"{_bar(side, outcome.mean)}  {percent(low, 1)} to {percent(high, 1)}"
                    f"  rate {outcome.rate:g}, {outcome.last:,} updates"
                )
            lines += [_bar(label, cell.first[column]) for column, label in self.baselines.items()]
        return lines


def _bar(label: str, share: float, width: int = 30) -> str:
    return f"  {label:<22} {'#' * round(width * share):.<{width}} {percent(share, 1):>8}"


def against_chance(cell: MeasuredCell) -> Texts:
    """Whether torch's default start, at its end, can be told from guessing."""
    if default := cell.bests.get(DEFAULT):
        chance = cell.first["chance"]
        near = sum(share.low <= chance <= share.high for share in default.shares)
        text = (
            f"Guessing gives {percent(chance, 1)}; {default.side} ended at {default.span}, with chance "
            f"inside the Wilson interval in {near} of {default.seeds} seeds ({default.strings})."
        )
        yield "chance", Told(text, "The default LSTM still guesses." if near == default.seeds else "")


def by_distance(cell: MeasuredCell) -> Texts:
    """Nearest and farthest of each side at its best rate, seeds in a span."""
    rows = cell.distances
    for number, side in enumerate([] if rows is None else rows.partition_by("side")):
        near, far = side["distance"].min(), side["distance"].max()
        ends = [span(side.filter(pl.col("distance") == end)["value"].to_list()) for end in (near, far)]
        text = (
            f"{side['side'][0]}, trained, answers {ends[0]} at distance {near} and {ends[1]} at distance "
            f"{far} (n = {side['n'][0]:,} unseen strings a seed and distance)."
        )
        yield f"distance-{number}", Told(text, "")


def _farthest(rows: pl.DataFrame) -> str:
    """Each side's mean at the greatest distance, for the title of its figure."""
    far = rows.filter(pl.col("distance") == pl.col("distance").max())
    means = far.group_by("side", maintain_order=True).agg(pl.col("value").mean())
    each = ", ".join(f"{side} {100 * mean:.0f}%" for side, mean in means.iter_rows())
    return f"at distance {far['distance'][0]} {each}"


def against_line(cell: MeasuredCell) -> Texts:
    """Where each seed's Wilson interval lies against the value-set line, the lower side first."""
    line = cell.first["value_set"]
    for number, side in sorted(enumerate(cell.sides), key=lambda side: cell.bests[side[1]].mean):
        end = cell.bests[side]
        above = sum(share.low > line for share in end.shares)
        below = sum(share.high < line for share in end.shares)
        level = end.seeds - above - below
        text = (
            f"{side} ended above the value-set line of {line:.3f} in {above} of {end.seeds} seeds, "
            f"on it in {level}, below it in {below} (Wilson intervals; {end.span}, {end.strings})"
        )
        short = ""
        if level == end.seeds:
            text += f": within {end.last:,} updates no better than knowing the values but not the pairing"
            short = f"In all {end.seeds} runs the {spoken(side)} knew which values, not whose."
        yield f"line-{number}", Told(f"{text}.", short)


def baselines(cell: MeasuredCell) -> Texts:
    row = cell.first
    text = (
        f"guessing any of {row['values']} values is right {row['chance']:.3f} of the time, always "
        f"the most frequent value of the string {row['value_set']:.3f} = {FORMULA}."
    )
    yield "baselines", Told(text, "")


FIRST_LETTER = Contest(
    "first-letter",
    pairs={"start": (BIAS_3, (DEFAULT,)), "attention": (ATTENTION, LSTMS)},
    after=against_chance,
)
"""What the LSTM's start changes, and attention beside it."""

RANDOM_PLACE = Contest("random-place", after=by_distance)
"""Who gets it sooner, and from which distances."""

BINDING = Contest(
    "binding",
    names=("keys", "pairs", "width"),
    heading="{pairs} pairs of {keys} keys",
    baselines={"value_set": "knows the values only", "chance": "chance"},
    before=against_line,
    after=baselines,
)
"""Who has learned which value belongs to which key, and who only knows the values."""
