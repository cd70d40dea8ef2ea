"""The difference between two families against training tokens D, a line a size, and where it is gone."""

from dataclasses import replace

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.families import name_of
from isoloss.analysis.gap_by_tokens import PairByTokens, SizeGaps, gaps_table
from isoloss.analysis.gap_words import check_words, first_end, headline, off_words, verdict
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, along_ramp, linear_axis, log_axis

WIDTH, HEIGHT = 560, 400
PAIRING = "Seeds are paired: runs of one seed read the same text in the same order"
PLACES = 30
"""At which a line is drawn: it may be bent."""
APART = 1.015
"""Sizes stand apart sideways by this factor at each D, so that their bars can be told apart."""
SHAPES = tuple(shape for shape in marks.SHAPES if shape != "diamond")
"""Of sizes; the diamond is a zero."""


def figure(data: PairByTokens, plane: tuple[float, float] = (WIDTH, HEIGHT)) -> Figure:
    """Gaps with their intervals, the fitted line of each size, and a diamond where it is zero."""
    colours = along_ramp(np.linspace(0, 1, len(data.sizes)))
    drawn = [(size, colour) for size, colour in zip(data.sizes, colours, strict=True)]
    checks = check_words(data)
    rate = f"{text.capital(verdict(data))}." if first_end(data) else ""
    crossed = any(size.zero is not None for size in data.sizes)
    made = captioned(
        "gap-by-tokens",
        chart(drawn, f"{data.versus.words} (nats per token)", plane),
        text.capital(headline(data)),
        gaps_table(data),
        words=data.versus.words,
        rival=name_of(data.versus.rival),
        pairing=PAIRING,
        level=LEVEL_WORDS,
        zeros=f" Diamonds: where a line is zero, with its {LEVEL_WORDS} interval." if crossed else "",
        axis=axis_words(data),
        slopes="one slope for all sizes" if data.shared else "a slope for each size",
        rivals=rival_words(data),
        checks=f"; {checks}" if checks else "",
        checked=", at held-out points with the error of the line" if checks else "",
        rate=" ".join(filter(None, [rate, off_words(data)])),
    )
    return replace(made, name=made.name + data.versus.suffix)


def axis_words(data: PairByTokens) -> str:
    """On which scale of D the lines are straight."""
    scale = data.sizes[0].scale
    if not scale.power:
        return "log D"
    ends = text.interval(scale.ends, lambda power: f"{power:.2g}")
    return f"D^-p, p = {scale.power:.2g} ({LEVEL_WORDS} interval {ends})"


def rival_words(data: PairByTokens) -> str:
    """Which curve each size meets."""
    of_curve = {size.curve: [s for s in data.sizes if s.curve == size.curve] for size in data.sizes}
    return " and ".join(
        f"{curve} at N = {text.listed([text.count(size.params) for size in sizes])}"
        for curve, sizes in of_curve.items()
    )


def chart(sizes: list[tuple[SizeGaps, str]], y_title: str, plane: tuple[float, float]) -> alt.LayerChart:
    """Lines are drawn to a crossing that is not far beyond the most tokens."""
    middle = (len(sizes) - 1) / 2
    points = pl.concat(
        points_of(size, colour, i - middle).with_columns(shape=pl.lit(SHAPES[i % len(SHAPES)]))
        for i, (size, colour) in enumerate(sizes)
    )
    zeros = pl.concat(zero_of(size, colour) for size, colour in sizes)
    lines = pl.concat(line_of(size, colour, zeros) for size, colour in sizes)
    x = log_axis(alt.X, "tokens", "Training tokens D", *marks.span(lines["tokens"]), room=1.15)
    ends = marks.span_with_bars(points["gap"], points["low"], points["high"])
    y = linear_axis("gap", y_title, *marks.span(ends, lines["gap"], [0.0]))
    layers = [
        marks.chart_of(pl.DataFrame({"gap": [0.0]})).mark_rule(color=INK).encode(y),
        marks.bars(points, x, y, clip=True, opacity=0.6),
        marks.line(lines.filter(~pl.col("beyond")), x, y, width=1.8),
        marks.line(lines.filter("beyond"), x, y, width=1.2, dash=[4, 4]),
        marks.points(points, x, y, shape=marks.SHAPE, size=46),
        marks.chart_of(zeros)
        .mark_rule(strokeWidth=5, opacity=0.35, clip=True)
        .encode(marks.renamed(x, "low"), y, x2=alt.X2("high:Q"), color=marks.COLOUR),
        marks.points(zeros, x, y, shape="diamond", size=130),
        marks.end_labels(lines.group_by("label", maintain_order=True).last(), marks.EDGE, y, plane[1]),
    ]
    return marks.panel(layers, *plane)


def points_of(size: SizeGaps, colour: str, place: float) -> pl.DataFrame:
    """The gaps with their intervals, a little to the side."""
    rows = [
        (tokens * APART**place, gap.difference.value, *size.ends(tokens), colour)
        for tokens, gap in size.gaps.items()
    ]
    kinds = {**dict.fromkeys(("tokens", "gap", "low", "high"), pl.Float64), "colour": pl.String}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def zero_of(size: SizeGaps, colour: str) -> pl.DataFrame:
    """Where the line is zero, with its interval; no row where it is not in sight."""
    rows = [] if size.zero is None else [(size.zero.value, 0.0, size.zero.low, size.zero.high, colour)]
    kinds = {**dict.fromkeys(("tokens", "gap", "low", "high"), pl.Float64), "colour": pl.String}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def line_of(size: SizeGaps, colour: str, zeros: pl.DataFrame) -> pl.DataFrame:
    """The line over the D that it was fitted to and, as ``beyond``, on to its zero or last point."""
    first, last = min(size.gaps), size.fitted
    end = max([*size.gaps, *zeros.filter(pl.col("colour") == colour)["tokens"]])
    ends = [end] if end > last else []
    parts = [np.geomspace(first, last, PLACES), *(np.geomspace(last, end, PLACES) for end in ends)]
    tokens = np.concatenate(parts)
    return pl.DataFrame(
        {
            "tokens": tokens,
            "gap": size.at(tokens),
            "beyond": np.arange(len(tokens)) >= PLACES,
            "colour": colour,
            "label": f"N = {text.count(size.params)}",
        }
    )
