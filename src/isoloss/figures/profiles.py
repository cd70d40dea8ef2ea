"""Profiles of a fit's parameters: how much worse the law gets as one of them leaves its estimate."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import Refusal
from isoloss.figures.correlations import plain_covariance
from isoloss.figures.figure import Figure
from isoloss.figures.fit import in_rows
from isoloss.figures.fit_rows import axis, chart_of, exact, renamed
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL
from isoloss.laws import Fit, Interval, Profile, problem_of, profile, t_quantile

WIDTH, HEIGHT = 250, 210
DRAWN = 1.8
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
    found = profiles(fit)
    title = _finding(fit, found)
    table = pl.concat(_rows(fit, one) for one in found)
    return Figure(
        name="profiles",
        chart=in_rows([_panel(fit, one, place) for place, one in enumerate(found)]),
        title=title,
        subtitle=(
            f"signed root of twice the rise of the objective in units of the noise; dashed: the t interval's "
            f"straight line; grey: {text.level(fit.level)} threshold"
        ),
        characters=62 if len(found) == 2 else 36 if len(found) == 1 else 100,
        description="A panel a parameter: distance from the best fit against its value, crossing two levels.",
        shows=f"{title}. " + " ".join(_words(fit, one) for one in found),
        would_change="More runs, or a wider range: a profile that does not close asks for such data.",
        table=table,
    )


def _finding(fit: Fit, found: tuple[Profile, ...]) -> str:
    opened = [one.parameter for one in found if None in one.interval]
    if opened:
        return f"{text.listed(opened)} {'has' if len(opened) == 1 else 'have'} no bound on a side: open ends"
    shares = [_difference(one.interval, _t_interval(fit, one.parameter)) for one in found]
    worst = int(np.argmax(shares))
    if shares[worst] < 0.15:
        return "Profile and t intervals agree: the law is nearly linear in its parameters"
    return (
        f"The t interval of {found[worst].parameter} is off its profile by {text.percent(shares[worst])} of "
        "its width: trust the profile"
    )


def _difference(interval: Interval, t_ends: tuple[float, float]) -> float:
    """Largest distance between two intervals' ends over the width of the first."""
    low, high = interval
    return max(abs(low - t_ends[0]), abs(high - t_ends[1])) / (high - low)


def _error(fit: Fit, name: str) -> float:
    """Standard error of a parameter's coordinate: its logarithm, or itself where it may be negative."""
    place = fit.form.parameters.index(name)
    return float(np.sqrt(plain_covariance(fit)[place, place]))


def _coordinate(fit: Fit, name: str, values):
    return np.asarray(values) if name in fit.form.signed else np.log(np.asarray(values))


def _t_interval(fit: Fit, name: str) -> tuple[float, float]:
    middle = _coordinate(fit, name, fit.params[name])
    reach = t_quantile(fit.level, fit.df) * _error(fit, name)
    ends = np.clip([middle - reach, middle + reach], -700, 700)
    return tuple(float(end) if name in fit.form.signed else float(np.exp(end)) for end in ends)


def _rows(fit: Fit, one: Profile) -> pl.DataFrame:
    values = np.array(one.values)
    with np.errstate(divide="ignore"):
        away = _coordinate(fit, one.parameter, values) - _coordinate(
            fit, one.parameter, fit.params[one.parameter]
        )
    return pl.DataFrame(
        {
            "parameter": [one.parameter] * len(values),
            "value": values,
            "distance": one.distance,
            "t_distance": away / _error(fit, one.parameter),
            "threshold": [one.threshold] * len(values),
        }
    )


def _panel(fit: Fit, one: Profile, place: int) -> alt.LayerChart:
    table = _rows(fit, one).filter(
        (pl.col("distance").abs() <= DRAWN * one.threshold)
        & pl.col("value").is_finite()
        & ((pl.col("value") > 0) | pl.lit(one.parameter in fit.form.signed))
    )
    values = table["value"].to_numpy()
    log = one.parameter not in fit.form.signed and values.max() > 5 * values.min()
    top = DRAWN * one.threshold
    x = axis(alt.X, "value", one.parameter, values, log=log, narrow=True)
    title = "Distance, standard errors" if place % 3 == 0 else ""
    y = alt.Y("distance:Q", title=title, scale=alt.Scale(domain=[-top, top], nice=False))
    levels = pl.DataFrame({"distance": [-one.threshold, one.threshold]})
    centre = pl.DataFrame({"value": [fit.params[one.parameter]], "distance": [0.0]})
    curve = chart_of(table.select("value", "distance", "t_distance"))
    parts = [
        chart_of(levels).mark_rule(color=QUIET, strokeWidth=1.5).encode(y),
        curve.mark_line(color=INK, strokeDash=[5, 4], strokeWidth=1.3, clip=True).encode(
            x, renamed(y, "t_distance")
        ),
        curve.mark_line(
            color=PREDICTED, strokeWidth=2.5, clip=True, point={"size": 26, "color": PREDICTED}
        ).encode(x, y),
        chart_of(centre)
        .mark_point(filled=True, size=60, color=REAL, shape="diamond", opacity=1)
        .encode(x, y),
    ]
    inner = alt.TitleParams(
        f"{one.parameter}: {text.interval(one.interval)}", fontSize=13, fontWeight="normal", anchor="start"
    )
    return alt.layer(*parts).properties(width=WIDTH, height=HEIGHT, title=inner)


def _words(fit: Fit, one: Profile) -> str:
    by_curvature = text.interval(_t_interval(fit, one.parameter))
    ends = f"{one.parameter}: profile {text.interval(one.interval)}, t {by_curvature}"
    low, high = one.interval
    if low is None and high is None:
        return f"{ends}; the data bound it on neither side."
    if low is None or high is None:
        return f"{ends}; the data do not bound it {'below' if low is None else 'above'}."
    return f"{ends}."
