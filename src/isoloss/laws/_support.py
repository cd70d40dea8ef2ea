"""Does a law stand on the data? Designs too thin, parts lost in the noise, exponents left open: refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from isoloss import text
from isoloss.distributions import f_tail, t_quantile
from isoloss.errors import Refusal
from isoloss.laws._scaled import ScaledForm
from isoloss.laws._solve import Optimum, Problem, least_total
from isoloss.laws._spread import FEW, covariance, inside_share, normal_huber
from isoloss.laws.forms import Array, Nested
from isoloss.laws.forms.form import WORDS

NEEDED_SURE = 0.995  # one-sided: a law with one term too many is refused 99.5 times of 100
_ONE_LINE = 0.98  # of the correlation of log inputs
_WIDER = "add runs over a wider range, or more seeds"


def input_word(name: str) -> str:
    """What a sentence calls an input: 'N' for params."""
    return WORDS.get(name, name.replace("_", " "))


def check_design(model: ScaledForm, x_In: Array) -> None:
    """Raises Refusal for too few points, or too little range to determine the exponents that are free."""
    law = model.form
    free = len(model.free)
    distinct = np.unique(x_In, axis=1).shape[1]
    needed = max(free + 1, law.min_points)
    if distinct < needed:
        raise Refusal(
            f"{law.name} has {free} free parameters and needs at least {needed} different points, "
            f"not {distinct}",
            mend=f"add runs at other values of {text.listed([input_word(name) for name in law.inputs])}",
        )
    held = set(model.held_names)
    for name, x in zip(law.inputs, x_In, strict=True):
        word = input_word(name)
        if not set(law.spans.get(name, law.parameters if not law.spans else ())) - held:
            continue
        if len(np.unique(x)) < 3:
            raise Refusal(
                f"{word} takes {text.plural(len(np.unique(x)), 'value')}: too few to determine an exponent",
                mend=f"add runs until {word} takes at least 3 values",
            )
        if x.min() <= 0:
            continue
        decades = np.log10(x.max()) - np.log10(x.min())
        if decades < 0.5 - 1e-9 and model.form.units is not None:
            raise Refusal(
                f"{word} spans a factor {10**decades:.3g}, too little for an exponent",
                mend=f"add runs until {word} spans at least half a decade (a factor 3.2)",
            )


def rise_together(names: Sequence[str], logs_In: Array) -> list[str]:
    """Inputs that rise together with another one, so that what either does is not told; from their logs."""
    varied = np.ptp(logs_In, axis=1) > 0
    if varied.sum() < 2:
        return []
    alike_II = np.abs(np.corrcoef(logs_In[varied])) > _ONE_LINE
    return [
        name for name, alike_I in zip(compress(names, varied), alike_II, strict=True) if alike_I.sum() > 1
    ]


def check_support(problem: Problem, x_In: Array, best: Optimum, df: int) -> None:
    """Raises Refusal for a law of which a part is lost in the noise, or whose exponents are left open.

    Where inputs ``x_In`` rise together, that is the reason.
    """
    try:
        _check_parts(problem, best, df)
    except Refusal as reason:
        inputs = problem.model.form.inputs
        if np.min(x_In) > 0 and (names := rise_together(inputs, np.log(x_In))):
            raise together_refusal(names) from reason
        raise


def together_refusal(names: Sequence[str]) -> Refusal:
    """Why what ``names`` do is not told."""
    words = text.listed([input_word(name) for name in names])
    ratio = {"params", "tokens"} <= set(names)
    mend = (
        "add runs of other tokens per parameter, or forecast by flops alone"
        if ratio
        else f"add runs in which {words} part"
    )
    return Refusal(f"{words} rise together in the runs, which do not tell what either does", mend=mend)


def _check_parts(problem: Problem, best: Optimum, df: int) -> None:
    model, law = problem.model, problem.model.form
    bearable = bearable_total(problem, problem.residuals(best.phi), df)
    for nested in law.nested:
        smaller = nested_model(model, nested)
        if smaller is None:
            continue
        if least_total(replace(problem, model=smaller), bearable) < bearable:
            raise Refusal(nested.reason, mend=nested.mend)
    condition, spread = covariance(problem, best.phi, df)
    if spread is None:
        raise Refusal(
            f"the parameters of {law.name} are not told apart (condition {condition:.3g})", mend=_WIDER
        )
    for i, name in enumerate(model.free_names):
        if name not in law.limits:
            continue
        low, high = law.limits[name]
        signed = name in law.signed
        value = best.phi[i] if signed else np.exp(best.phi[i])
        inside_limits = low < value < high if signed else low * 1.001 < value < high / 1.001
        if not inside_limits:
            raise Refusal(f"{name} runs to its limit ({value:.3g})", mend=_WIDER)
        reach = t_quantile(0.9, df) * np.sqrt(spread[i, i])
        if reach > (high - low) / 2 if signed else 2 * reach > np.log(10):
            within = "its limits" if signed else "a factor of ten"
            raise Refusal(f"{name} is not known within {within}", mend=_WIDER)


def nested_model(model: ScaledForm, nested: Nested) -> ScaledForm | None:
    """The model with a nested law's parameters held; None where it asks about what is held already."""
    names = model.form.parameters
    if set(model.held_names) & set(nested.fixed):
        return None
    fixed = {}
    for name, value in nested.fixed.items():
        partners = {names[p] for p in np.flatnonzero(model.follows_p == model.follows_p[names.index(name)])}
        # An exponent tied to one that stays is still asked for.
        if partners <= set(nested.fixed):
            fixed[name] = model.form.coordinate(name, value)
    return model.hold(fixed)


def bearable_total(problem: Problem, r_n: Array, df: int) -> float:
    """The objective below which a smaller law fits about as well: an F, or a drop in dispersion for Huber.

    An F of one degree of freedom is a squared t; half its tail is the side that counts.
    """
    if problem.objective == "huber-log" and df < FEW:
        _, noise, share = (float(value) for value in normal_huber(problem, r_n, df))
    else:
        noise = float((problem.w_n * problem.pull(r_n) ** 2).sum()) / df
        share = float(np.average(inside_share(problem, r_n), weights=problem.w_n))
    reach = t_quantile(2 * NEEDED_SURE - 1, df)
    return float(problem.total(r_n)) + reach**2 * max(noise, 1e-26) / (2 * share)


@dataclass(frozen=True)
class Seeds:
    """``sd``: pooled standard deviation of one run about its design's mean, with ``df`` degrees of freedom.

    On the scale of the residuals: losses for the squared objective, log losses otherwise. ``form_sd`` is the
    law's own error beside it, 0 where none is seen; ``p`` the chance of so large a lack of fit if the law
    were true (F test of the design means about the law against the seeds about their means).
    """

    sd: float
    df: int
    designs: int
    form_sd: float
    p: float


def lack_of_fit(problem: Problem, best: Optimum, x_In: Array, y_n: Array, w_n: Array) -> Seeds | None:
    """None where no two runs share their inputs, or too few designs do to judge the law."""
    # A row repeated exactly is one run.
    _, first = np.unique(np.concatenate([x_In, y_n[None]]), axis=1, return_index=True)
    x_In, y_n, w_n = x_In[:, first], y_n[first], w_n[first]
    design_In, design_n = np.unique(x_In, axis=1, return_inverse=True)
    design_n, count = design_n.ravel(), design_In.shape[1]
    df, lack = len(y_n) - count, count - len(best.phi)
    if df < 1 or lack < 1:
        return None
    logs = problem.objective != "squared"
    values = np.log(y_n) if logs else y_n
    weight = np.bincount(design_n, w_n)
    mean = np.bincount(design_n, w_n * values) / weight
    shape = problem.model
    with np.errstate(divide="ignore"):
        z_In = np.maximum(np.log(design_In) - shape.log_scale_I[:, None], -700.0)
    fitted = np.exp(shape.log_loss_scale) * shape.form.value(shape.theta(best.phi), z_In)
    fitted = np.log(np.maximum(fitted, 1e-300)) if logs else fitted
    pure = float(np.sum(w_n * (values - mean[design_n]) ** 2)) / df
    lacking = float(np.sum(weight * (mean - fitted) ** 2)) / lack
    if pure <= 0:
        return None
    return Seeds(
        sd=float(np.sqrt(pure / np.mean(w_n))),
        df=df,
        designs=count,
        form_sd=float(np.sqrt(max(lacking - pure, 0.0) / np.mean(weight))),
        p=f_tail(lack, df, lacking / pure),
    )
