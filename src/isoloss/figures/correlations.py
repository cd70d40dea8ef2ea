"""How the parameters of a fit hang together."""

import altair as alt
import numpy as np
import polars as pl

from isoloss.errors import Refusal
from isoloss.figures.figure import Figure
from isoloss.figures.marks import COLOUR, chart_of, panel
from isoloss.figures.style import INK
from isoloss.laws import Array, Fit

CELL = 62
SCALE = ("#0072B2", "#f7f7f7", "#CC5500")
"""From -1 over 0 to 1: blue to orange, told apart with any colour vision."""
STRONG = 0.9


def correlations(fit: Fit) -> tuple[tuple[str, ...], Array]:
    """Free parameters and the correlations of their estimates, positive ones as logarithms.

    Raises Refusal for a fit without covariance.
    """
    spread, law = fit.plain_covariance(), fit.form
    free = [i for i, name in enumerate(law.parameters) if name not in fit.fixed and spread[i, i] > 0]
    error = np.sqrt(np.diag(spread)[free])
    matrix = spread[np.ix_(free, free)] / error[:, None] / error
    return tuple(law.parameters[i] for i in free), np.clip(matrix, -1.0, 1.0)


def figure(fit: Fit) -> Figure:
    """The matrix, its numbers written in. Raises Refusal for fewer than two free parameters."""
    names, matrix = correlations(fit)
    if len(names) < 2:
        raise Refusal("one free parameter has nothing to correlate with", mend="free another parameter")
    pairs = [
        (names[i], names[j], float(matrix[i, j]))
        for i in range(len(names))
        for j in range(i)
        if not any({names[i], names[j]} <= set(group) for group in fit.tied)
    ]
    title = _finding(pairs)
    table = pl.DataFrame(
        [
            {"first": a, "second": b, "correlation": float(matrix[i, j])}
            for i, a in enumerate(names)
            for j, b in enumerate(names)
        ]
    ).with_columns(
        pl.col("correlation").round(2).map_elements(_written, return_dtype=pl.String).alias("words"),
        pl.when(pl.col("correlation").abs() > 0.85)
        .then(pl.lit("white"))
        .otherwise(pl.lit(INK))
        .alias("colour"),
    )
    order = list(names)
    x = alt.X(
        "second:N",
        sort=order,
        title=None,
        axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
    )
    y = alt.Y("first:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
    colour = alt.Color(
        "correlation:Q",
        scale=alt.Scale(domain=[-1, 0, 1], range=list(SCALE)),
        legend=alt.Legend(title="Correlation", gradientLength=min(CELL * len(names), 200)),
    )
    cells = chart_of(table).mark_rect(stroke="white", strokeWidth=2).encode(x, y, color=colour)
    numbers = chart_of(table).mark_text(fontSize=13).encode(x, y, text="words:N", color=COLOUR)
    side = CELL * len(names)
    return Figure(
        name="correlations",
        chart=panel([cells, numbers], side, side).resolve_scale(color="independent"),
        title=title,
        subtitle=(
            "of the estimates, at the scale on which intervals are made: logarithms of positive parameters"
        ),
        characters=56,
        description="A square of correlations between the estimates of the free parameters.",
        shows=(
            f"{title}. Where two move together each alone is uncertain though their combination is not: the "
            "law's losses may be sure while its parameters are not, and parameters must be taken as a set."
        ),
        would_change="A wider range of the input that the pair shares; or a parameter held at a known value.",
        table=table.drop("words", "colour"),
    )


def _finding(pairs: list[tuple[str, str, float]]) -> str:
    if not pairs:
        return "All free parameters are tied to each other"
    first, second, worst = max(pairs, key=lambda pair: abs(pair[2]))
    strong = sum(abs(value) > STRONG for _, _, value in pairs)
    if not strong:
        return f"No pair of parameters hides another: {second} and {first} most, {_written(worst)}"
    more = f"; {strong} of {len(pairs)} pairs exceed {STRONG}" if strong > 1 else ""
    return f"{second} and {first} move together (correlation {_exact(worst)}){more}"


def _written(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _exact(value: float) -> str:
    """With enough nines to tell it from 1."""
    digits = next((d for d in (2, 3, 4, 5) if abs(round(value, d)) < 1), 6)
    return f"{value:+.{digits}f}".replace("-", "−")
