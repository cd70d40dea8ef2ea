"""How a family uses context: laws in the token index, when each is learned, and what size gives it."""

from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.context_misses import misses_words
from isoloss.analysis.context_steps import steps_verdict
from isoloss.analysis.contexts import (
    Contexts,
    ContextSize,
    late_words,
    law_verdict,
    short_minus_long,
    sizes_verdict,
    trend_words,
)
from isoloss.analysis.families import name_of, plural_of
from isoloss.analysis.fit_rows import law_at
from isoloss.analysis.points import LEVEL_WORDS
from isoloss.analysis.sliding import octaves
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import linear_axis, log_axis

WIDTH, HEIGHT = 520, 400
POINTER = 18
"""Pixels from a panel to the names of its octaves, which crowd where context is long."""
LOSS = "Validation loss (nats per token)"
DASH = [5, 4]


def size_name(size: ContextSize) -> str:
    return f"N = {text.count(size.params)}"


def of_family(data: Contexts, made: Figure) -> Figure:
    """The figure, named after its family unless that is the study's first."""
    return replace(made, name=made.name + data.suffix)


def title(data: Contexts, verdict: str) -> str:
    return text.capital(data.whose + verdict)


def laws_figure(data: Contexts) -> Figure:
    """Loss against token index, a curve a size, its law dashed."""
    made = captioned(
        "context-laws",
        laws_chart(data),
        title(data, law_verdict(data)),
        laws_table(data),
        models=text.capital(plural_of(data.family)),
        tokens=text.count(data.tokens),
        level=LEVEL_WORDS,
        sizes="; ".join(f"{size_name(size)}: {size.formula or 'no formula'}" for size in data.sizes),
        misses=sentence(misses_words(data.sizes)),
        trend=sentence(trend_words(data)),
        joint=joint_words(data),
    )
    return of_family(data, made)


def sentence(words: str) -> str:
    """With a space before and a full stop after it, or nothing."""
    return f" {words}." if words else ""


def joint_words(data: Contexts) -> str:
    if isinstance(data.joint, Refusal):
        return f"No law in N and T together: {data.joint.what}"
    joint = data.joint
    return (
        "One law for all sizes, E + A N^-alpha + B N^-eta T^-p, fitted without the largest, misses its curve "
        f"by {joint.error:.3f} nats. The next smaller size's curve misses it by {joint.nearest:.3f}"
    )


def laws_chart(data: Contexts) -> alt.LayerChart:
    """A curve a size, coloured by N, its law dashed, both named at the curve's end."""
    rows = laws_table(data)
    x = log_axis(alt.X, "position", "Token index in the context T", 1, data.context, room=1.05)
    y = linear_axis("loss", LOSS, *marks.span(rows["loss"]))
    span = marks.span(rows["params"])
    colour = marks.colour_bar("params", "Parameters N", *span)
    coloured = rows.with_columns(marks.on_ramp(rows["params"], *span))
    layers = [
        marks.band(coloured, x, y, ("lowest_seed", "highest_seed"), by="params", opacity=0.15),
        marks.line(rows, x, y, colour=colour, by="params"),
    ]
    T = np.geomspace(1, data.context, 60)
    laws = [
        pl.DataFrame({"position": T, "loss": law_at(size.known, {"position": T})}).with_columns(
            params=pl.lit(size.params)
        )
        for size in data.sizes
        if size.known
    ]
    if laws:
        dashed = pl.concat(laws)
        dashed = dashed.with_columns(marks.on_ramp(dashed["params"], *span))
        layers.append(marks.line(dashed, x, y, dash=DASH, width=1.3, by="params", clip=True))
    names = [": ".join(filter(None, (size_name(size), size.formula))) for size in data.sizes]
    ends = rows.group_by("params", maintain_order=True).last()
    ends = ends.with_columns(pl.Series("label", names), marks.on_ramp(ends["params"], *span))
    layers.append(marks.end_labels(ends, marks.EDGE, y, HEIGHT))
    return marks.panel(layers, WIDTH, HEIGHT).resolve_scale(color="independent")


def laws_table(data: Contexts) -> pl.DataFrame:
    """Every group of positions with its loss, and its law's where there is one."""
    parts: list[pl.DataFrame] = []
    for size in data.sizes:
        law = pl.lit(None, dtype=pl.Float64)
        if size.known:
            law = pl.Series(law_at(size.known, {"position": size.curve["position"].to_numpy()}))
        columns = [pl.col("first").alias("from_token"), pl.col("last").alias("to_token"), "position", "loss"]
        columns += ["lowest_seed", "highest_seed"]
        named = [law.alias("law_loss"), pl.lit(size.formula).alias("law")]
        parts.append(size.curve.select(pl.lit(size.params).alias("params"), *columns, *named))
    return pl.concat(parts)


def octave_words(first: int, last: int) -> str:
    return str(last) if first == last else f"{first}–{last}"


def octave_lines(rows: pl.DataFrame, x: alt.X, *dashed: pl.DataFrame) -> alt.LayerChart:
    """Loss against x, a line an octave of T, coloured by T and named at its end; ``dashed`` below them."""
    middles = [(table["from_token"] * table["to_token"]).sqrt() for table in (rows, *dashed)]
    span = marks.span(middles[0])
    coloured = zip((rows, *dashed), middles, strict=True)
    rows, *others = (table.with_columns(marks.on_ramp(middle, *span)) for table, middle in coloured)
    y = linear_axis("loss", LOSS, *marks.span(rows["loss"], *(other["loss"] for other in others)))
    layers = [marks.line(o, x, y, by="from_token", dash=DASH, width=1.5) for o in others]
    layers.append(marks.line(rows, x, y, by="from_token"))
    ends = rows.sort(marks.column_of(x)).group_by("from_token", "to_token", maintain_order=True).last()
    names = [f"T = {octave_words(*row)}" for row in ends.select("from_token", "to_token").iter_rows()]
    ends = ends.with_columns(pl.Series("label", names))
    layers.append(marks.pointers(ends, y, HEIGHT, long=POINTER))
    layers.append(marks.end_labels(ends, marks.EDGE, y, HEIGHT, away=POINTER + 4))
    return marks.panel(layers, WIDTH, HEIGHT)


def steps_figure(data: Contexts) -> Figure:
    """Loss against training step, a curve an octave. Raises Refusal without evaluations along the trunk."""
    if isinstance(data.steps, Refusal):
        raise data.steps
    rows = data.steps.rows
    x = log_axis(alt.X, "step", "Training step", *marks.span(rows["step"]), room=1.1)
    made = captioned(
        "context-steps",
        octave_lines(rows, x),
        title(data, steps_verdict(data.steps)),
        rows,
        model=text.capital(name_of(data.family)),
        params=text.count(data.steps.params),
        seeds=text.plural(data.steps.seeds, "seed"),
    )
    return of_family(data, made)


def sizes_figure(data: Contexts) -> Figure:
    """Loss against N, a curve an octave of the token index, beside models of a short context."""
    rows, *short = (octaves_by_size(sizes) for sizes in (data.sizes, data.short) if sizes)
    x = log_axis(alt.X, "params", "Parameters N (non-embedding)", *marks.span(rows["params"]), room=1.1)
    made = captioned(
        "context-sizes",
        octave_lines(rows, x, *short),
        title(data, sizes_verdict(data)),
        pl.concat([rows, *short]),
        models=text.capital(plural_of(data.family)),
        tokens=text.count(data.tokens),
        short=short_words(data),
        slope=sentence(late_words(data)),
        level=LEVEL_WORDS,
    )
    return of_family(data, made)


def octaves_by_size(sizes: tuple[ContextSize, ...]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"context": size.context, "params": size.params, "from_token": first, "to_token": last}
        | {"loss": float(size.mean_B(first, last).mean())}
        for size in sizes
        for first, last in octaves(size.context)
    ]
    return pl.DataFrame(rows)


def short_words(data: Contexts) -> str:
    """How a model of a short context does where both can be compared."""
    largest = short_minus_long(data)
    if largest is None:
        return "No size was trained with a shorter context"
    size, gap = largest
    return (
        f"Dashed: trained with context {size.context}; at tokens {octave_words(*octaves(size.context)[-1])}, "
        f"{size_name(size)}, short minus long: {text.difference(gap)}"
    )
