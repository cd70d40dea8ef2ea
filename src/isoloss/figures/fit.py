"""The law among its runs, with its band and its residuals."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.figures import beside
from isoloss.figures.figure import Figure
from isoloss.figures.fit_rows import (
    FEW,
    amount,
    axis,
    chart_of,
    claim,
    middle,
    number_format,
    on_logs,
    ranges_of,
    renamed,
    row_words,
    rows,
    spread_words,
    symbol,
    value_words,
    varied,
    words,
)
from isoloss.figures.style import INK, PREDICTED, QUIET, RAMP, REAL, configured, title_of
from isoloss.laws import Array, Fit, FitStatus

WIDTH, HEIGHT, STRIP = 620, 340, 110
PANEL, PANELS_A_ROW = 270, 3
GRID, LEVELS = 80, 5
BETWEEN, WITHIN = 0.14, 0.3
"""Opacities of the interval of a new run and of the band of the mean."""


def plot(fit: Fit, others: Sequence[Fit] = ()) -> alt.TopLevelMixin:
    """The law among its runs, for a notebook. Raises Refusal where no range is known to draw it over."""
    figure = law(fit, others)
    title = title_of(figure.title, figure.subtitle, figure.characters)
    return configured(figure.chart.properties(title=title))


def law(fit: Fit, others: Sequence[Fit] = ()) -> Figure:
    """Loss over the inputs: rows, law, band, and the residuals below.

    Where one input varies it is a line with the band of its mean and the interval of a new run. Of two, it
    is lines along the first at values of the second. Of more, each input has a panel with the others held at
    their middle, and each row is moved there along the law (a partial residual). ``others`` are laws to draw
    beside one of one input. Raises Refusal where the range of an input is not known, or none varies, and
    InputError for others of other inputs.
    """
    points = None if fit.data is None else rows(fit)
    drawn = varied(fit)
    if not drawn:
        raise Refusal("no input of the law varies", mend="fit the law to runs that differ")
    if len(drawn) == 1:
        chart, table, how = _one(fit, points, drawn[0], others)
    elif others:
        raise InputError("is of several inputs", where=fit.law, mend="draw others beside a law of one input")
    elif len(drawn) == 2 and len(fit.form.inputs) == 2:
        chart, table, how = _two(fit, points, drawn)
    else:
        chart, table, how = _panels(fit, points, drawn)
    title = claim(fit)
    if fit.sigma is not None:
        title += f", runs scatter {spread_words(fit, fit.sigma)} about it"
    shown = "no rows: the law over the range that it was fitted to" if points is None else row_words(fit)
    return Figure(
        name="law",
        chart=chart,
        title=title,
        subtitle=f"{shown}; {how}",
        description=f"{value_words(fit)} against {text.listed([words(name) for name in drawn])}: {how}.",
        shows=f"{title}. {text.capital(how)}. The law is {fit.form.formula} ({fit.form.source}).",
        would_change=(
            "Runs outside the range drawn: the band holds the law's parameters, not another law."
            if fit.covariance is not None
            else "Nothing here: the constants are a paper's."
            if fit.status is FitStatus.PUBLISHED
            else "More runs, or several seeds: this fit has no interval."
        ),
        table=table,
    )


def _line(fit: Fit, x: dict[str, Array], **constants) -> pl.DataFrame:
    """The law along a path of inputs: law, mean_low, mean_high, low, high."""
    predicted = fit.predict(**x)
    columns = {name: np.asarray(column) for name, column in x.items()} | {"law": predicted.loss}
    for names, ends in ((("mean_low", "mean_high"), predicted.band), (("low", "high"), predicted.interval)):
        for name, end in zip(names, ends or (predicted.loss, predicted.loss), strict=True):
            columns[name] = end
    return pl.DataFrame(columns).with_columns(pl.lit(value).alias(name) for name, value in constants.items())


def _one(
    fit: Fit, points: pl.DataFrame | None, name: str, others: Sequence[Fit]
) -> tuple[alt.TopLevelMixin, pl.DataFrame, str]:
    """A line along the one input that varies, and the lines of other laws."""
    low, high = ranges_of(fit)[name]
    line = _line(fit, _at(_centre(fit), name, np.geomspace(low, high, GRID)))
    log = fit.form.gives != "loss"
    x = axis(alt.X, name, words(name), line[name])
    printed = beside.table(fit, others, name, line[name].to_numpy()) if others else None
    values = line["law"] if points is None else np.concatenate([line["law"], points["observed"]])
    if printed is not None:
        values = np.concatenate([values, printed["other"]])
    y = axis(alt.Y, "observed", value_words(fit), values, log=log)
    parts = [
        chart_of(line).mark_area(color=PREDICTED, opacity=opacity, clip=True).encode(
            x, renamed(y, low_name), y2=f"{high_name}:Q"
        )
        for low_name, high_name, opacity in (("low", "high", BETWEEN), ("mean_low", "mean_high", WITHIN))
        if fit.covariance is not None
    ]  # fmt: skip
    parts.append(
        chart_of(line)
        .mark_line(color=PREDICTED, strokeWidth=2.5, clip=True)
        .encode(x.copy(), renamed(y, "law"))
    )
    if points is not None:
        dots = chart_of(points.select(name, "observed")).mark_point(
            filled=True, size=42, color=REAL, opacity=0.75
        )
        parts.append(dots.encode(x, y))
    if printed is not None:
        parts += beside.lines(printed, name, x, y, gap=0.045 * float(np.ptp(values)))
    upper = alt.layer(*parts).properties(width=WIDTH, height=HEIGHT)
    how = (
        f"dark band: {text.level(fit.level)} interval of the law's mean, light: of one new run"
        if fit.covariance is not None
        else "line: the law, without an interval"
    )
    how += "; dashed: laws that papers printed, of other models and text" * bool(others)
    if points is None:
        return upper, line, how
    strip = _strip(fit, points, x, alt.value(REAL))
    return alt.vconcat(upper, strip, spacing=14), points.drop("label"), how


def _strip(fit: Fit, points: pl.DataFrame, x: alt.X, colour) -> alt.LayerChart:
    """Residuals under the panel, with 0 and one standard deviation on either side."""
    title = "Residual, %" if on_logs(fit) else "Residual"
    values = np.append(points["residual"].to_numpy(), 0.0)
    y = axis(alt.Y, "residual", title, values, log=False, narrow=True)
    # Altair copies inline data at every step: only what is drawn goes in.
    drawn = points.select(*fit.form.inputs, "residual")
    marks = chart_of(drawn).mark_point(filled=True, size=24, opacity=0.7)
    return alt.layer(*levels_of(fit, y), marks.encode(x, y, color=colour)).properties(
        width=WIDTH, height=STRIP
    )


def levels_of(fit: Fit, y: alt.Y) -> list[alt.Chart]:
    """Rules at 0 and, where the spread of one run is known, at one standard deviation on either side."""
    rules = [chart_of(pl.DataFrame({"residual": [0.0]})).mark_rule(color=INK, strokeWidth=1).encode(y)]
    if fit.sigma is not None:
        reach = fit.sigma * (100 if on_logs(fit) else 1)
        sides = pl.DataFrame({"residual": [-reach, reach]})
        rules.append(chart_of(sides).mark_rule(color=QUIET, strokeDash=[3, 3], clip=True).encode(y))
    return rules


def _two(fit: Fit, points: pl.DataFrame | None, drawn: list[str]):
    """Lines along one input at values of the other, each over the rows near it."""
    along = "position" if "position" in drawn else drawn[0]
    (by,) = [name for name in drawn if name != along]
    lines, levels = [], _levels(fit, points, along, by)
    for level, low, high in levels:
        path = np.geomspace(low, high, GRID)
        lines.append(_line(fit, {along: path, by: np.full(GRID, level)}))
    table = pl.concat(lines)
    x = axis(alt.X, along, words(along), table[along] if points is None else points[along])
    values = table["law"] if points is None else np.concatenate([table["law"], points["observed"]])
    y = axis(alt.Y, "observed", value_words(fit), values, log=False)
    colour = _colour(by, fit.ranges[by], [level for level, _, _ in levels])
    parts = []
    if fit.covariance is not None:
        band = chart_of(table.select(along, by, "mean_low", "mean_high")).mark_area(opacity=0.2, clip=True)
        parts.append(band.encode(x, renamed(y, "mean_low"), y2="mean_high:Q", color=colour, detail=f"{by}:Q"))
    line = chart_of(table.select(along, by, "law")).mark_line(strokeWidth=2.2, clip=True)
    parts.append(line.encode(x, renamed(y, "law"), color=colour, detail=f"{by}:Q"))
    how = f"lines: the law at {len(lines)} values of {symbol(by)}, each over the rows near it"
    if fit.covariance is not None:
        how += f", with the {text.level(fit.level)} band of its mean"
    if points is None:
        how = f"lines: the law at {len(lines)} values of {symbol(by)}"
        return alt.layer(*parts).properties(width=WIDTH, height=HEIGHT), table, how
    dots = chart_of(points.select(along, by, "observed")).mark_point(filled=True, size=34, opacity=0.85)
    parts.append(dots.encode(x, y, color=colour))
    upper = alt.layer(*parts).properties(width=WIDTH, height=HEIGHT)
    return alt.vconcat(upper, _strip(fit, points, x, colour), spacing=14), points.drop("label"), how


def _colour(by: str, span: tuple[float, float], levels: list[float]) -> alt.Color:
    """From dark to bright along the logarithm of an input; the legend shows the lines' own values."""
    legend = alt.Legend(
        title=words(by),
        type="symbol",
        symbolOpacity=1,
        orient="bottom",
        values=levels,
        **number_format(min(levels), max(levels)),
    )
    return alt.Color(
        f"{by}:Q", scale=alt.Scale(type="log", range=list(RAMP), domain=list(span)), legend=legend
    )


def _levels(fit: Fit, points: pl.DataFrame | None, along: str, by: str) -> list[tuple[float, float, float]]:
    """Values of ``by`` to draw the law at, with the range of ``along`` that the rows near each cover."""
    if points is None:
        low, high = fit.ranges[by]
        return [(float(level), *fit.ranges[along]) for level in np.geomspace(low, high, LEVELS)]
    distinct = np.unique(points[by].to_numpy())
    if len(distinct) > FEW:
        distinct = np.geomspace(*np.quantile(points[by].to_numpy(), [0.04, 0.96]), LEVELS)
    near = np.abs(np.log(points[by].to_numpy())[:, None] - np.log(distinct)).argmin(axis=1)
    out = []
    for place, level in enumerate(distinct):
        own = points[along].to_numpy()[near == place]
        if len(own) > 1 and own.max() > own.min():
            out.append((float(level), float(own.min()), float(own.max())))
    # Rows that vary one input at a time leave no line near them: then lines cross the whole range.
    return out or [(float(level), *fit.ranges[along]) for level in distinct]


def _panels(fit: Fit, points: pl.DataFrame | None, drawn: list[str]):
    """A panel an input, the others at their middle; rows moved there along the law."""
    centre = _centre(fit)
    lines, moved = [], []
    for name in drawn:
        low, high = fit.ranges[name]
        if low <= 0:
            low = min(value for value in fit.data.inputs[name] if value > 0) if fit.data else high / 100
        line = _line(fit, _at(centre, name, np.geomspace(low, high, GRID)))
        lines.append(line.select(pl.lit(name).alias("panel"), pl.col(name).alias("x"), pl.exclude(name)))
        if points is not None:
            own = points.filter(pl.col(name) > 0)
            there = np.asarray(fit.predict(**_at(centre, name, own[name].to_numpy())).loss)
            away = own["residual"].to_numpy()
            value = there * np.exp(away / 100) if on_logs(fit) else there + away
            moved.append(pl.DataFrame({"panel": name, "x": own[name], "observed": value, "residual": away}))
    columns = ["panel", "x", "law", "mean_low", "mean_high", "low", "high"]
    table = pl.concat([line.select(columns) for line in lines])
    dots = pl.concat(moved) if moved else None
    values = table["law"] if dots is None else np.concatenate([table["law"], dots["observed"]])
    charts = []
    for place, name in enumerate(drawn):
        line = table.filter(pl.col("panel") == name)
        x = axis(alt.X, "x", words(name), line["x"] if dots is None else _of(dots, name)["x"], narrow=True)
        y = axis(alt.Y, "observed", value_words(fit) if place % PANELS_A_ROW == 0 else "", values, log=False)
        parts = []
        if fit.covariance is not None:
            band = chart_of(line).mark_area(color=PREDICTED, opacity=WITHIN, clip=True)
            parts.append(band.encode(x, renamed(y, "mean_low"), y2="mean_high:Q"))
        stroke = chart_of(line).mark_line(color=PREDICTED, strokeWidth=2.5, clip=True)
        parts.append(stroke.encode(x, renamed(y, "law")))
        if dots is not None:
            own = _of(dots, name).select("x", "observed")
            marks = chart_of(own).mark_point(filled=True, size=20, color=REAL, opacity=0.45)
            parts.append(marks.encode(x, y))
        charts.append(alt.layer(*parts).properties(width=PANEL, height=PANEL))
    middles = ", ".join(amount(name, value) for name, value in centre.items())
    how = f"each panel moves one input and holds the others at {middles}"
    if dots is not None:
        how += "; rows are moved there along the law, each keeping its residual"
    return in_rows(charts), (table if dots is None else dots), how


def _centre(fit: Fit) -> dict[str, float]:
    return {name: middle(low, high) for name, (low, high) in ranges_of(fit).items()}


def _of(table: pl.DataFrame, name: str) -> pl.DataFrame:
    return table.filter(pl.col("panel") == name)


def _at(centre: dict[str, float], name: str, values: Array) -> dict[str, Array]:
    return {other: np.full(len(values), value) for other, value in centre.items()} | {name: values}


def in_rows(charts: list, across: int = PANELS_A_ROW) -> alt.VConcatChart:
    lines = [alt.hconcat(*charts[i : i + across], spacing=26) for i in range(0, len(charts), across)]
    return alt.vconcat(*lines, spacing=26)
