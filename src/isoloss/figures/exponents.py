"""Each exponent of a law under every objective, or in several fits: is it the data's, or the setting's?"""

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.refits import Refits
from isoloss.errors import InputError, Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import PREDICTED, REAL
from isoloss.laws import Fit

WIDTH, ROW = 240, 26


def figure(fit: Fit, refits: Refits) -> Figure:
    """Of the same rows under each objective, the fit's own in another colour.

    Raises Refusal where no exponent is free.
    """
    settings = [
        (name if delta is None else f"{name}, delta {delta:g}", law)
        for name, delta, law in refits
        if isinstance(law, Fit)
    ]
    refused = [f" {name}: refused, {law.what}." for name, _, law in refits if isinstance(law, Refusal)]
    return _drawn(
        fit, settings, "objective", "fitted to the same rows under each objective", "".join(refused)
    )


def of_fits(fits: Sequence[Fit]) -> Figure:
    """Of several fits of one law, the first in another colour, by their tables or the papers that print them.

    Raises InputError for a fit of another law, Refusal where no exponent is free.
    """
    first, *others = fits
    for other in others:
        if other.law != first.law:
            raise InputError(
                f"is of the law {other.law}, the first of {first.law}",
                where=_name(other),
                mend="fit one law to all of them",
            )
    names: list[str] = []
    for fit in fits:
        count = sum(name.split(" (")[0] == _name(fit) for name in names)
        names.append(f"{_name(fit)} ({count + 1})" if count else _name(fit))
    return _drawn(first, list(zip(names, fits, strict=True)), "fit", "in each fit", "")


def _name(fit: Fit) -> str:
    """The paper that prints it, or its table and which rows of it."""
    if printed := fit.source.get("published"):
        return str(printed)
    table, rows = Path(str(fit.source.get("path", "arrays"))).stem, fit.source.get("where")
    return f"{table}, {rows}" if rows else table


def _drawn(fit: Fit, settings: Sequence[tuple[str, Fit]], unit: str, how: str, refused: str) -> Figure:
    """A panel an exponent with an interval a row."""
    table = rows_of(settings)
    names = [name for name in fit.form.limits if name not in fit.fixed]
    if not names:
        raise Refusal("no exponent of the law is free", mend="fit it without --fixed")
    table = table.filter(pl.col("parameter").is_in(names))
    spans = {name: marks.span(table.filter(pl.col("parameter") == name)["value"]) for name in names}
    most = max(names, key=lambda name: spans[name][1] / spans[name][0])
    count, (low, high) = table["setting"].n_unique(), spans[most]
    settings_words = f"{'In' if unit == 'fit' else 'Under'} {text.plural(count, unit)}"
    title = f"{settings_words} {most} goes from {low:.3g} to {high:.3g}"
    charts = [_panel(table.filter(pl.col("parameter") == name), name) for name in names]
    return captioned(
        "exponents",
        alt.hconcat(*charts, spacing=24),
        title,
        table.drop("colour"),
        law=fit.law,
        level=text.level(fit.level),
        how=how,
        setting=unit,
        refused=refused,
    )


def rows_of(settings: Sequence[tuple[str, Fit]]) -> pl.DataFrame:
    """setting, parameter, value, low, high, own, colour; ends are null where a fit has no interval."""
    rows = []
    for index, (setting, law) in enumerate(settings):
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
