"""From a table of runs to a forecast."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ValidationError

from isoloss import files, text
from isoloss.amounts import plausible
from isoloss.errors import InputError, Refusal, attempt
from isoloss.laws import Array, Fit, FitData, Prediction, far_warnings
from isoloss.plans.forecast.extra_columns import check_scales, sweep_doubt, unasked_doubts
from isoloss.plans.forecast.forecasting import Forecast, Forecaster, forecaster
from isoloss.plans.forecast.forms import forecast_inputs
from isoloss.plans.forecast.runs import log_columns, no_sizes
from isoloss.plans.forecast.warnings import worst_of
from isoloss.provenance import check_source
from isoloss.sources.fits import check_flops
from isoloss.sources.fitting import NO_SEEDS, columns_for, in_refusal, source_warnings
from isoloss.sources.scales import OTHERS, SIZES
from isoloss.sources.sweeps import TUNED, numbers_of
from isoloss.stats import check_level
from isoloss.strict import first_complaint

_GIVE_RUNS = "give a table, or what isoloss forecast -o wrote"
_AS_WIDE = 0.995  # of the forecast's interval: what rounds to 1 is no narrower
_MUCH = 0.25  # of the forecast's interval: where the error rate makes up so much, it is said
_READING = {"columns", "where", "cluster", "bytes_per_token", "tied_embeddings", "count", "accepted"}
_WEIGHTS = "its runs have weights: a forecast takes none"


def forecast_table(
    table: Any,
    *,
    params: ArrayLike | None = None,
    tokens: ArrayLike | None = None,
    flops: ArrayLike | None = None,
    recurrence: ArrayLike | None = None,
    unique_tokens: ArrayLike | None = None,
    position: ArrayLike | None = None,
    level: float = 0.9,
    **reading: Any,
) -> Forecast:
    """The losses of new runs of ``params`` and ``tokens``, from the runs of ``table``; no law to choose.

    Two of params, tokens and ``flops`` (C = 6 N D) say which runs, as numbers or arrays; one of them alone
    where the table's other sizes stand still. Loops (``recurrence``), ``unique_tokens`` and ``position`` are
    inputs beside these or alone. ``table`` and ``reading`` are as in ``forecaster_of``.

    Raises InputError as that does and for sizes that the table contradicts; Refusal as ``forecaster`` does.
    """
    check_level(level)
    if unknown := set(reading) - _READING:
        what = f"{min(unknown)} is no input of a forecast and no option"
        raise InputError(what, where="forecast", mend=f"inputs are {text.listed((*SIZES, *OTHERS))}")
    sizes = {"params": params, "tokens": tokens, "flops": flops}
    others = {"recurrence": recurrence, "unique_tokens": unique_tokens, "position": position}
    known, at = forecaster_at(table, sizes | others, **reading)
    return known.at(at, level)


def forecaster_at(
    table: Any, asked: Mapping[str, ArrayLike | None], **reading: Any
) -> tuple[Forecaster, dict[str, Array]]:
    """What the runs of ``table`` say of others of the sizes asked for, and those sizes.

    ``asked`` has the sizes of ``forecast_table`` by name, ``reading`` is as there. Raises as that does, and
    InputError for a name that is no size.
    """
    at = new_runs(asked)
    known = forecaster_of(table, inputs=tuple(at), **reading)
    if "flops" not in at and asked.get("flops") is not None:
        check_flops(known.source, at)
    return known, at


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
        options = {"columns": columns, "where": where, "cluster": cluster, **reading}
        if given := [
            name for name, value in options.items() if value and (name, value) != ("count", "params")
        ]:
            what = "is no table: it was read before"
            raise InputError(what, where=str(table), mend=f"leave out {text.listed(given)}")
        return _of_file(Path(table), inputs)
    laws = ["chinchilla"] if {"params", "tokens"} <= set(inputs) else []
    read = columns_for(laws, table, columns=columns, where=where, cluster=cluster, more=inputs, **reading)
    others = [name for name in (*SIZES, *OTHERS, *TUNED) if name not in inputs]
    differ = numbers_of(read.runs.frame, others)
    known = {name: read.inputs[name] for name in inputs}
    check_scales(known, differ, read.source)
    keep, sweep = read.sweep(inputs)
    # A written forecast keeps its source, and so these.
    source = _with_sweep(read.source, sweep) if sweep else dict(read.source)
    left = {name: column for name, column in differ.items() if not (sweep and name in TUNED)}
    source["findings"] = [*source["findings"], *unasked_doubts(known, left)]
    doubts = source_warnings(source)
    known = {name: column[keep] for name, column in known.items()}
    labels = None if read.cluster is None else np.asarray(read.cluster)[keep]
    with in_refusal(doubts):
        row_n = read.runs.frame["row"].to_numpy()[keep].tolist()
        return forecaster(known, read.loss[keep], cluster=labels, source=source, doubts=doubts, rows=row_n)


def _with_sweep(source: Mapping[str, Any], said: str) -> dict[str, Any]:
    """``source`` with what is ``said`` of a sweep, in place of what holds for all its settings."""
    findings = [each for each in source.get("findings", ()) if each.get("kind") != "no-seeds"]
    notes = [note for note in source.get("notes", ()) if note != NO_SEEDS]
    return {**source, "findings": [*findings, sweep_doubt(said)], "notes": notes}


def _best_rows(data: FitData, source: Mapping[str, Any]) -> tuple[FitData, str]:
    """Of rows behind a fit the best of each size, where ``source`` tells of a sweep, and that; else all."""
    sweep = source.get("sweep")
    if sweep is None or data.rows is None:
        return data, ""
    keep_n = np.isin(data.rows, sweep["rows"]).tolist()

    def kept(column: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(compress(column, keep_n))

    inputs = {name: kept(column) for name, column in data.inputs.items()}
    cluster = None if data.cluster is None else kept(data.cluster)
    return FitData(inputs, kept(data.loss), kept(data.weights), cluster, kept(data.rows)), sweep["message"]


def _of_file(path: Path, inputs: tuple[str, ...]) -> Forecaster:
    """From the ``data`` of a written forecast or fit."""
    written = files.read_json(path)
    try:
        carried = _Carried.model_validate_json(json.dumps(written), strict=True)
        check_source(carried.source, carried.data.rows)
    except ValueError as error:
        said = first_complaint(error) if isinstance(error, ValidationError) else error
        what = f"carries no runs of {text.listed(inputs)} as isoloss writes them ({said})"
        raise InputError(what, where=str(path), mend=_GIVE_RUNS) from None
    data = carried.data
    columns = {name: np.array(column) for name, column in data.inputs.items()}
    if not data.even or not set(inputs) <= set(columns):
        what = f"carries no runs of {text.listed(inputs)}"
        raise InputError(what, where=str(path), mend=_GIVE_RUNS)
    if len(set(data.weights)) > 1:
        raise InputError(_WEIGHTS, where=str(path), mend=_GIVE_RUNS)
    known = {name: columns.pop(name) for name in inputs}
    check_scales(known, columns, carried.source, written=True)
    data, sweep = _best_rows(data, carried.source)
    source = _with_sweep(carried.source, sweep) if sweep else dict(carried.source)
    findings = source.get("findings", [])
    more = [doubt for doubt in unasked_doubts(known, columns) if doubt not in findings]
    source["findings"] = [*findings, *more]
    known, doubts = {name: np.array(data.inputs[name]) for name in inputs}, source_warnings(source)
    with in_refusal(doubts):
        return forecaster(
            known, data.loss, cluster=data.cluster, source=source, doubts=doubts, rows=data.rows
        )


class _Carried(BaseModel):
    """What is read of a written forecast or fit."""

    data: FitData
    source: dict[str, Any]


def forecast_from_fit(
    fit: Fit, at: Mapping[str, ArrayLike], level: float | None = None
) -> Forecast | Refusal | None:
    """The forecast from the rows that ``fit`` carries, at the same inputs, or why these rows allow none.

    Of a sweep of rates or batches from the best of each size alone, as of the table. None where nobody would
    expect one: of a fit without rows, or a law whose inputs a forecast does not take.
    """
    data = fit.data
    if data is None or not forecast_inputs(fit.form):
        return None
    if len(set(data.weights)) > 1:
        return Refusal(_WEIGHTS)
    if fit.signed_floor:
        return Refusal("a forecast takes no losses minus a baseline")
    data, sweep = _best_rows(data, fit.source)
    doubts = (sweep,) if sweep else ()
    known = _of_rows(tuple(data.inputs.items()), data.loss, data.cluster, doubts, data.rows)
    return known if isinstance(known, Refusal) else known.at(at, level or fit.level)


@lru_cache(maxsize=2)  # a fit is asked of many points, one by one
def _of_rows(
    inputs: tuple[tuple[str, tuple[float, ...]], ...],
    loss: tuple[float, ...],
    cluster: tuple[str, ...] | None,
    doubts: tuple[str, ...],
    rows: tuple[int, ...] | None,
) -> Forecaster | Refusal:
    return attempt(forecaster, dict(inputs), loss, cluster=cluster, doubts=doubts, rows=rows)


def predicted(
    fit: Fit, at: Mapping[str, ArrayLike], level: float | None = None
) -> tuple[Prediction, Forecast | Refusal | None]:
    """A law's prediction with the doubts of the forecast beside it, and that forecast or why there is none.

    Raises InputError.
    """
    law = fit.predict(level=level, **at)
    columns = np.broadcast_arrays(*map(np.atleast_1d, at.values()))
    points = dict(zip(at, map(np.ravel, columns), strict=True))
    forecast = forecast_from_fit(fit, points, level) if columns[0].size else None
    far = far_warnings(law.extrapolation, unasked=False)
    doubts = doubts_with_forecast(fit.doubts, far, law.interval, forecast)
    return replace(law, warnings=(*doubts, *_apart_inside(law, forecast))), forecast


def _apart_inside(law: Prediction, forecast: Forecast | Refusal | None) -> list[str]:
    """A doubt where law and forecast part among the runs, as where the law bends otherwise than they do."""
    if not isinstance(forecast, Forecast):
        return []
    inside = forecast.outside <= 1
    apart = int(np.sum(inside & forecast.disagrees(law)))
    where = "inside the runs" if len(inside) == 1 else f"at {text.plural(apart, 'point')} inside the runs"
    return [f"law and forecast disagree {where}: the law misses runs near there"] if apart else []


def doubts_with_forecast(
    warnings: Sequence[str], far: Sequence[str], interval: Any, forecast: Forecast | Refusal | None
) -> tuple[str, ...]:
    """The ``warnings`` of a law's prediction and those of the ``forecast`` beside it, or why it is refused.

    ``far`` are those that go by a factor: they stand where no forecast does.
    """
    if isinstance(forecast, Forecast):
        beside = [f"the forecast beside it: {warning}" for warning in forecast.warnings]
        return (*warnings, *_too_far(interval, forecast), *beside)
    return (*warnings, *far, *([] if forecast is None else [no_forecast(forecast)]))


def _too_far(interval: Any, forecast: Forecast) -> list[str]:
    """Of the farthest point that the table's own error rate makes doubtful, what it adds to the error there.

    It does where the ``interval`` of the law is narrower than the forecast's, or there is none, and where the
    error rate is much of the forecast's.
    """
    far_n, half_n = forecast.outside, np.log(forecast.interval[:, 1] / forecast.interval[:, 0]) / 2
    share_n = np.zeros_like(half_n)
    if interval is not None:
        low_n, high_n = map(np.ravel, interval)
        share_n = np.log(high_n / low_n) / 2 / half_n
    doubted_n = (far_n > 1) & ((share_n < _AS_WIDE) | (forecast.error_outside >= _MUCH * half_n))
    if not doubted_n.any():
        return []
    away_n = np.where(doubted_n, far_n, 0.0)
    worst = int(np.argmax(away_n))
    size = max(forecast.extrapolation, key=lambda name: forecast.extrapolation[name][worst])
    times, where = text.number(float(far_n[worst]), 3), worst_of(forecast.inputs, away_n)
    more, rate = text.percent(forecast.error_outside[worst]), text.percent(forecast.error_rate)
    law = f". The law's interval is {text.number(float(share_n[worst]), 2)} times the forecast's"
    return [
        f"so far outside the runs expect the loss to be off by {more} more than inside{where}. The farthest "
        f"is {size}, {times} times outside; the error rate is {rate} for each factor e, {forecast.rate_from}"
        f"{law if interval is not None else ''}"
    ]


def no_forecast(refused: Refusal) -> str:
    """Why a law's interval stands alone."""
    return f"no forecast beside it: {refused.what}"


def new_runs(asked: Mapping[str, ArrayLike | None]) -> dict[str, Array]:
    """The sizes asked for; with ``flops`` beside params or tokens the third follows, C = 6 N D.

    Of a looped model each loop counts: C = 6 N D recurrence.

    Raises InputError for none of them or all three, and for an input that is no size.
    """
    given = {name: np.atleast_1d(size) for name, size in asked.items() if size is not None}
    if not given or set(SIZES) <= set(given):
        what = "params, tokens and flops are all given" if given else "no size is given"
        raise InputError(what, mend="give params and tokens, or flops and one of them")
    if unknown := set(given) - {*SIZES, *OTHERS}:
        what = f"{min(unknown)} is no size that the loss falls in"
        raise InputError(what, mend=f"leave it out; beside N, D and C there are {text.listed(OTHERS)}")
    if not (longest := max(map(len, given.values()))):
        raise no_sizes()
    sizes = {name: np.repeat(size, longest) if len(size) == 1 else size for name, size in given.items()}
    log_columns(sizes)  # raises what is wrong with them
    for name, size in sizes.items():
        for value in (size.min(), size.max()):
            plausible(name, float(value), name)
    columns: dict[str, Array] = {name: size.astype(np.float64) for name, size in sizes.items()}
    for name, other in (("params", "tokens"), ("tokens", "params")):
        if {name, "flops"} <= set(columns):
            columns[other] = columns.pop("flops") / (6 * columns[name] * columns.get("recurrence", 1.0))
    first = {name: columns.pop(name) for name in ("params", "tokens") if name in columns}
    return first | columns
