"""From a table of runs to a forecast."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss import files, text
from isoloss.errors import InputError, Refusal, attempt
from isoloss.laws import Array, Fit, FitData, Form, Prediction, far_warnings
from isoloss.plans.forecast.bases import BaseFit, bases_of, fit_base
from isoloss.plans.forecast.forecast import Forecast, Forecaster, forecast, forecaster
from isoloss.plans.forecast.runs import log_columns, log_runs
from isoloss.sources.fitting import Columns, columns_for
from isoloss.stats import check_level

SIZES = ("params", "tokens", "flops")
OTHERS = ("recurrence", "unique_tokens", "position")
"""More inputs that the loss falls in. A rate or a batch has a best value, which is nothing to a forecast."""
_GIVE_RUNS = "give a table, or what isoloss forecast -o wrote"


def forecast_table(
    table: Any,
    *,
    params: ArrayLike | None = None,
    tokens: ArrayLike | None = None,
    flops: ArrayLike | None = None,
    others: Mapping[str, ArrayLike] | None = None,
    level: float = 0.9,
    **reading: Any,
) -> Forecast:
    """The losses of new runs of ``params`` and ``tokens``, from the runs of ``table``; no law to choose.

    Two of params, tokens and ``flops`` (C = 6 N D) say which runs, as numbers or arrays; one of them alone
    where the table's other sizes stand still. ``others`` are loops (``recurrence``), ``unique_tokens`` and
    ``position``, beside these or alone. ``table`` and ``reading`` are as in ``forecaster_of``.

    Raises InputError as that does and for sizes that the table contradicts; Refusal as ``forecaster`` does.
    """
    check_level(level)
    at = new_runs(params, tokens, flops, others)
    return forecaster_of(table, inputs=tuple(at), **reading).at(at, level)


def forecaster_of(
    table: Any,
    *,
    inputs: tuple[str, ...] = ("params", "tokens"),
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    cluster: str | None = None,
    **reading: Any,
) -> Forecaster:
    """What the runs of ``table`` say of others of such ``inputs``.

    ``table`` is anything that ``sources.read`` takes, or the .json of a forecast or of a fit, which carry
    their runs. ``columns``, ``where``, ``cluster`` and ``reading`` are as in ``sources.columns_for``.

    Raises InputError as that does and for sizes that the table contradicts; Refusal as ``forecaster`` does.
    """
    if isinstance(table, str | Path) and Path(table).suffix == ".json":
        if columns or where or cluster:
            raise InputError("is no table", where=str(table), mend="leave out columns, where and cluster")
        return _of_file(Path(table), inputs)
    laws = ["chinchilla"] if {"params", "tokens"} <= set(inputs) else []
    read = columns_for(laws, table, columns=columns, where=where, cluster=cluster, more=inputs, **reading)
    _check_others(read, inputs)
    known = {name: read.inputs[name] for name in inputs}
    return forecaster(known, read.loss, cluster=read.cluster, source=read.source, doubts=read.warnings)


def _of_file(path: Path, inputs: tuple[str, ...]) -> Forecaster:
    """From the ``data`` of a written forecast or fit."""
    written = files.read_json(path)
    try:
        data, source = FitData(**written["data"]), dict(written["source"])
        known = {name: data.inputs[name] for name in inputs}
    except (KeyError, TypeError):
        what = f"carries no runs of {text.listed(inputs)}"
        raise InputError(what, where=str(path), mend=_GIVE_RUNS) from None
    if len(set(data.weights)) > 1:
        raise InputError("its runs have weights: a forecast takes none", where=str(path), mend=_GIVE_RUNS)
    return forecaster(known, data.loss, cluster=data.cluster, source=source)


def forecast_beside(fit: Fit, at: Mapping[str, ArrayLike], level: float | None = None) -> Forecast | None:
    """The forecast from the rows that ``fit`` carries, at the same inputs; None where there can be none.

    That is: a fit without rows or with weights, a law whose inputs a forecast does not take, a refused one.
    """
    data = fit.data
    if data is None or not forecast_inputs(fit.form) or len(set(data.weights)) > 1 or fit.signed_floor:
        return None
    beside = attempt(forecast, data.inputs, data.loss, at, level=level or fit.level, cluster=data.cluster)
    return None if isinstance(beside, Refusal) else beside


def doubts_beside(prediction: Prediction, beside: Forecast | None) -> tuple[str, ...]:
    """The warnings of a law's prediction; with a forecast of the same point, how far the table's own record
    says that it may miss stands in place of those that count a factor outside the runs alone."""
    if beside is None:
        return prediction.warnings
    far = far_warnings(prediction.extrapolation)
    out = [warning for warning in prediction.warnings if warning not in far]
    worst = max(float(factor.max()) for factor in beside.extrapolation.values())
    if worst > 1 and prediction.interval is not None:
        low, high = (float(np.max(end)) for end in prediction.interval)
        narrow = np.log(high / low) / np.log(beside.interval[0, 1] / beside.interval[0, 0])
        if narrow < 1:
            miss = beside.error_rate * np.log(worst)
            out.append(
                f"{worst:.3g} times outside the runs: that far this table's hidden runs were missed by "
                f"{text.percent(miss)} beyond such intervals, and the law's is {narrow:.2g} of the forecast's"
            )
    return tuple(out)


def best_form(fit: Fit) -> BaseFit | None:
    """The form that scatters least about the rows of ``fit``; None where there are no forms of its inputs."""
    if fit.data is None or not forecast_inputs(fit.form) or set(fit.form.inputs) & set(OTHERS):
        return None
    runs = log_runs(fit.data.inputs, fit.data.loss)
    bases = [base for base in bases_of(runs.names) if not base.tied]
    return min((fit_base(base, runs.z_In, runs.y_n) for base in bases), key=lambda fitted: fitted.scatter)


def forecast_inputs(law: Form) -> bool:
    """Whether a forecast takes the inputs of ``law``: N and D, or one of N, D and C, and more such sizes."""
    sizes, others = set(law.inputs) & set(SIZES), set(law.inputs) - set(SIZES)
    return (
        law.gives == "loss" and others <= set(OTHERS) and (len(sizes) == 1 or sizes == {"params", "tokens"})
    )


def new_runs(
    params: ArrayLike | None,
    tokens: ArrayLike | None,
    flops: ArrayLike | None,
    others: Mapping[str, ArrayLike] | None = None,
) -> dict[str, Array]:
    """The sizes asked for; with ``flops`` beside params or tokens the third follows, C = 6 N D.

    Raises InputError for none of them or all three, and for an input that is no size.
    """
    asked = {"params": params, "tokens": tokens, "flops": flops, **(others or {})}
    given = {name: np.atleast_1d(size) for name, size in asked.items() if size is not None}
    if not given or set(SIZES) <= set(given):
        what = "params, tokens and flops are all given" if given else "no size is given"
        raise InputError(what, mend="give params and tokens, or flops and one of them")
    if unknown := set(given) - {*SIZES, *OTHERS}:
        what = f"{min(unknown)} is no size that the loss falls in"
        raise InputError(what, mend=f"leave it out; beside N, D and C there are {text.listed(OTHERS)}")
    longest = max(map(len, given.values()))
    sizes = {name: np.repeat(size, longest) if len(size) == 1 else size for name, size in given.items()}
    log_columns(sizes)  # raises what is wrong with them
    columns: dict[str, Array] = {name: size.astype(np.float64) for name, size in sizes.items()}
    for name, other in (("params", "tokens"), ("tokens", "params")):
        if {name, "flops"} <= set(columns):
            columns[other] = columns.pop("flops") / 6 / columns[name]
    first = {name: columns.pop(name) for name in ("params", "tokens") if name in columns}
    return first | columns


def _check_others(read: Columns, names: tuple[str, ...]) -> None:
    """Raises InputError where a size varies in the table that the forecast was not told."""
    if len(names) > 1:
        return
    frame = read.runs.frame
    for name in SIZES:
        if name not in names and name in frame.columns and frame[name].n_unique() > 1:
            raise InputError(
                f"the runs differ in {name} too",
                where="forecast",
                mend=f"give {name} beside {text.listed(names)}, or keep one {name} with where",
            )
