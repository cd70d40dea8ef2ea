"""From a law and a budget, or a target loss, to a model: how large, on how many tokens, how surely."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array, form
from isoloss.laws.result import Fit, Interval, check_level
from isoloss.plans import doubts
from isoloss.plans.allocate import Question, answer
from isoloss.plans.cost import Hardware, Rates, hardware
from isoloss.plans.penalty import Penalty, penalty
from isoloss.plans.repeat import effective_tokens
from isoloss.plans.surface import LARGEST_LOG, Surface, fixed_inputs, passes, surface

LEAST_DRAWS = 100


@dataclass(frozen=True)
class Draws:
    """How many draws of the law were planned with, and how many of them have no optimum."""

    asked: int
    without_optimum: int


@dataclass(frozen=True)
class Plan:
    """One model to train.

    ``flops`` are training FLOPs by C = k N D, ``loss`` nats per token, ``given`` what was asked.
    ``intervals`` holds (low, high) at ``level`` for what follows from the law: params, tokens,
    tokens_per_param and flops where they were not given, and loss for one new run; an end is None where more
    draws have no optimum than the tail allows, the whole is None without a covariance. ``band`` is the
    interval of the law's mean loss at this N and D. ``extrapolation`` is the factor outside the data.
    ``epochs`` and ``effective_tokens`` (Muennighoff's D') need unique tokens. ``gpu_hours`` and ``money`` are
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
        return _lists(dataclasses.asdict(self))


def plan(
    fit: Fit,
    *,
    flops: float | None = None,
    loss: float | None = None,
    params: float | None = None,
    tokens: float | None = None,
    serve_tokens: float | None = None,
    unique_tokens: float | None = None,
    max_epochs: float | None = None,
    recurrence: float | None = None,
    gpu: str = "h100",
    mfu: float = 0.4,
    price_per_gpu_hour: float | None = None,
    flops_per_token: float = 6.0,
    level: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
) -> Plan:
    """The least loss for ``flops``, or the least compute for a target ``loss`` in nats per token.

    C = k N D with k = ``flops_per_token``, and N and D counted as in the fit's data. With ``params`` or
    ``tokens`` that one is fixed and the other follows. ``serve_tokens`` are those the finished model will
    process, each at k / 3 FLOPs a parameter; they count towards ``flops``, or are minimised along with
    training. ``unique_tokens`` is the data at hand: more tokens than that repeat them, up to ``max_epochs``.
    A law with an input ``recurrence`` needs it. ``mfu`` is the share of the accelerator's dense bf16 peak
    that training reaches; without ``price_per_gpu_hour`` there is no money.

    Intervals come from ``draws`` of the law, each planned anew; ``seed`` makes them repeatable.

    Raises InputError for a law without N or D and for questions that contradict themselves, and Refusal when
    the target lies at or below what the law can reach, or is not told apart from that, or when no optimum
    of at least one parameter and token exists.
    """
    numbers = {
        "flops": flops, "loss": loss, "params": params, "tokens": tokens, "serve_tokens": serve_tokens,
        "unique_tokens": unique_tokens, "max_epochs": max_epochs, "recurrence": recurrence,
        "price_per_gpu_hour": price_per_gpu_hour, "flops_per_token": flops_per_token,
    }  # fmt: skip
    given = _checked(numbers)
    level, machine = check_level(level), hardware(gpu, mfu)
    if not LEAST_DRAWS <= draws <= 1_000_000:
        raise InputError(f"draws is {draws}", mend=f"give {LEAST_DRAWS} to a million")
    law = form(fit.law)
    at = fixed_inputs(law, given.get("unique_tokens"), given.get("recurrence"))
    assumed = unique_tokens is not None and "unique_tokens" not in at
    theta_Sp = np.empty((0, len(fit.theta)))
    if fit.covariance is not None:
        theta_Sp = fit.draws(draws, np.random.default_rng(seed))
    of = surface(fit, theta_Sp, at, given.get("unique_tokens") if assumed else None)
    question = Question(
        Rates(given["flops_per_token"], passes(fit, at)),
        **{name: given.get(name) for name in ("flops", "loss", "params", "tokens")},
        serve_tokens=given.get("serve_tokens", 0.0),
        most_tokens=None if max_epochs is None else given["max_epochs"] * given["unique_tokens"],
    )
    if question.loss is not None:
        _check_reach(of, question, level)
    log_n_S, log_d_S = answer(of, question)
    log_n, log_d = float(log_n_S[0]), float(log_d_S[0])
    _check_answer(question, log_n, log_d)

    N, D = float(np.exp(log_n)), float(np.exp(log_d))
    training = question.rates.train * N * D
    serving = question.rates.serve * N * question.serve_tokens
    effective = None if unique_tokens is None else float(effective_tokens(D, given["unique_tokens"]))
    seen = {"params": N, "tokens": effective if assumed else D} | at
    predicted = fit.predict(level=level, **seen)
    logs = {
        "params": log_n_S,
        "tokens": log_d_S,
        "tokens_per_param": log_d_S - log_n_S,
        "flops": np.log(question.rates.train) + log_n_S + log_d_S,
    }
    intervals = {
        name: _interval(log_S[1:], level) for name, log_S in logs.items() if _follows(name, question)
    }
    outside = doubts.extrapolation(fit, question, log_n, log_d)
    lost = int(np.isnan(log_n_S[1:]).sum())
    epochs = None if unique_tokens is None else D / given["unique_tokens"]
    warnings = [
        *doubts.of_fit(fit, outside),
        doubts.of_counting(fit, given["flops_per_token"]),
        *(doubts.of_repeats(epochs, given.get("max_epochs"), assumed) if epochs is not None else []),
        *([f"{lost} of {draws} draws of the law have no optimum"] if lost else []),
    ]
    rounding = doubts.of_rounding(fit, of, question)
    hours = machine.hours(training)
    return Plan(
        law=fit.law,
        given=given,
        flops=training,
        params=N,
        tokens=D,
        loss=float(of.loss(0, log_n, log_d)),
        tokens_per_param=D / N,
        level=level,
        intervals=intervals | {"loss": _pair(predicted.interval)},
        band=_pair(predicted.band),
        penalty=penalty(of, question, log_n, log_d) if params is None and tokens is None else None,
        flops_per_token=given["flops_per_token"],
        serve_flops=serving,
        total_flops=training + serving,
        epochs=epochs,
        effective_tokens=effective,
        hardware=machine,
        gpu_hours=hours,
        money=None if price_per_gpu_hour is None else hours * given["price_per_gpu_hour"],
        draws=Draws(len(theta_Sp), lost),
        extrapolation=outside,
        warnings=(*warnings, *([rounding] if rounding else [])),
    )


def _checked(numbers: dict[str, float | None]) -> dict[str, float]:
    """What was given, as floats; raises InputError where it is not positive or contradicts itself."""
    given = {}
    for name, value in numbers.items():
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not (0 < number < float("inf")):
            raise InputError(f"{name} is {value!r}", mend="give a positive finite number")
        given[name] = number
    if ("flops" in given) == ("loss" in given):
        what = "both a budget and a target" if "flops" in given else "neither a budget nor a target"
        raise InputError(f"there is {what}", mend="give either flops or loss")
    if "params" in given and "tokens" in given:
        raise InputError(
            "with params and tokens both fixed nothing is left to plan",
            mend="fix one of them, or predict the loss of that run",
        )
    if "max_epochs" in given and "unique_tokens" not in given:
        raise InputError("max_epochs needs to know how many tokens there are", mend="give unique_tokens")
    if given.get("max_epochs", 1.0) < 1:
        raise InputError(f"max_epochs is {given['max_epochs']:g}", mend="give 1 or more")
    if "max_epochs" in given and given.get("tokens", 0.0) > given["max_epochs"] * given["unique_tokens"]:
        raise InputError(
            f"{given['tokens']:g} tokens are more than {given['max_epochs']:g} epochs of the unique ones",
            mend="fix fewer tokens or allow more epochs",
        )
    return given


def _check_reach(of: Surface, question: Question, level: float) -> None:
    """Refuse a target that the law does not reach with any N and D, or whose reach is uncertain."""
    log_n = LARGEST_LOG if question.params is None else np.log(question.params)
    log_d = question.most if question.tokens is None else np.log(question.tokens)
    reach_S = of.loss(of.rows, log_n, log_d)
    fixed = [f"{name} fixed" for name in ("params", "tokens") if getattr(question, name) is not None]
    if of.unique_tokens is not None or question.most_tokens is not None:
        fixed.append("so few unique tokens")
    given = f" with {' and '.join(fixed)}" if fixed else ""
    if question.loss <= reach_S[0]:
        raise Refusal(
            f"no amount of compute reaches a loss of {question.loss:g}{given}: the law's floor there is "
            f"{reach_S[0]:.4g}",
            mend=f"ask for a loss above {reach_S[0]:.4g}",
        )
    draws_S = np.where(of.broken_S, np.inf, reach_S)[1:]
    if len(draws_S) and question.loss <= (top := np.quantile(draws_S, 0.5 + level / 2, method="higher")):
        raise Refusal(
            f"the data do not say whether a loss of {question.loss:g}{given} can be reached: at level "
            f"{level:g} the law's floor there lies anywhere up to {top:.4g}",
            mend=f"ask for a loss above {top:.4g}, or add larger runs to the fit",
        )


def _check_answer(question: Question, log_n: float, log_d: float) -> None:
    if np.isfinite(log_n) and np.isfinite(log_d):
        if question.most_tokens is not None and log_d > question.most + 1e-9:
            epochs = np.exp(log_d - question.most)
            raise InputError(
                f"the budget buys {epochs:.3g} times as many tokens as max_epochs allows",
                mend="fix more parameters, allow more epochs or spend less",
            )
        return
    if question.flops is not None and question.serve_tokens:
        raise Refusal(
            f"the budget of {question.flops:.3g} FLOPs does not pay for training and serving",
            mend="raise the budget, serve fewer tokens or fix fewer parameters",
        )
    raise Refusal(
        "the law has no optimum with at least one parameter and one token there",
        mend="ask for a budget or a loss nearer to the runs of the fit",
    )


def _follows(name: str, question: Question) -> bool:
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


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value
