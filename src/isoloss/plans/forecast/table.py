"""From a table of runs to a forecast."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss import text
from isoloss.errors import InputError, Refusal, attempt
from isoloss.laws import Array, Fit, Form
from isoloss.plans.forecast.forecast import Forecast, forecast
from isoloss.plans.forecast.runs import log_columns
from isoloss.sources.fitting import Columns, columns_for

SIZES = ("params", "tokens", "flops")


def forecast_table(
    table: Any,
    *,
    params: ArrayLike | None = None,
    tokens: ArrayLike | None = None,
    flops: ArrayLike | None = None,
    level: float = 0.9,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    cluster: str | None = None,
    **reading: Any,
) -> Forecast:
    """The losses of new runs of ``params`` and ``tokens``, from the runs of ``table``; no law to choose.

    ``table`` is anything that ``sources.read`` takes. Two of params, tokens and ``flops`` (C = 6 N D) say
    which runs, as numbers or arrays; one of them alone where the table's other sizes stand still.
    ``columns``, ``where``, ``cluster`` and ``reading`` are as in ``sources.columns_for``.

    Raises InputError as that does and for sizes that the table contradicts; Refusal as ``forecast`` does.
    """
    at = new_runs(params, tokens, flops)
    laws = ["chinchilla"] if len(at) > 1 else []
    read = columns_for(laws, table, columns=columns, where=where, cluster=cluster, more=tuple(at), **reading)
    _check_others(read, tuple(at))
    inputs = {name: read.inputs[name] for name in at}
    return forecast(
        inputs, read.loss, at, level=level, cluster=read.cluster, source=read.source, doubts=read.warnings
    )


def forecast_beside(fit: Fit, at: Mapping[str, ArrayLike], level: float | None = None) -> Forecast | None:
    """The forecast from the rows that ``fit`` carries, at the same inputs; None where there can be none.

    That is: a fit without rows or with weights, a law of other inputs than N, D or C, a refused forecast.
    """
    data = fit.data
    if data is None or not forecast_inputs(fit.form) or len(set(data.weights)) > 1 or fit.signed_floor:
        return None
    found = attempt(forecast, data.inputs, data.loss, at, level=level or fit.level, cluster=data.cluster)
    return None if isinstance(found, Refusal) else found


def forecast_inputs(law: Form) -> bool:
    """Whether a forecast takes the inputs of ``law``: N and D, or one of N, D and C."""
    return law.gives == "loss" and set(law.inputs) in ({"params", "tokens"}, *({name} for name in SIZES))


def new_runs(params: ArrayLike | None, tokens: ArrayLike | None, flops: ArrayLike | None) -> dict[str, Array]:
    """The sizes asked for; with ``flops`` beside one of the others the third follows, C = 6 N D.

    Raises InputError for none of them or all three.
    """
    asked = zip(SIZES, (params, tokens, flops), strict=True)
    given = {name: np.atleast_1d(size) for name, size in asked if size is not None}
    if len(given) not in (1, 2):
        what = "params, tokens and flops are all given" if given else "no size is given"
        raise InputError(what, mend="give params and tokens, or flops and one of them")
    longest = max(map(len, given.values()))
    sizes = {name: np.repeat(size, longest) if len(size) == 1 else size for name, size in given.items()}
    log_columns(sizes)  # raises what is wrong with them
    columns: dict[str, Array] = {name: size.astype(np.float64) for name, size in sizes.items()}
    if len(columns) == 1 or "flops" not in columns:
        return columns
    if "params" in columns:
        return {"params": columns["params"], "tokens": columns["flops"] / 6 / columns["params"]}
    return {"params": columns["flops"] / 6 / columns["tokens"], "tokens": columns["tokens"]}


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
