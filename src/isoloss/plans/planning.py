"""From a law and a budget, or a target loss, to a model: how large, on how many tokens, how surely."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoloss.errors import InputError
from isoloss.face import Shown
from isoloss.laws import Array, Fit, FitStatus, Interval, check_seed, rise_together, together_refusal
from isoloss.plain import json_values
from isoloss.plans import warnings
from isoloss.plans.allocate import AllocationQuestion, answer
from isoloss.plans.checks import check_answer, check_numbers, check_reach
from isoloss.plans.cost import Hardware, Rates, hardware
from isoloss.plans.fixed_inputs import FixedInputs, held_inputs, law_inputs, passes, repeats_assumed
from isoloss.plans.forecast import Forecaster, forecast_from_fit
from isoloss.plans.forecast.surface import check_best
from isoloss.plans.heuristics import R_STAR, effective_tokens
from isoloss.plans.loss_surface import LossSurface, loss_surface
from isoloss.plans.penalty import Penalty, penalty
from isoloss.stats import check_level, few_draws


@dataclass(frozen=True)
class Draws:
    """How many draws of the law were planned with, and how many of them have no optimum."""

    asked: int
    without_optimum: int


@dataclass(frozen=True)
class Plan(Shown):
    """One model to train.

    ``flops`` are training FLOPs by C = k N D, ``loss`` nats per token, ``given`` what was asked.
    ``intervals`` holds (low, high) at ``level`` for what follows from the law: params, tokens,
    tokens_per_param and flops where they were not given, and loss for one new run; an end is None where more
    draws have no optimum than the tail allows, the whole is None without a covariance. ``band`` is the
    interval of the law's mean loss at this N and D. ``extrapolation`` is the factor outside the data.
    ``epochs`` and ``effective_tokens`` (Muennighoff's D', at the fit's own R*_D or the published) need unique
    tokens. ``gpu_hours`` and ``money`` are
    for training; ``total_flops`` add serving.
    """

    law: str
    given: dict[str, float]
    flops: float
    params: float
    tokens: float
    loss: float
    tokens_per_param: float
    level: float
    intervals: dict[str, Interval | None]
    band: Interval | None
    penalty: Penalty | None
    flops_per_token: float
    serve_flops: float
    total_flops: float
    epochs: float | None
    effective_tokens: float | None
    hardware: Hardware
    gpu_hours: float
    money: float | None
    draws: Draws
    extrapolation: dict[str, float | None]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON."""
        return json_values(dataclasses.asdict(self))


def plan(
    source: Fit | Forecaster,
    *,
    flops: float | None = None,
    loss: float | None = None,
    params: float | None = None,
    tokens: float | None = None,
    serve_tokens: float | None = None,
    unique_tokens: float | None = None,
    max_epochs: float | None = None,
    recurrence: float | None = None,
    recurrent_share: float | None = None,
    gpu: str = "h100",
    mfu: float = 0.4,
    price_per_gpu_hour: float | None = None,
    flops_per_token: float = 6.0,
    level: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
    with_forecast: bool = True,
) -> Plan:
    """The least loss for ``flops``, or the least compute for a target ``loss`` in nats per token.

    By a law, or without one by the forecast of a table. C = k N D with k = ``flops_per_token``, and N and D
    counted as in the runs behind it. With ``params`` or
    ``tokens`` that one is fixed and the other follows. ``serve_tokens`` are those the finished model will
    process, each at k / 3 FLOPs a parameter; they count towards ``flops``, or are minimised along with
    training. ``unique_tokens`` is the data at hand: more tokens than that repeat them, up to ``max_epochs``.
    A law of looped models needs its number of passes, ``recurrence``, and, where it tells parameters inside
    the loop from those outside, ``recurrent_share``, the part inside; N counts them once, C every pass.
    ``mfu`` is the share of the accelerator's dense bf16 peak that training reaches; without
    ``price_per_gpu_hour`` there is no money.

    Outside the runs that a fit carries their forecast is asked, once for a fit: by the table's own error rate
    it says what to doubt. ``with_forecast=False`` saves that, half a second; then a factor of ten decides.

    Intervals come from ``draws`` of the law, or of the kriged surface, each planned anew; ``seed`` makes them
    repeatable.

    Raises InputError for a law without N or D and for questions that contradict themselves, and Refusal when
    the target lies at or below what the law can reach, or is not told apart from that, when no optimum of
    at least one parameter and token exists, or when the runs of a forecast do not say where it lies.
    """
    numbers = {
        "flops": flops, "loss": loss, "params": params, "tokens": tokens, "serve_tokens": serve_tokens,
        "unique_tokens": unique_tokens, "max_epochs": max_epochs, "recurrence": recurrence,
        "recurrent_share": recurrent_share, "price_per_gpu_hour": price_per_gpu_hour,
        "flops_per_token": flops_per_token,
    }  # fmt: skip
    given = check_numbers(numbers, signed_loss=isinstance(source, Fit) and source.signed_floor)
    level, machine = check_level(level), hardware(gpu, mfu)
    check_seed(seed)
    if isinstance(source, Fit):
        _check_line(source, given)
        subject = _law_subject(source, held_inputs(given), given, draws, seed, with_forecast=with_forecast)
    else:
        subject = _forecast_subject(source, given, draws, seed)
    question = _question(given, subject.passes)
    if question.loss is not None:
        check_reach(subject.surface, question, level, few_tokens="unique_tokens" in given)
    log_n_S, log_d_S = answer(subject.surface, question)
    check_answer(question, float(log_n_S[0]), float(log_d_S[0]))
    best = _Optimum(question, log_n_S, log_d_S, subject.width_factor)
    if isinstance(source, Forecaster):
        log_sizes = {"params": float(log_n_S[0]), "tokens": float(log_d_S[0])}
        check_best(source.runs, log_sizes, best.intervals(0.9))
    return _plan(subject, best, given, level, machine)


def _check_line(fit: Fit, given: Mapping[str, float]) -> None:
    """Raises Refusal for a curve through runs on one line, which says nothing of models beside it."""
    if fit.status is not FitStatus.CURVE_ONLY or fit.data is None or {"params", "tokens"} & set(given):
        return
    sizes = {name: fit.data.inputs[name] for name in ("params", "tokens") if name in fit.data.inputs}
    if len(sizes) == 2 and (names := rise_together(list(sizes), np.log(list(sizes.values())))):
        raise together_refusal(names)


@dataclass(frozen=True)
class _RunPrediction:
    """Of one new run: its loss's interval, the interval of the mean, factors outside the runs, doubts."""

    interval: Interval | None
    band: Interval | None
    extrapolation: Mapping[str, float | None]
    warnings: list[str]


@dataclass(frozen=True)
class _Subject:
    """What a plan rests on: a law, or the forecast of a table.

    ``predict`` is called at the optimum, ``doubts`` are those of the question; draws are drawn in by
    ``width_factor``, as a forecast's own interval is.
    """

    name: str
    surface: LossSurface
    predict: Callable[[float, float, float], _RunPrediction]
    doubts: Callable[[AllocationQuestion], list[str]]
    passes: float = 1.0
    r_star: float = R_STAR
    width_factor: float = 1.0


def _law_subject(
    fit: Fit, fixed: FixedInputs, given: Mapping[str, float], draws: int, seed: int, *, with_forecast: bool
) -> _Subject:
    def predict(N: float, D: float, level: float) -> _RunPrediction:
        at = law_inputs(fit.form, fixed, N, D)
        prediction = fit.predict(level=level, **at)
        factors = warnings.extrapolation(fit, N, D, passes(fit.form, fixed))
        outside = any((factor or 1.0) > 1 for factor in factors.values())
        forecast = forecast_from_fit(fit, at, level) if with_forecast and outside else None
        epochs = None if "unique_tokens" not in given else D / given["unique_tokens"]
        out = warnings.fit_warnings(fit, factors, prediction.interval, forecast, asked=with_forecast)
        out = warnings.counted(fit.source, out, given["flops_per_token"])
        out.append(warnings.counting_warning(fit.source, given["flops_per_token"]))
        out += warnings.repeat_warnings(epochs, given.get("max_epochs"), repeats_assumed(fit.form, fixed))
        return _RunPrediction(_pair(prediction.interval), _pair(prediction.band), factors, out)

    def doubts(question: AllocationQuestion) -> list[str]:
        rounding = warnings.rounding_warning(fit, fixed, question)
        return [rounding] if rounding else []

    surface = loss_surface(fit, fixed, draws, seed)
    r_star = fit.params.get("R_D", R_STAR)
    return _Subject(fit.law, surface, predict, doubts, passes(fit.form, fixed), r_star)


def _forecast_subject(known: Forecaster, given: Mapping[str, float], draws: int, seed: int) -> _Subject:
    if more := set(given) & {"unique_tokens", "recurrence", "recurrent_share"}:
        raise InputError(
            f"a forecast of params and tokens knows no {min(more)}", mend="plan by a law that does"
        )

    surface, factor = known.surface(draws, seed), known.rate.width_factor
    side = known.source.get("one_sided", "")

    def predict(N: float, D: float, level: float) -> _RunPrediction:
        forecast = known.at({"params": N, "tokens": D}, level)
        factors = {name: float(factor[0]) for name, factor in forecast.extrapolation.items()}
        counting = warnings.counting_warning(known.source, given["flops_per_token"])
        doubts = warnings.counted(known.source, forecast.warnings, given["flops_per_token"])
        doubts += [*([side] if side else []), counting]
        return _RunPrediction(_pair(forecast.interval[0]), None, factors, doubts)

    return _Subject("forecast", surface, predict, lambda question: [], width_factor=factor)


@dataclass(frozen=True)
class _Optimum:
    """The answer to a question: log N and log D of the estimate, row 0, and of its S - 1 draws."""

    question: AllocationQuestion
    log_n_S: Array
    log_d_S: Array
    width_factor: float

    @property
    def draws(self) -> Draws:
        return Draws(len(self.log_n_S) - 1, int(np.isnan(self.log_n_S[1:]).sum()))

    def intervals(self, level: float) -> dict[str, Interval | None]:
        """Of what follows from the law, rather than being given or plain arithmetic."""
        logs = {
            "params": self.log_n_S,
            "tokens": self.log_d_S,
            "tokens_per_param": self.log_d_S - self.log_n_S,
            "flops": np.log(self.question.rates.train) + self.log_n_S + self.log_d_S,
        }
        return {
            name: _interval(log_S[0] + self.width_factor * (log_S[1:] - log_S[0]), level)
            for name, log_S in logs.items()
            if _follows(name, self.question)
        }


def _question(given: Mapping[str, float], per_pass: float) -> AllocationQuestion:
    rates = Rates(given["flops_per_token"], per_pass)
    most = None if "max_epochs" not in given else given["max_epochs"] * given["unique_tokens"]
    names = ("flops", "loss", "params", "tokens", "serve_tokens")
    goals = {name: given[name] for name in names if name in given}
    return AllocationQuestion(rates, most_tokens=most, **goals)


def _plan(
    subject: _Subject, best: _Optimum, given: dict[str, float], level: float, machine: Hardware
) -> Plan:
    question, surface = best.question, subject.surface
    log_n, log_d = float(best.log_n_S[0]), float(best.log_d_S[0])
    N, D = float(np.exp(log_n)), float(np.exp(log_d))
    unique = given.get("unique_tokens")
    training = question.rates.train * N * D
    serving = question.rates.serve * N * question.serve_tokens
    prediction = subject.predict(N, D, level)
    price = given.get("price_per_gpu_hour")
    both_free = question.params is None and question.tokens is None
    lost = (
        [f"{best.draws.without_optimum} of {best.draws.asked} draws have no optimum"]
        if best.draws.without_optimum
        else []
    )
    if best.draws.asked and (few := few_draws(best.draws.asked, level)):
        lost.append(few)
    return Plan(
        law=subject.name,
        given=given,
        flops=training,
        params=N,
        tokens=D,
        loss=float(surface.loss(0, log_n, log_d)),
        tokens_per_param=D / N,
        level=level,
        intervals=best.intervals(level) | {"loss": prediction.interval},
        band=prediction.band,
        penalty=penalty(surface, question, log_n, log_d) if both_free else None,
        flops_per_token=given["flops_per_token"],
        serve_flops=serving,
        total_flops=training + serving,
        epochs=None if unique is None else D / unique,
        effective_tokens=None if unique is None else float(effective_tokens(D, unique, subject.r_star)),
        hardware=machine,
        gpu_hours=machine.hours(training),
        money=None if price is None else machine.hours(training) * price,
        draws=best.draws,
        extrapolation=dict(prediction.extrapolation),
        warnings=(*prediction.warnings, *lost, *subject.doubts(question)),
    )


def _follows(name: str, question: AllocationQuestion) -> bool:
    """Whether a quantity is an answer of the law, rather than given or plain arithmetic."""
    if question.flops is not None and (question.params is not None or question.tokens is not None):
        return False
    if name == "flops":
        return question.loss is not None or question.serve_tokens > 0
    return name == "tokens_per_param" or getattr(question, name) is None


def _interval(log_S: Array, level: float) -> Interval | None:
    """Quantiles of the draws. A draw without an optimum could lie anywhere, so it widens both ends."""
    if not len(log_S):
        return None
    tail = (1 - level) / 2
    low = np.quantile(np.where(np.isnan(log_S), -np.inf, log_S), tail, method="lower")
    high = np.quantile(np.where(np.isnan(log_S), np.inf, log_S), 1 - tail, method="higher")
    return _end(low), _end(high)


def _end(log: float) -> float | None:
    return float(np.exp(log)) if np.isfinite(log) and abs(log) < 700 else None


def _pair(ends: Any) -> Interval | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))
