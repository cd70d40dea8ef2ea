"""A table at the door: columns of a data frame in, a fit out."""

from typing import Any

import polars as pl

from isoloss.errors import InputError
from isoloss.laws.fit import fit
from isoloss.laws.forms import Form, registered
from isoloss.laws.result import Fit


def fit_table(
    law: str | Form,
    table: Any,
    *,
    params: str = "params",
    tokens: str = "tokens",
    recurrence: str = "recurrence",
    position: str = "position",
    loss: str = "loss",
    weights: str | None = None,
    cluster: str | None = None,
    where: str | pl.Expr | None = None,
    objective: str = "squared",
    delta: float = 1e-3,
    level: float = 0.9,
) -> Fit:
    """Fit ``law`` to the rows of a polars, pandas or pyarrow table; the names say which column holds what.

    ``where`` keeps rows: a polars expression, or its SQL ("family = 'lstm' AND cooled"). No code is run.
    Raises InputError naming row (counted from 1 in the table as given) and column, and Refusal as ``fit``
    does.
    """
    law = registered(law)
    frame = _polars(table).with_row_index("__row", offset=1)
    if where is not None:
        try:
            frame = frame.filter(pl.sql_expr(where) if isinstance(where, str) else where)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"where does not work on this table ({error})", mend=_columns(frame)) from None
    names = {"params": params, "tokens": tokens, "recurrence": recurrence, "position": position}
    inputs = {name: _column(frame, names.get(name, name)) for name in law.inputs}
    columns = [names.get(name, name) for name in law.inputs]
    return fit(
        law,
        inputs,
        _column(frame, loss),
        weights=None if weights is None else _column(frame, weights),
        cluster=None if cluster is None else _labels(frame, cluster),
        objective=objective,
        delta=delta,
        level=level,
        source={
            "rows": frame.height,
            "columns": dict(zip(law.inputs, columns, strict=True)) | {"loss": loss},
        },
    )


def _polars(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if isinstance(table, pl.DataFrame):
        return table
    try:
        return pl.DataFrame(table)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(f"is not a table ({error})", mend="give a polars, pandas or pyarrow table") from None


def _columns(frame: pl.DataFrame) -> str:
    return f"the table has {', '.join(name for name in frame.columns if name != '__row')}"


def _labels(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        raise InputError(f"there is no column {name!r}", mend=_columns(frame))
    if frame[name].null_count():
        row = frame["__row"][int(frame[name].is_null().arg_max())]
        raise InputError("is empty", where=f"row {row}, column {name}", mend="fill it or filter the row out")
    return frame[name]


def _column(frame: pl.DataFrame, name: str) -> Any:
    """A column of positive finite numbers."""
    series = _labels(frame, name)
    if not series.dtype.is_numeric():
        raise InputError(
            f"holds {series.dtype}, not numbers", where=f"column {name}", mend="convert it to numbers"
        )
    values = series.cast(pl.Float64)
    bad = ~(values.is_finite() & (values > 0))
    if bad.any():
        place = int(bad.arg_max())
        raise InputError(
            f"is {values[place]}, not positive and finite",
            where=f"row {frame['__row'][place]}, column {name}",
            mend="correct the row, or keep it out with where=",
        )
    return values.to_numpy()
