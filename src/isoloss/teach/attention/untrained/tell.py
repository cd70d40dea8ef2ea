"""What random networks make of a sentence: maps side by side, and one cell over the seeds."""

from collections import Counter
from functools import partial

import altair as alt
import polars as pl

from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import INK, QUIET
from isoloss.stats import mean
from isoloss.teach import prose
from isoloss.teach.attention.draw import cells_of, heat_map
from isoloss.teach.attention.matrices import Cells, Matrix, lines_of
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import UntrainedSettings
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Sentence, Tables, frame, sentence
from isoloss.teach.versus import Claim

FOLDED, say = ("maps",), partial(say_of, "attention")
"""Figures whose letters are too small for a slide: they stand behind it."""


def count(settings: UntrainedSettings, tables: Tables) -> int:
    return settings.seeds


def last_rows(tables: Tables) -> dict[int, list[float]]:
    """Per seed, the last word's weight on each word."""
    rows = frame(tables, "map", place=len(tables["words"])).sort("seed", "looks_at")
    return dict(rows.group_by("seed", maintain_order=True).agg("value").iter_rows())


def strongest(weights: list[float]) -> int:
    """The word looked at most, counted from 1."""
    return weights.index(max(weights)) + 1


def sentences(settings: UntrainedSettings, tables: Tables) -> list[Sentence]:
    return [
        sentence("strongest", *strongest_looks(tables)),
        sentence("cell", cell_text(tables)),
    ]


def strongest_looks(tables: Tables) -> Claim:
    """Do the seeds agree on where the last word looks most? One favourite each: many are noise."""
    places = [strongest(weights) for weights in last_rows(tables).values()]
    favourite, votes = Counter(places).most_common(1)[0]
    words = {"words": len(tables["words"]), "listed": ", ".join(map(str, places)), "networks": len(places)}
    agree = "untrained-all" if votes == len(places) else "untrained-some"
    text = say("untrained", **words) + say(agree, favourite=favourite, votes=votes, **words)
    if votes == len(places):
        return Claim(text, "All random networks agree here, by luck: try other seeds.")
    return Claim(text, f"Random networks, {len(set(places))} different favourites: noise.")


def cell_text(tables: Tables) -> str:
    """The first seed's strongest cell, chosen by that seed alone, judged on the other seeds."""
    first, *others = last_rows(tables).values()
    place, even = strongest(first), 1 / len(tables["words"])
    values = [weights[place - 1] for weights in others]
    ends = {"most": max(first), "low": min(values), "high": max(values)}
    text, over_seeds = say("untrained-cell", place=place, others=len(values), **ends), mean(values)
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
    labels = labels_of(tables["words"])
    return [maps_figure(tables, labels), cell_figure(tables, labels)]


def maps_figure(tables: Tables, labels: list[str]) -> Figure:
    """A map a random network."""
    rows, last = frame(tables, "map"), last_rows(tables)
    weights = cells_of(rows, ("place", "looks_at"), labels, 1)
    weights = weights.insert_column(0, pl.format("seed {}", rows["seed"]).alias("network"))
    names, different = [f"seed {seed}" for seed in last], len(set(map(strongest, last.values())))
    verdict = f"and {different} different strongest slots of the last word"
    if different == 1:
        verdict = "and the last word's strongest slot is the same in each"
    top = max(0.5, *weights.filter(pl.col("looks") != labels[0])["weight"].to_list())
    side = 15 * len(labels)
    maps = (
        heat_map(weights, labels, top=min(1.0, top))
        .properties(width=side, height=side)
        .facet(
            alt.Facet("network:N", sort=names, header=alt.Header(title=None, labelFontWeight="bold")),
            columns=5 if len(labels) <= 9 else 3,
        )
    )
    return prose.figure("attention", "maps", maps, weights, seeds=len(last), verdict=verdict)


def cell_figure(tables: Tables, labels: list[str]) -> Figure:
    """The last word's weight on each word: a dot a seed, the even share dashed."""
    even = 1 / len(labels)
    last = frame(tables, "map", place=len(labels))
    table = cells_of(last, ("place", "looks_at"), labels, 1).select(last["seed"], "looks at", "weight")
    low, high = marks.span(table["weight"])
    base = marks.chart_of(table).encode(
        alt.X("looks at:N", sort=labels, title="looks at", scale=alt.Scale(domain=labels)).axis(
            labelAngle=-40, labelLimit=150
        ),
        alt.Y("weight:Q", title="Weight of the last word", scale=alt.Scale(domain=[0, max(0.5, high)])),
    )
    dots = base.mark_point(filled=True, size=60, opacity=0.85, color="#0072B2").encode(
        shape=alt.Shape("seed:N", legend=alt.Legend(title="seed"))
    )
    rule = alt.Chart().mark_rule(strokeDash=[6, 4], color=QUIET).encode(y=alt.datum(even))
    label = (
        marks.chart_of(pl.DataFrame({"label": [f"even: {even:.2f}"]}))
        .mark_text(align="right", baseline="bottom", dy=-3, fontSize=12, color=INK)
        .encode(x=alt.value("width"), y=alt.datum(even), text=alt.Text("label:N"))
    )
    chart = alt.layer(dots, rule, label).properties(width=260, height=175)
    seeds = last["seed"].n_unique()
    return prose.figure("attention", "cell", chart, table, low=low, high=high, seeds=seeds)


def lines(settings: UntrainedSettings, tables: Tables) -> list[str]:
    """The last word's row of every random network."""
    labels, last = labels_of(tables["words"]), last_rows(tables)
    cells: Cells = [[*weights] for weights in last.values()]
    caption = "Weights of the last word, a row a random network"
    return lines_of(Matrix(caption, [f"seed {seed}" for seed in last], labels, cells))
