"""The law among its runs, with its band and its residuals."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_doubts import beyond_words, framed
from isoloss.analysis.fit_rows import (
    amount,
    bulk,
    claim,
    law_at,
    law_losses,
    middle,
    on_logs,
    ranges_of,
    row_words,
    rows,
    spread_words,
    symbol,
    value_words,
    varied_inputs,
    words,
)
from isoloss.errors import InputError, Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import (
    FEW,
    INK,
    PREDICTED,
    QUIET,
    REAL,
    axis,
    number_format,
)
from isoloss.laws import Array, Fit, FitStatus

WIDTH, HEIGHT, STRIP = 620, 340, 110
PANEL, PANELS_A_ROW = 270, 3
GRID, LEVELS = 80, 5
BETWEEN, WITHIN = 0.14, 0.3
"""Opacities of the interval of a new run and of the band of the mean."""
MEAN, NEW_RUN = ("mean_low", "mean_high"), ("low", "high")


_Drawing = tuple[alt.LayerChart | alt.VConcatChart, pl.DataFrame, str]
"""A chart, the numbers behind it, and in words what its marks are."""


def law(fit: Fit, others: Sequence[Fit] = ()) -> Figure:
    """Loss over the inputs: rows, law, band, and the residuals below.

    Where one input varies it is a line with the band of its mean and the interval of a new run. Of two, it
    is lines along the first at values of the second. Of more, each input has a panel with the others held at
    their middle, and each row is moved there along the law (a partial residual). ``others`` are laws to draw
    beside one of one input. Raises Refusal where the range of an input is not known, or none varies, and
    InputError for others of other inputs.
    """
    points = None if fit.data is None else rows(fit)
    inputs = varied_inputs(fit)
    if not inputs:
        raise Refusal("no input of the law varies", mend="fit the law to runs that differ")
    if len(inputs) == 1:
        chart, table, how = _with_one_input(fit, points, inputs[0], others)
    elif others:
        raise InputError(
            "is of several inputs",
            where=fit.law,
            mend="draw others beside a law of one input, or as tokens-per-param or iso-loss",
        )
    elif len(inputs) == 2 and len(fit.form.inputs) == 2:
        chart, table, how = _with_two_inputs(fit, points, inputs)
    else:
        chart, table, how = _with_many_inputs(fit, points, inputs)
    title = claim(fit)
    if fit.sigma is not None:
        title += f", runs scatter {spread_words(fit, fit.sigma)} about it"
    return captioned(
        "law",
        chart,
        title,
        table,
        rows="no rows: the law over the range that it was fitted to" if points is None else row_words(fit),
        marks=how,
        marks_first=text.capital(how),
        value=value_words(fit),
        inputs=text.listed([words(name)[0].lower() + words(name)[1:] for name in inputs]),
        formula=fit.form.formula,
        source=fit.form.source,
        change=(
            "Runs outside the range drawn: the band holds the law's parameters, not another law."
            if fit.covariance is not None
            else "Nothing here: the constants are a paper's."
            if fit.status is FitStatus.PUBLISHED
            else "More runs, or several seeds: this fit has no interval."
        ),
    )


def _curve(fit: Fit, inputs: Mapping[str, Array]) -> pl.DataFrame:
    """The law along a path of inputs: law, mean_low, mean_high, low, high."""
    predicted = fit.predict(level=None, **inputs)
    columns = {name: np.asarray(column) for name, column in inputs.items()}
    columns["law"] = np.asarray(predicted.loss)
    for names, ends in ((MEAN, predicted.band), (NEW_RUN, predicted.interval)):
        for name, end in zip(names, ends or (predicted.loss, predicted.loss), strict=True):
            columns[name] = np.asarray(end)
    return pl.DataFrame(columns)


def _with_one_input(fit: Fit, points: pl.DataFrame | None, name: str, others: Sequence[Fit]) -> _Drawing:
    """A line along the one input that varies, and the lines of other laws."""
    low, high = ranges_of(fit)[name]
    curve = _curve(fit, _path(_centre(fit), name, np.geomspace(low, high, GRID)))
    x = axis(alt.X, name, words(name), curve[name])
    printed = _other_laws(fit, others, name, low, high) if others else None
    losses = [curve["law"]] if points is None else [curve["law"], points["observed"]]
    if printed is not None:
        losses.append(printed["other"])
    y = axis(alt.Y, "observed", value_words(fit), pl.concat(losses), log=fit.form.gives != "loss")
    layers, how = _law_layers(fit, curve, x, y), "line: the law, without an interval"
    if fit.covariance is not None:
        layers.insert(0, marks.band(curve, x, y, NEW_RUN, colour=PREDICTED, opacity=BETWEEN, clip=True))
        how = f"dark band: {text.level(fit.level)} interval of the law's mean, light: of one new run"
    if points is not None:
        layers.append(marks.points(points.select(name, "observed"), x, y, colour=REAL, size=42, opacity=0.75))
    if printed is not None:
        y_other = marks.renamed(y, "other")
        ends = printed.group_by("label", maintain_order=True).last()
        layers += [
            marks.line(printed, x, y_other, colour=QUIET, dash=[5, 4], width=1.5, by="label", clip=True),
            marks.end_labels(ends.with_columns(colour=pl.lit(QUIET)), x, y_other, HEIGHT, size=11),
        ]
        how += "; dashed: laws that papers printed, of other models and text"
    if points is None:
        return marks.panel(layers, WIDTH, HEIGHT), curve, how
    return _over_residuals(fit, points, layers, x, REAL), points.drop("label"), how + beyond_words(points)


def _other_laws(fit: Fit, others: Sequence[Fit], name: str, low: float, high: float) -> pl.DataFrame:
    """Laws that others printed, along the input ``name``: that column, ``other`` (the loss) and ``label``.

    Raises InputError for a law of other inputs, or of more than one.
    """
    parts: list[pl.DataFrame] = []
    for other in others:
        label = str(other.source.get("published", other.law))
        if other.form.inputs != (name,) or other.form.gives != fit.form.gives:
            raise InputError(
                f"takes {', '.join(other.form.inputs)} and gives {other.form.gives}",
                where=label,
                mend=f"draw beside a law of one input those that take {name} alone too",
            )
        rows = pl.DataFrame({name: np.geomspace(low, high, GRID), "label": label})
        parts.append(rows.with_columns(law_losses(other, rows).alias("other")))
    return pl.concat(parts)


def _law_layers(
    fit: Fit,
    curve: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    colour: str | alt.Color = PREDICTED,
    by: str | None = None,
) -> list[alt.Chart]:
    """The law, over the band of its mean where it has one; ``by``: a line for each value of that input."""
    opacity, width = (WITHIN, 2.5) if by is None else (0.2, 2.2)
    line = marks.line(curve, x, marks.renamed(y, "law"), colour=colour, width=width, by=by, clip=True)
    if fit.covariance is None:
        return [line]
    plain = colour if by is None else marks.COLOUR
    return [marks.band(curve, x, y, MEAN, colour=plain, opacity=opacity, by=by, clip=True), line]


def _over_residuals(
    fit: Fit, points: pl.DataFrame, layers: Sequence[alt.Chart], x: alt.X, colour: str | alt.Color
) -> alt.VConcatChart:
    """The panel of the law, and under it the residuals with 0 and one standard deviation on either side."""
    title = "Residual, %" if on_logs(fit) else "Residual"
    y = axis(alt.Y, "residual", title, [*framed(points), 0.0], log=False, narrow=True)
    # Altair copies inline data at every step: only what is drawn goes in.
    shown = points.select(*fit.form.inputs, "residual", *[c for c in points.columns if c == "colour"])
    dots = marks.points(shown, x, y, colour=colour, size=24, opacity=0.7, clip=True)
    strip = marks.panel([*levels_of(fit, y), dots], WIDTH, STRIP)
    panel = marks.panel(layers, WIDTH, HEIGHT).resolve_scale(color="independent")
    return alt.vconcat(panel, strip, spacing=14)


def levels_of(fit: Fit, y: alt.Y) -> list[alt.Chart]:
    """Rules at 0 and, where the spread of one run is known, at one standard deviation on either side."""
    zero = marks.chart_of(pl.DataFrame({"residual": [0.0]}))
    rules = [zero.mark_rule(color=INK, strokeWidth=1).encode(y)]
    if fit.sigma is not None:
        reach = fit.sigma * (100 if on_logs(fit) else 1)
        sides = marks.chart_of(pl.DataFrame({"residual": [-reach, reach]}))
        rules.append(sides.mark_rule(color=QUIET, strokeDash=[3, 3], clip=True).encode(y))
    return rules


def _with_two_inputs(fit: Fit, points: pl.DataFrame | None, inputs: list[str]) -> _Drawing:
    """Lines along one input at values of the other, each over the rows near it."""
    along = "position" if "position" in inputs else inputs[0]
    (by,) = [name for name in inputs if name != along]
    levels = _levels(fit, points, along, by)
    table = pl.concat(
        _curve(fit, {along: np.geomspace(low, high, GRID), by: np.full(GRID, level)})
        for level, low, high in levels
    )
    x = axis(alt.X, along, words(along), table[along] if points is None else points[along])
    losses = table["law"] if points is None else pl.concat([table["law"], points["observed"]])
    y = axis(alt.Y, "observed", value_words(fit), losses, log=marks.span(losses)[0] > 0, room=1.03)
    low, high = fit.ranges[by]
    bar = marks.colour_bar(by, words(by), low, high, labels=number_format(high))
    table = table.with_columns(marks.on_ramp(table[by], low, high))
    layers = _law_layers(fit, table.select(along, by, "law", *MEAN, "colour"), x, y, bar, by)
    ends = table.group_by(by, maintain_order=True).last()
    ends = ends.with_columns(pl.Series("label", [amount(by, level) for level in ends[by]]), observed="law")
    layers.append(marks.end_labels(ends, x, y, HEIGHT, size=11))
    how = f"lines: the law at {len(levels)} values of {symbol(by)}"
    if points is None:
        panel = marks.panel(layers, WIDTH, HEIGHT).resolve_scale(color="independent")
        return panel, table.drop("colour"), how
    how += ", each over the rows near it"
    if fit.covariance is not None:
        how += f", with the {text.level(fit.level)} band of its mean"
    drawn = points.sort(by, maintain_order=True)  # marks of one colour one after another make a small page
    drawn = drawn.with_columns(marks.on_ramp(drawn[by], low, high))
    layers.append(marks.points(drawn.select(along, "observed", "colour"), x, y, size=34, opacity=0.85))
    how += beyond_words(points)
    return _over_residuals(fit, drawn, layers, x, marks.COLOUR), points.drop("label"), how


def _levels(fit: Fit, points: pl.DataFrame | None, along: str, by: str) -> list[tuple[float, float, float]]:
    """Values of ``by`` to draw the law at, with the range of ``along`` that the rows near each cover."""
    if points is None:
        low, high = fit.ranges[by]
        return [(float(level), *fit.ranges[along]) for level in np.geomspace(low, high, LEVELS)]
    distinct = np.unique(points[by].to_numpy())
    if len(distinct) > FEW:
        low, high = bulk(points[by])
        distinct = np.geomspace(low, high, LEVELS)
    near = np.abs(np.log(points[by].to_numpy())[:, None] - np.log(distinct)).argmin(axis=1)
    out: list[tuple[float, float, float]] = []
    for index, level in enumerate(distinct):
        values = points[along].to_numpy()[near == index]
        if len(values) > 1 and values.max() > values.min():
            out.append((float(level), float(values.min()), float(values.max())))
    # Rows that vary one input at a time leave no line near them: then lines cross the whole range.
    return out or [(float(level), *fit.ranges[along]) for level in distinct]


def _with_many_inputs(fit: Fit, points: pl.DataFrame | None, inputs: list[str]) -> _Drawing:
    """A panel an input, the others at their middle; rows moved there along the law."""
    centre = _centre(fit)
    curves = {name: _panel_curve(fit, centre, name) for name in inputs}
    moved = {} if points is None else {name: _partial_residuals(fit, centre, name, points) for name in inputs}
    shown = moved or curves
    losses = [panel["law"] for panel in curves.values()] + [panel["observed"] for panel in moved.values()]
    panels: list[alt.LayerChart] = []
    for index, (name, curve) in enumerate(curves.items()):
        x = axis(alt.X, "x", words(name), shown[name]["x"], narrow=True)
        title = value_words(fit) if index % PANELS_A_ROW == 0 else ""
        y = axis(alt.Y, "observed", title, pl.concat(losses), log=False)
        layers = _law_layers(fit, curve, x, y)
        if points is not None:
            dots = moved[name].select("x", "observed")
            layers.append(marks.points(dots, x, y, colour=REAL, size=20, opacity=0.45))
        panels.append(marks.panel(layers, PANEL, PANEL))
    middles = ", ".join(amount(name, value) for name, value in centre.items())
    how = f"a panel an input, the others at {middles}"
    if points is not None:
        how += "; rows moved there along the law with their residuals"
    return in_rows(panels), pl.concat(shown.values()), how


def _panel_curve(fit: Fit, centre: Mapping[str, float], name: str) -> pl.DataFrame:
    """The law along one input: panel, x, law, mean_low, mean_high, low, high."""
    low, high = fit.ranges[name]
    if low <= 0:
        low = min(value for value in fit.data.inputs[name] if value > 0) if fit.data else high / 100
    curve = _curve(fit, _path(centre, name, np.geomspace(low, high, GRID)))
    return curve.select(pl.lit(name).alias("panel"), pl.col(name).alias("x"), "law", *MEAN, *NEW_RUN)


def _partial_residuals(
    fit: Fit, centre: Mapping[str, float], name: str, points: pl.DataFrame
) -> pl.DataFrame:
    """The rows at the middle of all inputs but one: panel, x, observed, residual."""
    rows_above_0 = points.filter(pl.col(name) > 0)
    law = law_at(fit, _path(centre, name, rows_above_0[name].to_numpy()))
    residual = rows_above_0["residual"].to_numpy()
    observed = law * np.exp(residual / 100) if on_logs(fit) else law + residual
    return pl.DataFrame({"panel": name, "x": rows_above_0[name], "observed": observed, "residual": residual})


def _centre(fit: Fit) -> dict[str, float]:
    return {name: middle(low, high) for name, (low, high) in ranges_of(fit).items()}


def _path(centre: Mapping[str, float], name: str, values: Array) -> dict[str, Array]:
    """Columns of all inputs: ``values`` of one, the others at their middle."""
    return {other: np.full(len(values), value) for other, value in centre.items()} | {name: values}


def in_rows(panels: Sequence[alt.LayerChart]) -> alt.VConcatChart:
    """Panels side by side, ``PANELS_A_ROW`` in a row."""
    rows = [panels[first : first + PANELS_A_ROW] for first in range(0, len(panels), PANELS_A_ROW)]
    return alt.vconcat(*(alt.hconcat(*row, spacing=26) for row in rows), spacing=26)
