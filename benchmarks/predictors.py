"""What predicts hidden runs in benchmarks of what lies beyond them: the forecast and its rivals."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from public_tables import Table

from isoloss.distributions import normal_quantile
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array, fit
from isoloss.plans.forecast import Forecaster, bases, forecaster, kriging
from isoloss.plans.forecast.origins import kriged_laws, kriged_mean, rate_of
from isoloss.plans.forecast.runs import log_runs

Ends = tuple[Array, Array, Array]
"""Log losses predicted, and both ends of their interval."""


MAY_REFUSE = ("chinchilla, t", "chinchilla, huber-log, t")
Method = Callable[[Table, np.ndarray, float], Ends]
KNOWN: dict[bytes, Forecaster] = {}
"""Of each table and split, since levels and methods ask the same runs."""


def key_of(of: Table, hide: np.ndarray) -> bytes:
    named = b"" if of.cluster is None else of.cluster.tobytes()
    sizes = b"".join(column.tobytes() for column in (of.params, *of.more.values()))
    return sizes + of.loss.tobytes() + hide.tobytes() + named


def known_of(of: Table, hide: np.ndarray) -> Forecaster:
    key = key_of(of, hide)
    if key not in KNOWN:
        cluster = None if of.cluster is None else of.cluster[~hide]
        KNOWN[key] = forecaster(inputs_of(of, ~hide), of.loss[~hide], cluster=cluster)
    return KNOWN[key]


def inputs_of(of: Table, rows: np.ndarray) -> dict[str, Array]:
    sizes = {"params": of.params, "tokens": of.tokens, **of.more}
    return {name: column[rows] for name, column in sizes.items()}


def by_forecast(of: Table, hide: np.ndarray, level: float) -> Ends:
    return ends_of(known_of(of, hide), of, hide, level)


def ends_of(known: Forecaster, of: Table, hide: np.ndarray, level: float) -> Ends:
    prediction = known.at(inputs_of(of, hide), level)
    low, high = prediction.interval.T
    return np.log(prediction.loss), np.log(low), np.log(high)


def by_kriged_mean(of: Table, hide: np.ndarray, level: float) -> Ends:
    """The laws with their residuals, and no record of misses."""
    known = known_of(of, hide)
    kriged = kriged_mean(known.laws, known.check_inputs(inputs_of(of, hide)))
    mean, reach = kriged.mean_q + known.runs.middle_loss, normal_quantile(level) * kriged.sd_q
    return mean, mean - reach, mean + reach


def by_law(law: str, **options: Any) -> Method:
    """A law with its own t interval."""

    def method(of: Table, hide: np.ndarray, level: float) -> Ends:
        fitted = fit(law, inputs_of(of, ~hide), of.loss[~hide], level=level, **options)
        there: dict[str, Any] = inputs_of(of, hide)
        prediction = fitted.predict(**there)
        if prediction.interval is None:
            raise Refusal("no interval")
        return np.log(prediction.loss), np.log(prediction.interval[0]), np.log(prediction.interval[1])

    return method


def by_mean_of_forms(of: Table, hide: np.ndarray, level: float) -> Ends:
    """Four forms for their curves; the interval holds their spread and the least scatter about a form."""
    ties: dict[str, Any] = {"tied": [("alpha", "beta")]}
    names = ("chinchilla", "outer-exponent", "kaplan-nd")
    forms: list[tuple[str, dict[str, Any]]] = [*((name, {}) for name in names), ("chinchilla", ties)]
    fits = [
        fit(law, inputs_of(of, ~hide), of.loss[~hide], objective="squared-log", curve_only=True, **more)
        for law, more in forms
    ]
    there: dict[str, Any] = inputs_of(of, hide)
    each = np.log(np.array([one.predict(**there).loss for one in fits]))
    noise = min(float(np.std(one.residuals)) for one in fits)
    mean, reach = each.mean(axis=0), normal_quantile(level) * np.hypot(each.std(axis=0), noise)
    return mean, mean - reach, mean + reach


def by_one_power(of: Table, hide: np.ndarray, level: float) -> Ends:
    """ln L linear in ln N and ln D, and no interval: an end on either side of nothing."""
    sizes = np.stack([np.ones_like(of.params), np.log(of.params), np.log(of.tokens)])
    slopes = np.linalg.lstsq(sizes[:, ~hide].T, np.log(of.loss[~hide]))[0]
    return (sizes[:, hide].T @ slopes,) * 3


def by_nearest(of: Table, hide: np.ndarray, level: float) -> Ends:
    """The loss of the nearest run in logs, and no interval."""
    sizes = np.log(np.stack([of.params, of.tokens]))
    away = ((sizes[:, hide, None] - sizes[:, None, ~hide]) ** 2).sum(axis=0)
    loss = np.log(of.loss[~hide][away.argmin(axis=1)])
    return loss, loss, loss


METHODS: dict[str, Method] = {
    "forecast": by_forecast,
    "kriged laws alone": by_kriged_mean,
    "chinchilla, t": by_law("chinchilla", objective="squared-log"),
    "chinchilla, huber-log, t": by_law("chinchilla", objective="huber-log"),
    "mean of four forms": by_mean_of_forms,
    "one power law": by_one_power,
    "nearest run": by_nearest,
}


def with_constants(least_factor: float, tails: int) -> Method:
    """The forecast with other constants of its record of misses."""

    def method(of: Table, hide: np.ndarray, level: float) -> Ends:
        known = known_of(of, hide)
        misses, whole = known.rate.misses, known.rate.whole
        rate = rate_of(misses, whole=whole, least_factor=least_factor, tails=tails)
        return ends_of(replace(known, rate=rate), of, hide, level)

    return method


def with_priors(floor_sd: float, tau: float) -> Method:
    """The mean of the kriged laws under other priors, and no interval: both ends are the mean."""

    def method(of: Table, hide: np.ndarray, level: float) -> Ends:
        runs = log_runs(inputs_of(of, ~hide), of.loss[~hide], None)
        at_Iq = np.log(list(inputs_of(of, hide).values())) - runs.middle_I[:, None]
        with mock.patch.object(bases, "_SD_FLOOR", floor_sd), mock.patch.object(kriging, "_TAU_MEDIAN", tau):
            mean = kriged_mean(kriged_laws(runs), at_Iq).mean_q + runs.middle_loss
        return (mean,) * 3

    return method


def remembered(method: Method) -> Method:
    """Its answers are kept: each factor asks for the same."""
    answers: dict[tuple[bytes, float], Ends | Refusal] = {}

    def once(of: Table, hide: np.ndarray, level: float) -> Ends:
        key = key_of(of, hide), level
        if key not in answers:
            answers[key] = attempt(method, of, hide, level)
        if isinstance(answer := answers[key], Refusal):
            raise answer
        return answer

    return once


def stretched(method: Method, factor: float) -> Method:
    """The same interval, so many times as wide in logs."""

    def wider(of: Table, hide: np.ndarray, level: float) -> Ends:
        mean, low, high = method(of, hide, level)
        return mean, mean - factor * (mean - low), mean + factor * (high - mean)

    return wider


CHINCHILLA_T = remembered(METHODS[MAY_REFUSE[0]])
TUNED: dict[str, dict[str, Method]] = {
    "forecast": {
        f"least factor {floor:g}, t of {tails}": with_constants(floor, tails)
        for floor, tails in product((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), (3, 6, 12, 30))
    },
    MAY_REFUSE[0]: {
        f"{factor:.2f} times": stretched(CHINCHILLA_T, factor) for factor in np.geomspace(0.5, 8, 17)
    },
}
"""Of each method the constants to choose from; the forecast's own are 0.4 and 3."""
PRIORS: dict[str, Method] = {
    f"floor within a factor of {np.exp(floor_sd):.2g}, smooth error {tau:.1%}": remembered(
        with_priors(floor_sd, tau)
    )
    for floor_sd, tau in product((0.4, 0.6, 1.0, 10.0), (0.003, 0.01, 0.02))
}
"""The forecast's own is a factor of 1.8 and 2 %; of 10 logs the floor is open."""
