"""Fit a law to runs, with intervals that hold, or refuse."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array, Form, registered
from isoloss.laws.result import Fit, FitStatus, Interval, Objective, Starts, Units, check_level, quantile
from isoloss.laws.solve import (
    OBJECTIVES,
    Optimum,
    Problem,
    dispersion,
    gain_statistic,
    least_total,
    solve,
    spread,
)

NEEDED_SURE = 0.995  # one-sided: a law with one term too many is refused 99.5 times of 100
SMALL_GRADIENT = 1e-6


def fit(
    law: str | Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    objective: str = "squared",
    delta: float = 1e-3,
    level: float = 0.9,
    curve_only: bool = False,
    source: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit ``law`` to losses in nats per token, one row a run.

    ``weights`` are relative precisions; rows of weight 0 are left out. ``cluster`` names rows that share
    their inputs (the seeds of one size): their mean is one point, weighted by its rows, and the intervals
    count clusters. ``objective`` is summed: "squared" residuals, "squared-log", or "huber-log" with
    ``delta``. Intervals are t intervals with (points - parameters) degrees of freedom on the log scale.
    With ``curve_only`` a law whose parameters the data leave open is kept for the curve that it draws, with
    status CURVE_ONLY, the reason, and no interval.

    Raises InputError, naming the row, for values that are not positive and finite, and Refusal when the data
    do not determine the law: too few points, too little range, a floor or a slope lost in the noise.
    """
    law = registered(law)
    level = check_level(level)
    if objective not in OBJECTIVES or not 1e-9 <= delta < np.inf:
        raise InputError(
            f"objective {objective!r} with delta {delta}",
            mend=f"choose one of {', '.join(OBJECTIVES)}; delta from 1e-9",
        )
    x_In, y_n, w_n, labels = _rows(law, inputs, loss, weights, cluster)
    rows, clusters = len(y_n), None
    if labels is not None:
        x_In, y_n, w_n = _cluster_means(law, x_In, y_n, w_n, labels, objective)
        clusters = len(y_n)
    _check_design(law, x_In)

    log_x_In = np.log(x_In)
    log_scale_I = (log_x_In.min(axis=1) + log_x_In.max(axis=1)) / 2
    log_loss_scale = float(np.log(y_n.min()) + np.log(y_n.max())) / 2
    problem = Problem(log_x_In - log_scale_I[:, None], y_n / np.exp(log_loss_scale), w_n, objective, delta)
    df = len(y_n) - len(law.parameters)
    best = solve(law, problem)
    unsupported = ""
    try:
        _check_support(law, problem, best, df)
    except Refusal as refusal:
        if not curve_only:
            raise
        unsupported = refusal.what
    log_params = law.log_params(best.theta, log_scale_I, log_loss_scale)
    params = _plain(law, log_params)

    status = FitStatus.CURVE_ONLY if unsupported else _status(best)
    warnings = _doubts(law, objective, df)
    r_n = problem.residuals(law, best.theta)
    condition, covariance = _covariance(law, problem, best.theta, r_n, df)
    if status is not FitStatus.CONVERGED or (law.correlated and labels is None):
        covariance = None
    unit = float(np.exp(log_loss_scale)) if objective == "squared" else 1.0
    errors, intervals = parameter_intervals(
        law, best.theta, covariance, log_scale_I, log_loss_scale, df, level
    )
    value = best.total if objective == "huber-log" else 2 * best.total * unit**2
    return Fit(
        law=law.name,
        status=status,
        reason=unsupported or status.value,
        params=params,
        standard_errors=errors,
        intervals=intervals,
        level=level,
        objective=Objective(objective, delta if objective == "huber-log" else None, value),
        n=rows,
        clusters=clusters,
        df=df,
        starts=Starts(best.tried, best.agreeing),
        condition=condition,
        warnings=warnings,
        residuals=tuple((-unit * r_n).tolist()),
        sigma=unit * _sigma(problem, r_n, df),
        theta=tuple(best.theta.tolist()),
        covariance=None if covariance is None else tuple(tuple(row) for row in covariance.tolist()),
        units=Units(
            dict(zip(law.inputs, np.exp(log_scale_I).tolist(), strict=True)), float(np.exp(log_loss_scale))
        ),
        ranges={name: (float(x.min()), float(x.max())) for name, x in zip(law.inputs, x_In, strict=True)},
        source=dict(source or {}),
    )


def parameter_intervals(
    law: Form,
    theta: Array,
    covariance: Array | None,
    log_scale_I: Array,
    log_loss_scale: float,
    df: int,
    level: float,
) -> tuple[dict[str, float | None], dict[str, Interval | None]]:
    """Standard errors of the plain parameters, and t intervals on their log scale."""
    if covariance is None:
        return dict.fromkeys(law.parameters), dict.fromkeys(law.parameters)
    # A complex step gives the Jacobian of log_params to the last digit.
    steps = theta + 1e-30j * np.eye(len(theta))
    slopes = np.stack(
        [np.imag(law.log_params(step, log_scale_I, log_loss_scale)) / 1e-30 for step in steps], axis=1
    )
    log_params = law.log_params(theta, log_scale_I, log_loss_scale)
    log_errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0))
    errors: dict[str, float | None] = {}
    intervals: dict[str, Interval | None] = {}
    for name, middle, error in zip(law.parameters, log_params, log_errors, strict=True):
        errors[name] = float(np.exp(middle) * error)
        reach = quantile(level, df) * error
        intervals[name] = (_float_or_none(middle - reach), _float_or_none(middle + reach))
    return errors, intervals


def _float_or_none(log: float) -> float | None:
    return float(np.exp(log)) if -700 < log < 700 else None


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iufO":
            raise TypeError(f"they are {array.dtype}")
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} are not numbers ({error})", mend="give one number a run") from None
    if array.ndim != 1:
        raise InputError(f"{name} have {array.ndim} dimensions", mend="give one number a run")
    return array


def _rows(
    law: Form,
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    weights: ArrayLike | None,
    cluster: ArrayLike | None,
) -> tuple[Array, Array, Array, Array | None]:
    """Checked rows of positive weight: x_In, y_n, w_n of mean 1, cluster labels."""
    if set(inputs) != set(law.inputs):
        raise InputError(
            f"the law takes {', '.join(law.inputs)}, not {', '.join(map(str, inputs)) or 'nothing'}",
            where=law.name,
            mend="give one array for each input",
        )
    columns = {name: _numbers(name, inputs[name]) for name in law.inputs} | {"loss": _numbers("loss", loss)}
    size = len(columns["loss"])
    w_n = np.ones(size) if weights is None else _numbers("weights", weights)
    labels = None if cluster is None else np.asarray(cluster)
    for name, column in [*columns.items(), ("weights", w_n), ("cluster", w_n if labels is None else labels)]:
        if np.shape(column) != (size,):
            raise InputError(
                f"{name} has shape {np.shape(column)}, loss has {size} rows", mend="give one value a run"
            )
    if not np.all(np.isfinite(w_n) & (w_n >= 0)):
        row = int(np.argmin(np.isfinite(w_n) & (w_n >= 0)))
        raise InputError(
            f"weights is {w_n[row]}", where=f"row {row + 1}", mend="weights are finite and not negative"
        )
    used = w_n > 0
    for name, column in columns.items():
        good = ~used | (np.isfinite(column) & (column > 0))
        if not good.all():
            row = int(np.argmin(good))
            raise InputError(
                f"{name} is {column[row]}, not positive and finite",
                where=f"row {row + 1}",
                mend="correct the row or leave it out",
            )
    if not used.any():
        raise Refusal("there are no runs", mend=f"give at least {len(law.parameters) + 1}")
    y_n = columns["loss"][used]
    if np.log(y_n.max()) - np.log(y_n.min()) > np.log(1e6):
        raise InputError(
            "losses span more than a factor of a million", mend="put all losses in nats per token"
        )
    w_n = w_n[used] / w_n[used].max()
    return (
        np.stack([columns[name][used] for name in law.inputs]),
        y_n,
        w_n / w_n.mean(),
        None if labels is None else labels[used],
    )


def _cluster_means(
    law: Form, x_In: Array, y_n: Array, w_n: Array, labels: Array, objective: str
) -> tuple[Array, Array, Array]:
    """One point a cluster: its inputs, its weighted mean loss (of logs for a log objective), its weight."""
    names, first, place_n = np.unique(labels.astype(str), return_index=True, return_inverse=True)
    apart = ~np.isclose(x_In, x_In[:, first[place_n]], rtol=1e-9, atol=0.0)
    if apart.any():
        i, row = np.argwhere(apart)[0]
        raise InputError(
            f"cluster {names[place_n[row]]} holds different values of {law.inputs[i]}",
            mend="a cluster holds runs that share their inputs, such as the seeds of one size",
        )
    weight = np.bincount(place_n, w_n)
    values_n = y_n if objective == "squared" else np.log(y_n)
    mean = np.bincount(place_n, w_n * values_n) / weight
    return x_In[:, first], mean if objective == "squared" else np.exp(mean), weight


def _check_design(law: Form, x_In: Array) -> None:
    distinct = np.unique(x_In, axis=1).shape[1]
    needed = max(len(law.parameters) + 1, law.min_points)
    if distinct < needed:
        raise Refusal(
            f"{law.name} has {len(law.parameters)} parameters and needs at least {needed} different points, "
            f"not {distinct}",
            mend=f"add runs at other values of {', '.join(law.inputs)}",
        )
    for name, x in zip(law.inputs, x_In, strict=True):
        if len(np.unique(x)) < 3:
            raise Refusal(
                f"{name} takes only {len(np.unique(x))} value(s), which do not determine an exponent",
                mend=f"add runs until {name} takes at least 3 values",
            )
        decades = np.log10(x.max()) - np.log10(x.min())
        if decades < 0.5 - 1e-9:
            raise Refusal(
                f"{name} spans a factor {10**decades:.3g}, too little for an exponent",
                mend=f"add runs until {name} spans at least half a decade (a factor 3.2)",
            )


def _check_support(law: Form, problem: Problem, best: Optimum, df: int) -> None:
    """Refuse a law of which a part is lost in the noise, or whose exponents the data leave open."""
    r_n = problem.residuals(law, best.theta)
    for nested in law.nested:
        total = least_total(nested.form, problem)
        # An F of one degree of freedom is a squared t; half its tail is the side that counts.
        if gain_statistic(problem, r_n, total, df) < stdtrit(df, NEEDED_SURE) ** 2:
            raise Refusal(nested.reason, mend=nested.mend)
    condition, covariance = _covariance(law, problem, best.theta, r_n, df)
    if covariance is None:
        raise Refusal(
            f"the parameters of {law.name} are not told apart (condition {condition:.3g})", mend=_WIDER
        )
    for place, name in enumerate(law.parameters):
        if name not in law.limits:
            continue
        low, high = law.limits[name]
        value = np.exp(best.theta[place])
        if not low * 1.001 < value < high / 1.001:
            raise Refusal(f"the exponent {name} runs to its limit ({value:.3g})", mend=_WIDER)
        if quantile(0.9, df) * np.sqrt(covariance[place, place]) > np.log(10):
            raise Refusal(f"the exponent {name} is not known within a factor of ten", mend=_WIDER)


_WIDER = "add runs over a wider range, or more seeds"


def _covariance(law: Form, problem: Problem, theta: Array, r_n: Array, df: int) -> tuple[float, Array | None]:
    """Condition number of the Jacobian with columns of length 1, and the covariance of theta."""
    columns = np.sqrt(problem.w_n)[:, None] * problem.jacobian(law, theta)
    length = np.linalg.norm(columns, axis=0)
    if not np.all(length > 1e-150):
        return float("inf"), None
    _, sizes, vt = np.linalg.svd(columns / length, full_matrices=False)
    condition = float(sizes[0] / max(sizes[-1], 1e-300))
    if condition > 1e10:
        return condition, None
    root = vt.T / sizes / length[:, None]
    return condition, dispersion(problem, r_n, df) * (root @ root.T)


def _sigma(problem: Problem, r_n: Array, df: int) -> float:
    if problem.objective == "huber-log":
        return spread(r_n) * float(np.sqrt(len(r_n) / df))
    return float(np.sqrt(dispersion(problem, r_n, df)))


def _plain(law: Form, log_params: Array) -> dict[str, float]:
    if not np.all(np.abs(log_params) < 700):
        name = law.parameters[int(np.argmax(np.abs(log_params)))]
        raise Refusal(
            f"{name} exceeds the range of floats", mend="give inputs in larger units, such as millions"
        )
    return dict(zip(law.parameters, np.exp(log_params).tolist(), strict=True))


def _status(best: Optimum) -> FitStatus:
    if best.gradient > SMALL_GRADIENT:
        return FitStatus.GRADIENT_REMAINS
    return FitStatus.CONVERGED if best.agreeing >= 2 else FitStatus.STARTS_DISAGREE


def _doubts(law: Form, objective: str, df: int) -> tuple[str, ...]:
    doubts = []
    if df < 3:
        doubts.append(f"only {df} degree(s) of freedom: intervals are wide and rest on normal noise")
    if objective == "huber-log" and df < 10:
        doubts.append(
            "intervals of the Huber objective need about ten degrees of freedom; squared-log needs fewer"
        )
    if law.correlated:
        doubts.append(
            f"rows along {law.correlated} of one run share their noise: intervals need several seeds"
        )
    return tuple(doubts)
