"""Reasons to doubt a plan, each a sentence: what was counted, rounded, repeated or extrapolated."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from isoloss import text
from isoloss.errors import Refusal
from isoloss.laws import Fit, FitStatus, far_warnings
from isoloss.plans.allocate import AllocationQuestion, answer
from isoloss.plans.fixed_inputs import FixedInputs, run_sizes
from isoloss.plans.forecast import Forecast, doubts_with_forecast
from isoloss.plans.heuristics import FREE_EPOCHS, R_STAR
from isoloss.plans.loss_surface import law_surface
from isoloss.sources.fits import flops_rule

ROUNDED_DIGITS = 2
_SAME_RULE = 0.02  # of FLOPs a token: what is nearer is the same


def extrapolation(fit: Fit, params: float, tokens: float, passes: float) -> dict[str, float | None]:
    """The factor by which parameters, tokens and FLOPs lie outside the data; 1 inside, None if unknown."""
    here = {"params": params, "tokens": tokens, "flops": passes * params * tokens}
    ranges = fit.ranges
    if sizes := run_sizes(fit):
        N_n, D_n, executed_n = sizes
        columns = {"params": N_n, "tokens": D_n, "flops": executed_n * D_n}
        ranges = {name: (column.min(), column.max()) for name, column in columns.items()}
    return {name: _outside(value, *ranges[name]) if name in ranges else None for name, value in here.items()}


def _outside(value: float, low: float, high: float) -> float:
    ratio = float(max(value / high, low / value, 1.0))
    # The rounding of log and exp must not make an end of the data an extrapolation.
    return 1.0 if ratio < 1 + 1e-9 else ratio


def fit_warnings(
    fit: Fit,
    outside: Mapping[str, float | None],
    interval: Any,
    forecast: Forecast | Refusal | None,
    *,
    asked: bool,
) -> list[str]:
    """The fit's own warnings, missing intervals, and what its runs say so far outside them.

    That goes by the ``forecast`` beside the ``interval`` of the law's loss, and by factors where there is
    none; ``asked``: the rows that the fit carries were asked for one.
    """
    out = list(fit.warnings)
    if fit.status is not FitStatus.CONVERGED:
        out.append(fit.reason)
    if fit.covariance is None:
        out.append("the fit has no covariance: the plan has no intervals")
    known = {name: ratio for name, ratio in outside.items() if ratio is not None}
    far = far_warnings(known, unasked=fit.data is not None and not asked)
    return list(dict.fromkeys(doubts_with_forecast(out, far, interval, forecast)))


def counted(source: Mapping[str, Any], doubts: Sequence[str], flops_per_token: float = 6.0) -> list[str]:
    """The ``doubts``, and how FLOPs are counted here where the table behind them counts otherwise."""
    rule = flops_rule(source)
    if not rule:
        return list(doubts)
    rest = [doubt for doubt in doubts if doubt != rule]
    own_rule = 6 * source.get("flops_factor", math.nan)
    if abs(own_rule / flops_per_token - 1) < _SAME_RULE:
        return rest
    ours = f"{flops_per_token:g} N D"
    otherwise = f"FLOPs mean {ours} here, but the table counts otherwise: count yours as {ours}"
    return [*rest, f"{otherwise}. There {rule}"]


def counting_warning(source: Mapping[str, Any], flops_per_token: float) -> str:
    """By which rule N and C are counted: the classic way to get a wrong exponent (arXiv 2406.19146)."""
    rule = f"C = {flops_per_token:g} N D"
    count = source.get("count", "params")
    column = (source.get("columns") or {}).get(count, "" if count == "params" else count)
    ours = bool(source.get("study"))  # whose columns say what they count
    if not column:
        return f"{rule} counts N as the table does, which does not say: embeddings in or out?"
    if (ours and column == "params") or "non_emb" in column or "no_emb" in column:
        return (
            f"N is the column {column!r}, without embeddings: {rule} leaves out the output head and "
            "attention. Small models look cheaper than they are, and N_opt grows too fast with C"
        )
    return f"N is the column {column!r} and {rule}: count your budget and your model the same way"


def repeat_warnings(epochs: float | None, most: float | None, assumed: bool) -> list[str]:
    """Assumed decay of repeated tokens, and more epochs than are nearly free."""
    if epochs is None:
        return []
    out = []
    if assumed and epochs > 1:
        out.append(
            f"repeated tokens are assumed to lose worth with R*_D = {R_STAR:.2f}; the intervals do not "
            "contain that. Muennighoff et al. 2023 (arXiv 2305.16264) measured it on other data and models"
        )
    if most is not None and epochs > most * (1 - 1e-6):
        out.append("max_epochs binds: the law alone would train a smaller model on more tokens")
    if epochs > FREE_EPOCHS:
        out.append(f"{epochs:.3g} epochs: beyond {FREE_EPOCHS:g} repeated tokens lose much of their worth")
    return out


def rounding_warning(fit: Fit, fixed: FixedInputs, question: AllocationQuestion) -> str | None:
    """How far exponents printed with two digits leave the plan open, if they are."""
    names = [name for name in ("alpha", "beta") if name in fit.params]
    if not names or any(fit.params[name] != round(fit.params[name], ROUNDED_DIGITS) for name in names):
        return None
    half = 0.5 * 10.0**-ROUNDED_DIGITS
    steps = np.array(list(product((-half, half), repeat=len(names))))
    params_S = {name: np.full(len(steps), fit.params[name]) for name in fit.params}
    params_S |= {name: params_S[name] + steps[:, i] for i, name in enumerate(names)}
    moved = law_surface(fit.form, fixed, params_S, np.zeros(len(steps), dtype=bool))
    sizes = [np.exp(log_x[np.isfinite(log_x)]) for log_x in answer(moved, question)]
    what, values = max(zip("ND", sizes, strict=True), key=lambda pair: np.ptp(np.log(pair[1])))
    return (
        f"{' and '.join(names)} are rounded to {ROUNDED_DIGITS} digits: the last digit alone moves {what} "
        f"between {text.count(values.min())} and {text.count(values.max())}"
    )
