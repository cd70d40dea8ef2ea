"""What random networks make of a sentence: maps side by side, and one cell over the seeds."""

from collections import Counter

import altair as alt
import polars as pl

from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET
from isoloss.stats import mean
from isoloss.teach.attention.heat import shaded
from isoloss.teach.attention.matrices import Matrix, lines_of
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import UntrainedSettings
from isoloss.teach.result import Basis, Row, Sentence, Tables

FOLDED = ("cell",)
"""Figures that a slide shows folded: the sentences say the same."""


def basis(settings: UntrainedSettings, tables: Tables) -> Basis:
    return Basis(
        n=settings.seeds, units="random networks", seeds=settings.seeds, interval="95% t interval over seeds"
    )


def seeds_of(tables: Tables) -> list[int]:
    return sorted({int(row["seed"]) for row in tables["map"]})


def last_rows(tables: Tables) -> dict[int, dict[int, float]]:
    """Per seed, the last word's weight on each word."""
    last = len(tables["words"])
    found: dict[int, dict[int, float]] = {seed: {} for seed in seeds_of(tables)}
    for row in tables["map"]:
        if row["place"] == last:
            found[int(row["seed"])][int(row["looks_at"])] = float(row["value"])
    return found


def strongest(weights: dict[int, float]) -> int:
    return max(weights, key=weights.__getitem__)


def sentences(settings: UntrainedSettings, tables: Tables) -> list[Sentence]:
    return [
        Sentence(key="strongest", text=strongest_text(tables)),
        Sentence(key="cell", text=cell_text(tables)),
    ]


def strongest_text(tables: Tables) -> str:
    """Do the seeds agree on where the last word looks most?"""
    places = [strongest(weights) for weights in last_rows(tables).values()]
    favourite, votes = Counter(places).most_common(1)[0]
    listed = ", ".join(str(place) for place in places)
    text = (
        f"The last of {len(tables['words'])} words looks most at word {listed} in {len(places)} "
        "random networks"
    )
    if votes == len(places):
        return f"{text}: all agree on word {favourite}, though none has learned anything. Try other seeds."
    return f"{text}: at most {votes} of {len(places)} agree. This is what nothing looks like."


def cell_text(tables: Tables) -> str:
    """The first seed's strongest cell, chosen by that seed alone, judged on the other seeds."""
    first, *others = last_rows(tables).values()
    place, even = strongest(first), 1 / len(tables["words"])
    values = [weights[place] for weights in others]
    text = (
        f"The first network puts {first[place]:.2f} of the last word's weight on word {place}; the other "
        f"{len(values)} put {min(values):.2f} to {max(values):.2f} there"
    )
    over_seeds = mean(values)
    if over_seeds.interval is None:
        return f"{text}. One other network gives no interval."
    where = f"mean {over_seeds.value:.2f}, interval {max(0.0, over_seeds.low):.2f} to {over_seeds.high:.2f}"
    if over_seeds.low <= even <= over_seeds.high:
        return f"{text} ({where}): no clear difference from even attention, {even:.2f}."
    side = "above" if over_seeds.low > even else "below"
    return f"{text} ({where}): {side} even attention, {even:.2f}, by the luck of random weights."


def figures(settings: UntrainedSettings, tables: Tables) -> list[Figure]:
    if not tables.get("map"):
        return []
    labels = labels_of([str(row["word"]) for row in tables["words"]])
    rows = [drawn(row, labels) for row in tables["map"]]
    title = f"{len(seeds_of(tables))} random networks, one sentence, {map_verdict(tables)}"
    top = max(0.5, *(row["weight"] for row in rows if row["looks"] != labels[0]))
    side = 15 * len(labels)
    names = [f"seed {seed}" for seed in seeds_of(tables)]
    maps = (
        shaded(rows, labels, top=min(1.0, top))
        .properties(width=side, height=side)
        .facet(
            alt.Facet("network:N", sort=names, header=alt.Header(title=None, labelFontWeight="bold")),
            columns=5 if len(labels) <= 9 else 3,
        )
    )
    return [
        Figure(
            name="maps",
            chart=maps,
            title=title,
            subtitle=(
                "Softmax of one untrained causal head, a map a seed; a row is the word that looks. "
                "The first word can look only at itself."
            ),
            characters=100,
            description="Small maps side by side, one a random network: the weight of each word on each.",
            shows="None of them has learned anything, so no pattern here is about the words.",
            would_change="Training: the panel below trains networks on a task whose right slot is known.",
            table=pl.DataFrame(rows),
        ),
        cell_figure(tables, labels),
    ]


def map_verdict(tables: Tables) -> str:
    places = [strongest(weights) for weights in last_rows(tables).values()]
    different = len(set(places))
    if different == 1:
        return "and the last word's strongest slot is the same in each"
    return f"and {different} different strongest slots of the last word"


def drawn(row: Row, labels: list[str]) -> dict[str, str | float]:
    return {
        "network": f"seed {row['seed']}",
        "looks": labels[int(row["place"]) - 1],
        "looks at": labels[int(row["looks_at"]) - 1],
        "weight": float(row["value"]),
    }


def cell_figure(tables: Tables, labels: list[str]) -> Figure:
    """The last word's weight on each word: a dot a seed, the even share dashed."""
    even = 1 / len(labels)
    rows = [
        {"seed": seed, "looks at": labels[place - 1], "weight": weight}
        for seed, weights in last_rows(tables).items()
        for place, weight in weights.items()
    ]
    spread = max(row["weight"] for row in rows), min(row["weight"] for row in rows)
    title = f"One cell over seeds: the last word's weights run from {spread[1]:.2f} to {spread[0]:.2f}"
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        alt.X("looks at:N", sort=labels, title="looks at", scale=alt.Scale(domain=labels)).axis(
            labelAngle=-40, labelLimit=150
        ),
        alt.Y("weight:Q", title="Weight of the last word", scale=alt.Scale(domain=[0, max(0.5, spread[0])])),
    )
    dots = base.mark_point(filled=True, size=60, opacity=0.85, color="#0072B2").encode(
        shape=alt.Shape("seed:N", legend=alt.Legend(title="seed"))
    )
    rule = alt.Chart().mark_rule(strokeDash=[6, 4], color=QUIET).encode(y=alt.datum(even))
    label = (
        alt.Chart(alt.InlineData(values=[{"label": f"even: {even:.2f}"}]))
        .mark_text(align="right", baseline="bottom", dy=-3, fontSize=12, color=INK)
        .encode(x=alt.value("width"), y=alt.datum(even), text="label:N")
    )
    chart = alt.layer(dots, rule, label).properties(width=560, height=220)
    return Figure(
        name="cell",
        chart=chart,
        title=title,
        subtitle=f"{len(seeds_of(tables))} seeds, a mark each; dashed: even attention.",
        description="Weights of the last word on each word, a mark a seed; dashed: the even share.",
        shows="A single number of a single untrained map carries no meaning.",
        would_change="Training on a task with a known right slot: the panel below.",
        table=pl.DataFrame(rows),
    )


def lines(settings: UntrainedSettings, tables: Tables) -> list[str]:
    """The last word's row of every random network."""
    words = [str(row["word"]) for row in tables["words"]]
    labels, seeds = labels_of(words), [f"seed {seed}" for seed in seeds_of(tables)]
    by_seed = last_rows(tables).values()
    cells: list[list[float | None]] = [[weights[p] for p in sorted(weights)] for weights in by_seed]
    return lines_of(Matrix("Weights of the last word, a row a random network", seeds, labels, cells))
