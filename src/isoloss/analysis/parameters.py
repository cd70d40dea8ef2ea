"""How a fit's parameters hang together, and how far each may leave its estimate."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import exact
from isoloss.distributions import t_quantile
from isoloss.errors import Refusal
from isoloss.laws import Array, Fit, Profile, problem_of, profile

STRONG = 0.9
"""Correlations beyond this are counted."""
CLOUD = 800
"""Draws of a pair of exponents."""


def correlations(fit: Fit) -> tuple[tuple[str, ...], Array]:
    """Free parameters and the correlations of their estimates, positive ones as logarithms.

    Raises Refusal for a fit without covariance.
    """
    spread, law = fit.plain_covariance(), fit.form
    free = [i for i, name in enumerate(law.parameters) if name not in fit.fixed and spread[i, i] > 0]
    error = np.sqrt(np.diag(spread)[free])
    matrix = spread[np.ix_(free, free)] / error[:, None] / error
    return tuple(law.parameters[i] for i in free), np.clip(matrix, -1.0, 1.0)


def pair_verdict(pairs: list[tuple[str, str, float]]) -> str:
    if not pairs:
        return "All free parameters are tied to each other"
    first, second, worst = max(pairs, key=lambda pair: abs(pair[2]))
    strong = sum(abs(value) > STRONG for _, _, value in pairs)
    if not strong:
        return f"No pair of parameters hides another: {second} and {first} most, {correlation_words(worst)}"
    more = f"; {strong} pairs exceed {STRONG}" if strong > 1 else ""
    return f"{second} and {first} move together (correlation {_exact(worst)}){more}"


def correlation_words(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _exact(value: float) -> str:
    """In three digits at most: 'beyond 0.999' is what no more of them tell from 1."""
    digits = next((d for d in (2, 3) if abs(round(value, d)) < 1), None)
    if digits is None:
        return f"beyond {'−' if value < 0 else '+'}0.999"
    return f"{value:+.{digits}f}".replace("-", "−")


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
    problem, points = problem_of(fit)
    if points.dependent:
        raise Refusal(
            "checkpoints of one run have no likelihood of their own, so no profile",
            mend="keep one row a run; intervals from the bootstrap over runs stand",
        )
    return tuple(profile(fit, problem, name) for name in problem.model.free_names)


def profile_verdict(fit: Fit, curves: tuple[Profile, ...]) -> str:
    open_ended = [curve.parameter for curve in curves if None in curve.interval]
    if open_ended:
        has = "has" if len(open_ended) == 1 else "have"
        return f"{text.listed(open_ended)} {has} no bound on a side: open ends"
    shares = [_difference(curve.interval, _t_interval(fit, curve.parameter)) for curve in curves]
    worst = int(np.argmax(shares))
    if shares[worst] < 0.15:
        return "Profile and t intervals agree: the law is nearly linear in its parameters"
    return (
        f"The t interval of {curves[worst].parameter} is off its profile by {text.percent(shares[worst])} of "
        "its width: trust the profile"
    )


def _difference(interval: text.Ends, t_ends: tuple[float, float]) -> float:
    """Largest distance between two closed intervals' ends over the width of the first."""
    ends_2 = np.array(interval, dtype=np.float64)
    return float(np.abs(ends_2 - t_ends).max() / np.ptp(ends_2))


def _error(fit: Fit, name: str) -> float:
    """Standard error of a parameter's coordinate: its logarithm, or itself where it may be negative."""
    index = fit.form.parameters.index(name)
    return float(np.sqrt(fit.plain_covariance()[index, index]))


def _t_interval(fit: Fit, name: str) -> tuple[float, float]:
    middle = fit.form.coordinate(name, fit.params[name])
    reach = t_quantile(fit.level, fit.df) * _error(fit, name)
    low, high = np.clip([middle - reach, middle + reach], -700, 700).tolist()
    return (low, high) if name in fit.form.signed else (float(np.exp(low)), float(np.exp(high)))


def profile_table(fit: Fit, curve: Profile) -> pl.DataFrame:
    name, values = curve.parameter, np.array(curve.values)
    with np.errstate(divide="ignore"):
        coordinates = values if name in fit.form.signed else np.log(values)
    away = coordinates - fit.form.coordinate(name, fit.params[name])
    return pl.DataFrame(
        {
            "parameter": [name] * len(curve.values),
            "value": curve.values,
            "distance": curve.distance,
            "t_distance": away / _error(fit, name),
            "threshold": [curve.threshold] * len(curve.values),
        }
    )


def profile_words(fit: Fit, curve: Profile) -> str:
    name, (low, high) = curve.parameter, curve.interval
    ends = (
        f"{name}: profile {text.interval(curve.interval, text.brief)}, "
        f"t {text.interval(_t_interval(fit, name), text.brief)}"
    )
    if low is None and high is None:
        return f"{ends}; the data bound it on neither side."
    if low is None or high is None:
        return f"{ends}; the data do not bound it {'below' if low is None else 'above'}."
    return f"{ends}."


@dataclass(frozen=True)
class ExponentCloud:
    """``draws`` of alpha and beta, the ``middle`` 99 % of each; a of N* ~ C^a, and its interval."""

    draws: pl.DataFrame
    middle: Mapping[str, tuple[float, float]]
    exponent: float
    ends: tuple[float, float]


def exponent_cloud(fit: Fit) -> ExponentCloud:
    """Pairs of exponents that the runs allow. Raises Refusal unless both are free and have an interval."""
    allocation = fit.allocation()
    if allocation is None or not {"alpha", "beta"} <= set(fit.form.parameters):
        raise Refusal("the law has no exponents alpha and beta", mend="fit chinchilla")
    if fit.covariance is None or {"alpha", "beta"} & set(fit.fixed) or fit.tied:
        raise Refusal("alpha and beta are not both free", mend="fit the law with both exponents free")
    log_scale_I = np.log([fit.units.inputs[name] for name in fit.form.inputs])
    theta_Sp = fit.draws(CLOUD, np.random.default_rng(0))
    kappa_Sp = fit.form.unscale(theta_Sp, log_scale_I, float(np.log(fit.units.loss)))
    plain = [fit.form.plain(kappa_p) for kappa_p in kappa_Sp]
    drawn = {name: np.array([each[name] for each in plain]) for name in ("alpha", "beta")}
    low, high = np.quantile(
        drawn["beta"] / (drawn["alpha"] + drawn["beta"]), [(1 - fit.level) / 2, (1 + fit.level) / 2]
    )
    middles = {name: np.quantile(values, [0.005, 0.995]).tolist() for name, values in drawn.items()}
    middle = {name: (least, most) for name, (least, most) in middles.items()}
    return ExponentCloud(pl.DataFrame(drawn), middle, allocation["a"], (float(low), float(high)))
