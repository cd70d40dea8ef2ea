"""Profiles of a fit's parameters: how much worse the law gets as one of them leaves its estimate."""

from dataclasses import replace

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.parameters import profile_table, profile_verdict, profile_words, profiles
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.fit import PANELS_A_ROW, in_rows
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL, axis
from isoloss.laws import Fit, Profile

WIDTH, HEIGHT = 250, 210
SHOWN = 1.8
"""Profiles are drawn out to this many times the threshold."""


def figure(fit: Fit) -> Figure:
    """A panel a parameter: the signed root of the rise against its values, and the t interval's line."""
    curves = profiles(fit)
    charts = [_panel(fit, curve, index) for index, curve in enumerate(curves)]
    drawn = captioned(
        "profiles",
        in_rows(charts),
        profile_verdict(fit, curves),
        pl.concat(profile_table(fit, curve) for curve in curves),
        level=text.level(fit.level),
        parameters=" ".join(profile_words(fit, curve) for curve in curves),
    )
    return replace(drawn, characters={1: 36, 2: 62}.get(len(curves), 100))


def _panel(fit: Fit, curve: Profile, index: int) -> alt.LayerChart:
    table = profile_table(fit, curve).filter(
        (pl.col("distance").abs() <= SHOWN * curve.threshold)
        & pl.col("value").is_finite()
        & ((pl.col("value") > 0) | pl.lit(curve.parameter in fit.form.signed))
    )
    values = table["value"].to_numpy()
    log = curve.parameter not in fit.form.signed and values.max() > 5 * values.min()
    top = SHOWN * curve.threshold
    x = axis(alt.X, "value", curve.parameter, values, log=log, narrow=True)
    title = "Distance, standard errors" if index % PANELS_A_ROW == 0 else ""
    y = alt.Y("distance:Q", title=title, scale=alt.Scale(domain=[-top, top], nice=False))
    levels = pl.DataFrame({"distance": [-curve.threshold, curve.threshold]})
    centre = pl.DataFrame({"value": [fit.params[curve.parameter]], "distance": [0.0]})
    table = table.select("value", "distance", "t_distance")
    layers = [
        marks.chart_of(levels).mark_rule(color=QUIET, strokeWidth=1.5).encode(y),
        marks.line(table, x, marks.renamed(y, "t_distance"), colour=INK, dash=[5, 4], width=1.3, clip=True),
        marks.line(table, x, y, colour=PREDICTED, width=2.5, clip=True),
        marks.points(table, x, y, colour=PREDICTED, size=26, clip=True),
        marks.points(centre, x, y, colour=REAL, shape="diamond", size=60),
    ]
    name = f"{curve.parameter}: {text.interval(curve.interval, text.brief)}"
    inner = alt.TitleParams(name, fontSize=13, fontWeight="normal", anchor="start")
    return marks.panel(layers, WIDTH, HEIGHT, inner)
