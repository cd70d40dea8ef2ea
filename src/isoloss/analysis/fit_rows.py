"""The rows behind a fit, its fitted values and residuals, and the words for its inputs."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import Refusal
from isoloss.laws import Array, Fit, FitData, FitStatus

WORDS = {
    "params": "Parameters N",
    "tokens": "Training tokens D",
    "flops": "Training compute C, FLOPs",
    "recurrence": "Loops T_m",
    "position": "Token index in the context T",
    "unique_tokens": "Unique tokens U_D",
    "steps": "Training steps S",
    "batch_tokens": "Batch B, tokens",
    "ratio": "Ratio of the shape",
    "d_model": "Width d_model",
    "n_layer": "Layers n_layer",
    "params_once": "Parameters outside the loop",
    "params_recurrent": "Parameters inside the loop",
}
SYMBOLS = {
    "params": "N",
    "tokens": "D",
    "flops": "C",
    "recurrence": "T_m",
    "position": "T",
    "unique_tokens": "U_D",
    "steps": "S",
    "batch_tokens": "B",
    "params_once": "N_once",
    "params_recurrent": "N_rec",
}


def on_logs(fit: Fit) -> bool:
    """Whether residuals are of logarithms."""
    return fit.objective.name != "squared"


def exact(fit: Fit) -> bool:
    """Whether the law misses its runs by no more than the rounding of numbers."""
    scale = 1.0 if on_logs(fit) else fit.units.loss
    return fit.sigma is not None and fit.sigma < 1e-12 * scale


def words(name: str) -> str:
    return WORDS.get(name, name.replace("_", " "))


def symbol(name: str) -> str:
    return SYMBOLS.get(name, name)


def amount(name: str, low: float, high: float | None = None) -> str:
    """'N = 1.2M' or 'N = 1.2M to 3M'; FLOPs as powers of ten."""
    write = text.power if name == "flops" else text.count
    ends = write(low) if high is None or high == low else text.interval((low, high), write)
    return f"{symbol(name)} = {ends}"


def value_words(fit: Fit) -> str:
    return f"Loss ({fit.loss_unit})" if fit.form.gives == "loss" else "Best number of parameters N_opt"


def residual_words(fit: Fit) -> str:
    return (
        "Residual: 100 ln(observed / law)" if on_logs(fit) else f"Residual: observed − law ({fit.loss_unit})"
    )


def spread_words(fit: Fit, value: float) -> str:
    """A distance on the scale of the residuals, such as sigma: '0.35%' or '0.0123 nats'."""
    return (
        f"{100 * value:.2g}%" if on_logs(fit) else f"{value:.2g} {fit.loss_unit.removesuffix(' per token')}"
    )


def data_of(fit: Fit) -> FitData:
    """The rows behind the fit. Raises Refusal where it carries none."""
    if fit.data is None:
        raise Refusal("this fit carries no rows", mend="fit the law to a table, or read a fit that was")
    return fit.data


def law_at(fit: Fit, inputs: Mapping[str, Array]) -> Array:
    """The law's losses at columns of its inputs."""
    return np.asarray(fit.predict(level=None, **inputs).loss, dtype=float)


def law_losses(law: Fit | Refusal, rows: pl.DataFrame) -> pl.Series:
    """The law's loss at each row, whose columns hold its inputs; null without a law."""
    if isinstance(law, Refusal):
        return pl.Series([None] * rows.height, dtype=pl.Float64)
    return pl.Series(law_at(law, {name: rows[name].to_numpy().astype(float) for name in law.form.inputs}))


def rows(fit: Fit) -> pl.DataFrame:
    """A row each: inputs, observed, law, residual (in units of ``residual_words``), low, high, label.

    ``low`` and ``high`` hold one new run at the fit's level, null without an interval; ``label`` names what
    counts as independent. Raises Refusal for a fit without data.
    """
    data = data_of(fit)
    inputs = {name: np.array(column) for name, column in data.inputs.items()}
    observed, predicted = np.array(data.loss), fit.predict(level=None, **inputs)
    law = np.asarray(predicted.loss, dtype=float)
    low, high = predicted.interval or (np.nan, np.nan)
    labels = data.cluster
    if labels is None:
        designs = np.stack(list(inputs.values()))
        labels = np.unique(designs, axis=1, return_inverse=True)[1].ravel().astype(str).tolist()
    return pl.DataFrame(inputs).with_columns(
        pl.Series("observed", observed),
        pl.Series("law", law),
        pl.Series("residual", 100 * np.log(observed / law) if on_logs(fit) else observed - law),
        pl.Series("low", np.full(len(law), low)).fill_nan(None),
        pl.Series("high", np.full(len(law), high)).fill_nan(None),
        pl.Series("label", list(labels)),
    )


def inside_words(of: str, inside: int, count: int, level: float) -> str:
    """How many lie in their interval, beside how many should: '29 of 30 rows ..., 27 expected'."""
    return f"{inside:,} of {count:,} {of} lie in their interval, {level * count:.3g} expected"


def median_miss(fit: Fit, points: pl.DataFrame) -> float:
    """The median row's distance from the law, on the scale of sigma."""
    return float(np.median(np.abs(points["residual"].to_numpy()))) / (100 if on_logs(fit) else 1)


def bulk(values: pl.Series) -> tuple[float, float]:
    """The range of the values without the outer 4% on either side."""
    low, high = np.quantile(values.to_numpy(), [0.04, 0.96]).tolist()
    return low, high


def row_words(fit: Fit) -> str:
    return f"{fit.n} rows" + ("" if fit.clusters is None else f" in {fit.clusters} clusters")


def condition(fit: Fit) -> str:
    """What a reader must know before any finding: '245 rows, N = 44M to 16.2B and D = 240M to 1.5T.'"""
    ranges = [amount(name, *ends) for name, ends in fit.ranges.items()]
    return f"{row_words(fit)}, {text.listed(ranges)}." if fit.n and ranges else ""


def ranges_of(fit: Fit) -> dict[str, tuple[float, float]]:
    """The range of each input. Raises Refusal where a published law does not say what was trained."""
    if missing := set(fit.form.inputs) - set(fit.ranges):
        raise Refusal(
            f"the range of {text.listed(sorted(missing))} that the law was fitted to is not known",
            mend="fit the law to a table",
        )
    return {name: fit.ranges[name] for name in fit.form.inputs}


def varied_inputs(fit: Fit) -> list[str]:
    """The inputs that were varied, in the law's order."""
    return [name for name, (low, high) in ranges_of(fit).items() if high > low * (1 + 1e-9)]


def middle(low: float, high: float) -> float:
    return float(np.sqrt(low * high)) if low > 0 else high / 2


def brief_formula(fit: Fit, params: Mapping[str, float] | None = None) -> str:
    """The law with numbers of three digits: what a title says. ``Fit.formula`` has enough to predict.

    With other ``params``: the same law as fitted to other runs.
    """
    shown = fit.params if params is None else params
    return fit.form.text.format(**{name: text.brief(value) for name, value in shown.items()})


def claim(fit: Fit) -> str:
    """What the law may be called: the start of every title."""
    called = {
        FitStatus.CONVERGED: "",
        FitStatus.PUBLISHED: "As printed, ",
        FitStatus.CURVE_ONLY: "Only a curve: ",
        FitStatus.STARTS_DISAGREE: "Not trusted (one start alone came here): ",
        FitStatus.GRADIENT_REMAINS: "Not converged: ",
    }
    return called[fit.status] + brief_formula(fit)
