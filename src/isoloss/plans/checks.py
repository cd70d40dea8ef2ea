"""Questions that contradict themselves, targets out of reach, and budgets that buy nothing."""

import numpy as np

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.plans.allocate import AllocationQuestion
from isoloss.plans.loss_surface import LARGEST_LOG, LossSurface

MOST = 1e50
"""Products of a few given numbers stay within floats."""


def check_numbers(numbers: dict[str, float | None], *, signed_loss: bool) -> dict[str, float]:
    """What was given, as floats; raises InputError where it is not positive or contradicts itself."""
    given: dict[str, float] = {}
    for name, value in numbers.items():
        if value is None and name != "flops_per_token":
            continue
        try:
            number = np.nan if value is None else float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number) or (number <= 0 and not (name == "loss" and signed_loss)):
            raise InputError(f"{name} is {value!r}", mend="give a positive finite number")
        if not 1 / MOST <= abs(number) <= MOST:
            ends = text.interval((1 / MOST, MOST), text.power)
            raise InputError(f"{name} is {text.power(number)}", mend=f"give a number from {ends}")
        given[name] = number
    if ("flops" in given) == ("loss" in given):
        what = "both a budget and a target" if "flops" in given else "neither a budget nor a target"
        raise InputError(f"there is {what}", mend="give either flops or loss")
    if "params" in given and "tokens" in given:
        asked = "a budget" if "flops" in given else "a target"
        raise InputError(
            f"params and tokens are both given, with {asked}: nothing is left to plan",
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


def check_reach(
    surface: LossSurface, question: AllocationQuestion, level: float, *, few_tokens: bool
) -> None:
    """Refuse a target that the law does not reach with any N and D, or whose reach is uncertain.

    ``few_tokens``: the unique ones run out.
    """
    log_n = LARGEST_LOG if question.params is None else float(np.log(question.params))
    log_d = question.most if question.tokens is None else float(np.log(question.tokens))
    reach_S = surface.loss(surface.rows, log_n, log_d)
    fixed = [f"{name} fixed" for name in ("params", "tokens") if getattr(question, name) is not None]
    if few_tokens:
        fixed.append("so few unique tokens")
    given = f" with {' and '.join(fixed)}" if fixed else ""
    if question.target <= reach_S[0]:
        raise Refusal(
            f"no amount of compute reaches a loss of {question.target:g}{given}: the floor there is "
            f"{reach_S[0]:.6g}",
            mend=f"ask for a loss above {_above(reach_S[0])}",
        )
    draws_S = np.where(surface.broken_S, np.inf, reach_S)[1:]
    if len(draws_S) and question.target <= (top := np.quantile(draws_S, 0.5 + level / 2, method="higher")):
        raise Refusal(
            f"the data do not say whether a loss of {question.target:g}{given} can be reached: at level "
            f"{level:g} the floor there lies anywhere up to {top:.4g}",
            mend=f"ask for a loss above {_above(top)}, or add larger runs to the fit",
        )


def _above(loss: float) -> str:
    """Rounded up, so that asking for what the message says works."""
    return f"{np.ceil(loss * 1e3) / 1e3:.3f}"


def check_answer(question: AllocationQuestion, log_n: float, log_d: float) -> None:
    """Refuse a plan without an optimum; raises InputError for more epochs than were allowed."""
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
            f"the budget of {text.power(question.flops)} FLOPs does not pay for training and serving",
            mend="raise the budget, serve fewer tokens or fix fewer parameters",
        )
    raise Refusal(
        "the law has no optimum with at least one parameter and one token there",
        mend="ask for a budget or a loss nearer to the runs of the fit",
    )
