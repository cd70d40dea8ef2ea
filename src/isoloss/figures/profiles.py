"""Profiles of a fit's parameters: how much worse the law gets as one of them leaves its estimate."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.residuals import exact
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.fit import PANELS_A_ROW, in_rows
from isoloss.figures.fit_rows import axis
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL
from isoloss.laws import Array, Fit, Profile, problem_of, profile
from isoloss.stats import t_quantile

WIDTH, HEIGHT = 250, 210
SHOWN = 1.8
"""Profiles are drawn out to this many times the threshold."""


def profiles(fit: Fit) -> tuple[Profile, ...]:
    """The profile of each free parameter, of one for each tied group.

    Raises Refusal for a fit without rows, covariance or noise, or whose rows are checkpoints of runs.
    """
    if fit.data is None:
        raise Refusal("this fit carries no rows to profile", mend="fit the law to a table")
    if fit.covariance is None:
        raise Refusal("the fit has no covariance, so no profile", mend="; ".join(fit.warnings) or fit.reason)
    if exact(fit):
        raise Refusal("the law misses no run, so there is no noise to profile", mend="give measured losses")
    problem, at = problem_of(fit)
    if at.dependent:
        raise Refusal(
            "checkpoints of one run have no likelihood of their own, so no profile",
            mend="keep one row a run; intervals from the bootstrap over runs stand",
        )
    return tuple(profile(fit, problem, name) for name in problem.model.free_names)


def figure(fit: Fit) -> Figure:
    """A panel a parameter: the signed root of the rise against its values, and the t interval's line."""
    curves = profiles(fit)
    title = _finding(fit, curves)
    return Figure(
        name="profiles",
        chart=in_rows([_panel(fit, curve, place) for place, curve in enumerate(curves)]),
        title=title,
        subtitle=(
            f"signed root of twice the rise of the objective in units of the noise; dashed: the t interval's "
            f"straight line; grey: {text.level(fit.level)} threshold"
        ),
        characters={1: 36, 2: 62}.get(len(curves), 100),
        description="A panel a parameter: distance from the best fit against its value, crossing two levels.",
        shows=f"{title}. " + " ".join(_words(fit, curve) for curve in curves),
        would_change="More runs, or a wider range: a profile that does not close asks for such data.",
        table=pl.concat(_rows(fit, curve) for curve in curves),
    )


def _finding(fit: Fit, curves: tuple[Profile, ...]) -> str:
    closed = [(curve, curve.interval[0], curve.interval[1]) for curve in curves]
    opened = [curve.parameter for curve, low, high in closed if low is None or high is None]
    if opened:
        return f"{text.listed(opened)} {'has' if len(opened) == 1 else 'have'} no bound on a side: open ends"
    shares = [
        _difference((low, high), _t_interval(fit, curve.parameter))
        for curve, low, high in closed
        if low is not None and high is not None
    ]
    worst = int(np.argmax(shares))
    if shares[worst] < 0.15:
        return "Profile and t intervals agree: the law is nearly linear in its parameters"
    return (
        f"The t interval of {curves[worst].parameter} is off its profile by {text.percent(shares[worst])} of "
        "its width: trust the profile"
    )


def _difference(interval: tuple[float, float], t_ends: tuple[float, float]) -> float:
    """Largest distance between two intervals' ends over the width of the first."""
    low, high = interval
    return max(abs(low - t_ends[0]), abs(high - t_ends[1])) / (high - low)


def _error(fit: Fit, name: str) -> float:
    """Standard error of a parameter's coordinate: its logarithm, or itself where it may be negative."""
    index = fit.form.parameters.index(name)
    return float(np.sqrt(fit.plain_covariance()[index, index]))


def _coordinates(fit: Fit, name: str, values: Sequence[float]) -> Array:
    return np.asarray(values) if name in fit.form.signed else np.log(np.asarray(values))


def _t_interval(fit: Fit, name: str) -> tuple[float, float]:
    middle = float(_coordinates(fit, name, [fit.params[name]])[0])
    reach = t_quantile(fit.level, fit.df) * _error(fit, name)
    low, high = np.clip([middle - reach, middle + reach], -700, 700).tolist()
    return (low, high) if name in fit.form.signed else (float(np.exp(low)), float(np.exp(high)))


def _rows(fit: Fit, curve: Profile) -> pl.DataFrame:
    name = curve.parameter
    with np.errstate(divide="ignore"):
        away = _coordinates(fit, name, curve.values) - _coordinates(fit, name, [fit.params[name]])
    return pl.DataFrame(
        {
            "parameter": [name] * len(curve.values),
            "value": curve.values,
            "distance": curve.distance,
            "t_distance": away / _error(fit, name),
            "threshold": [curve.threshold] * len(curve.values),
        }
    )


def _panel(fit: Fit, curve: Profile, place: int) -> alt.LayerChart:
    table = _rows(fit, curve).filter(
        (pl.col("distance").abs() <= SHOWN * curve.threshold)
        & pl.col("value").is_finite()
        & ((pl.col("value") > 0) | pl.lit(curve.parameter in fit.form.signed))
    )
    values = table["value"].to_numpy()
    log = curve.parameter not in fit.form.signed and values.max() > 5 * values.min()
    top = SHOWN * curve.threshold
    x = axis(alt.X, "value", curve.parameter, values, log=log, narrow=True)
    title = "Distance, standard errors" if place % PANELS_A_ROW == 0 else ""
    y = alt.Y("distance:Q", title=title, scale=alt.Scale(domain=[-top, top], nice=False))
    levels = pl.DataFrame({"distance": [-curve.threshold, curve.threshold]})
    centre = pl.DataFrame({"value": [fit.params[curve.parameter]], "distance": [0.0]})
    table = table.select("value", "distance", "t_distance")
    layers = [
        marks.chart_of(levels).mark_rule(color=QUIET, strokeWidth=1.5).encode(y),
        marks.line(table, x, marks.renamed(y, "t_distance"), colour=INK, dash=[5, 4], width=1.3),
        marks.line(table, x, y, colour=PREDICTED, width=2.5),
        marks.points(table, x, y, colour=PREDICTED, size=26, clip=True),
        marks.points(centre, x, y, colour=REAL, shape="diamond", size=60),
    ]
    name = f"{curve.parameter}: {text.interval(curve.interval)}"
    inner = alt.TitleParams(name, fontSize=13, fontWeight="normal", anchor="start")
    return marks.panel(layers, WIDTH, HEIGHT, inner)


def _words(fit: Fit, curve: Profile) -> str:
    name, (low, high) = curve.parameter, curve.interval
    ends = f"{name}: profile {text.interval(curve.interval)}, t {text.interval(_t_interval(fit, name))}"
    if low is None and high is None:
        return f"{ends}; the data bound it on neither side."
    if low is None or high is None:
        return f"{ends}; the data do not bound it {'below' if low is None else 'above'}."
    return f"{ends}."
