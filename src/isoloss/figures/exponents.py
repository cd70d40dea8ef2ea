"""Each exponent of a law under every objective: whether it is the data's, or the objective's."""

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.refits import Refits
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import PREDICTED, REAL
from isoloss.laws import Fit

WIDTH, ROW = 240, 26


def figure(fit: Fit, refits: Refits) -> Figure:
    """A panel a parameter with an interval a row, the fit's own objective in another colour.

    Raises Refusal where no exponent is free.
    """
    table = rows_of(refits)
    names = [name for name in fit.form.limits if name not in fit.fixed]
    if not names:
        raise Refusal("no exponent of the law is free", mend="fit it without --fixed")
    table = table.filter(pl.col("parameter").is_in(names))
    spans = {name: marks.span(table.filter(pl.col("parameter") == name)["value"]) for name in names}
    most = max(names, key=lambda name: spans[name][1] / spans[name][0])
    count, (low, high) = table["setting"].n_unique(), spans[most]
    title = f"Under {text.plural(count, 'objective')} {most} goes from {low:.3g} to {high:.3g}"
    charts = [_panel(table.filter(pl.col("parameter") == name), name) for name in names]
    return captioned(
        "exponents",
        alt.hconcat(*charts, spacing=24),
        title,
        table.drop("colour"),
        law=fit.law,
        level=text.level(fit.level),
        refused="".join(
            f" {name}: refused, {law.what}." for name, _, law in refits if isinstance(law, Refusal)
        ),
    )


def rows_of(refits: Refits) -> pl.DataFrame:
    """setting, parameter, value, low, high, own, colour; ends are null where a fit has no interval."""
    rows = []
    for index, (name, delta, law) in enumerate(refits):
        if isinstance(law, Refusal):
            continue
        setting = name if delta is None else f"{name}, delta {delta:g}"
        for parameter, value in law.params.items():
            ends = law.intervals.get(parameter) or (None, None)
            rows.append((setting, parameter, value, *ends, index == 0, PREDICTED if index == 0 else REAL))
    numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
    schema = {"setting": pl.String, "parameter": pl.String, **numbers, "own": pl.Boolean, "colour": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _panel(table: pl.DataFrame, name: str) -> alt.LayerChart:
    order = table["setting"].to_list()
    x = alt.X("value:Q", title=name).scale(zero=False).axis(tickCount=4, labelFlush=False)
    y = alt.Y("setting:N", sort=order, title=None).axis(ticks=False, labelPadding=8, labelLimit=200)
    bars = marks.chart_of(table.filter(pl.col("low").is_not_null())).mark_rule(strokeWidth=2)
    ends = {"x": marks.renamed(x, "low"), "x2": "high:Q"}
    layers = [bars.encode(y=y, color=marks.COLOUR, **ends), marks.points(table, x, y, size=60)]
    return marks.panel(layers, WIDTH, ROW * len(order))
