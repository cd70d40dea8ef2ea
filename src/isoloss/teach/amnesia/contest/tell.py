"""Tell the three tests of memory: who is ahead, what each side did, where it stands against the baselines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach import prose
from isoloss.teach.amnesia.contest import draw
from isoloss.teach.amnesia.contest.outcomes import (
    Outcome,
    best,
    course,
    outcomes,
    say,
    spoken,
    verdict,
)
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, DEFAULT, LSTMS
from isoloss.teach.amnesia.settings import ContestSettings
from isoloss.teach.amnesia.value_set import FORMULA
from isoloss.teach.result import Sentence, Tables, frame, sentence
from isoloss.teach.shares import span
from isoloss.teach.versus import Claim, family_of
from isoloss.text import percent

MOMENTS, QUESTION, STAR = 5, 26, 27
"""Updates of an example that are shown; the tokens of the question and of the star before a letter."""

Texts = Iterator[tuple[str, Claim]]
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
        frame(tables, name).partition_by(names, as_dict=True) if tables.get(name) else {}
        for name in ("curves", "distances")
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
    before and after each side's course. ``asks``: what the string shown asks.
    """

    name: str
    names: tuple[str, ...] = ("length", "width")
    heading: str = "{length} letters"
    pairs: dict[str, tuple[str, tuple[str, ...]]] = field(
        default_factory=lambda: {"verdict": (ATTENTION, (BIAS_1,))}
    )
    baselines: dict[str, str] = field(default_factory=lambda: {"chance": "chance, 1 in 26"})
    asks: str = ""
    before: Callable[[MeasuredCell], Texts] = lambda cell: iter(())
    after: Callable[[MeasuredCell], Texts] = lambda cell: iter(())

    def verdicts(self, cell: MeasuredCell) -> dict[str, Claim]:
        """Each pair's verdict by key, if both are there."""
        verdicts: dict[str, Claim] = {}
        for key, (side, others) in self.pairs.items():
            rivals = [cell.bests[other] for other in others if other in cell.bests]
            if side in cell.bests and rivals:
                verdicts[key] = verdict(cell.bests[side], best(rivals))
        return verdicts

    def count(self, settings: ContestSettings, tables: Tables) -> int:
        return tables["curves"][0]["n"] if tables["curves"] else 1

    def sentences(self, settings: ContestSettings, tables: Tables) -> list[Sentence]:
        sentences: list[Sentence] = []
        for number, cell in enumerate(cells_of(tables, self.names)):
            suffix = "".join(f"-{cell.first[name]}" for name in self.names) if number else ""
            heading = self.heading.format(**cell.first)
            courses = ((f"side-{n}", Claim(course(rates), "")) for n, rates in enumerate(cell.sides.values()))
            sentences += [
                sentence(
                    key + suffix,
                    f"{heading}: {claim.text}",
                    claim.short,
                    claim.ahead,
                    claim.lead,
                    exact=key == "baselines",
                )
                for key, claim in chain(
                    self.verdicts(cell).items(), self.before(cell), courses, self.after(cell)
                )
            ]
        return sentences

    def figures(self, settings: ContestSettings, tables: Tables) -> list[Figure]:
        if not any(row["update"] for row in tables.get("curves", [])):
            return []
        first, *others = cells = cells_of(tables, self.names)
        # The title states the finding without its numbers, which the figure shows.
        verdict = self.verdicts(first).get(next(iter(self.pairs)))
        finding = verdict.text.split(": ")[0] if verdict else "so far"
        levels = [(first.first[column], label) for column, label in self.baselines.items()]
        drawing = draw.curves(first.curves, levels, settings.cap)
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

    def example(self, settings: ContestSettings, tables: Tables) -> Markup:
        """One string, and what every side answers while it learns, at the rate that suits it."""
        if not tables.get("answers"):
            return Markup("")
        cell, string = cells_of(tables, self.names)[0], tables["example"]
        answers = at_best_rate(frame(tables, "answers"), cell.bests)
        looks = answers["update"].unique().sort().to_list()
        updates = [looks[n * (len(looks) - 1) // (MOMENTS - 1)] for n in range(MOMENTS)]
        rows = []
        for side in cell.bests:
            own = answers.filter(side=side).to_dicts()
            last = [max(row["update"] for row in own if row["update"] <= update) for update in updates]
            cells = [[answered(row, cell) for row in own if row["update"] == update] for update in last]
            rows.append((spoken(side), family_of(side), cells))
        signs = [sign_of(row["token"], cell) for row in string]
        marked = [False, *(row["token"] == STAR for row in string)] if "keys" not in cell.first else []
        pairs = 2 * cell.first.get("pairs", 0)
        return fill(
            "teach/amnesia/contest/example.html",
            asks=self.asks,
            cards=list(zip(signs[0:pairs:2], signs[1:pairs:2], strict=True)),
            string=list(zip(signs, [*marked, False], strict=False)) if marked else [],
            questions=signs[pairs:],
            answer=sign_of(string[-1]["right"], cell),
            updates=list(dict.fromkeys(updates)),
            rows=rows,
        )


def answered(row: dict[str, Any], cell: MeasuredCell) -> dict[str, Any]:
    return {"sign": sign_of(row["answer"], cell), "right": row["right"]}


def sign_of(token: int, cell: MeasuredCell) -> dict[str, Any]:
    """A token as the room sees it: a letter, a name for a key, a colour with its number for a value."""
    keys = cell.first.get("keys")
    if keys is None:
        return {"text": "?*"[token - QUESTION] if token >= QUESTION else chr(ord("A") + token)}
    if token < keys:
        return {"text": name_of_key(token)}
    value = token - keys
    return {"text": str(value + 1), "hue": round(360 * value / cell.first["values"])}


def name_of_key(key: int) -> str:
    consonant, vowel = divmod(key % 64, 4)
    return f"{'BDFGHJKLMNPRSTVZ'[consonant]}{'aeio'[vowel]}n"


def against_chance(cell: MeasuredCell) -> Texts:
    """Whether torch's default start, at its end, can be told from guessing."""
    if default := cell.bests.get(DEFAULT):
        chance = cell.first["chance"]
        near = sum(share.low <= chance <= share.high for share in default.shares)
        text = say("chance", chance=percent(chance, 1), default=default, near=near)
        yield "chance", Claim(text, "The default LSTM still guesses." if near == default.seeds else "")


def by_distance(cell: MeasuredCell) -> Texts:
    """Nearest and farthest of each side at its best rate, seeds in a span."""
    rows = cell.distances
    for number, side in enumerate([] if rows is None else rows.partition_by("side")):
        ends = [side["distance"].min(), side["distance"].max()]
        near, far = (span(side.filter(distance=end)["value"].to_list()) for end in ends)
        words = {"side": spoken(side["side"][0]), "near": near, "far": far, "n": side["n"][0]}
        yield f"distance-{number}", Claim(say("distance", first=ends[0], last=ends[1], **words), "")


def _farthest(rows: pl.DataFrame) -> str:
    """Each side's mean at the greatest distance, for the title of its figure."""
    far = rows.filter(pl.col("distance") == pl.col("distance").max())
    means = far.group_by("side", maintain_order=True).agg(pl.col("value").mean())
    each = ", ".join(f"{spoken(side)} {100 * mean:.0f}%" for side, mean in means.iter_rows())
    return f"at distance {far['distance'][0]} {each}"


def against_line(cell: MeasuredCell) -> Texts:
    """Where each seed's Wilson interval lies against the value-set line, the lower side first."""
    line = cell.first["value_set"]
    for number, side in sorted(enumerate(cell.sides), key=lambda side: cell.bests[side[1]].mean):
        end = cell.bests[side]
        above = sum(share.low > line for share in end.shares)
        below = sum(share.high < line for share in end.shares)
        level, verdict, short = end.seeds - above - below, "", ""
        if level == end.seeds:
            verdict = say("no-better", end=end)
            short = f"In all {end.seeds} runs the {spoken(side)} knew which values, not whose."
        counts = {"above": above, "level": level, "below": below}
        yield f"line-{number}", Claim(say("line", end=end, line=line, verdict=verdict, **counts), short)


def baselines(cell: MeasuredCell) -> Texts:
    yield "baselines", Claim(say("baselines", formula=FORMULA, **cell.first), "")


FIRST_LETTER = Contest(
    "first-letter",
    asks="Which letter came first?",
    pairs={"attention": (ATTENTION, LSTMS), "start": (BIAS_3, (DEFAULT,))},
    after=against_chance,
)
"""Who learns it first, which is what the room is asked; then what the LSTM's start changes."""

RANDOM_PLACE = Contest("random-place", asks="Which letter followed the star?", after=by_distance)
"""Who gets it sooner, and from which distances."""

BINDING = Contest(
    "binding",
    names=("keys", "pairs", "width"),
    heading="{pairs} pairs of {keys} keys",
    asks="Who wears which colour?",
    baselines={"value_set": "knows the values only", "chance": "chance"},
    before=against_line,
    after=baselines,
)
"""Who has learned which value belongs to which key, and who only knows the values."""
