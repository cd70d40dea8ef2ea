"""What stands still while a plan moves N and D: loops, unique tokens; and how a law sees N and D then."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from isoloss.errors import InputError
from isoloss.laws import Array, FitData, Form
from isoloss.plans.heuristics import R_STAR, repeated_worth

Values = float | Array

SPLIT = ("params_once", "params_recurrent")


@dataclass(frozen=True)
class FixedInputs:
    """``unique_tokens`` at hand, infinite if they never run out; passes of a looped model, and the share of
    its parameters that stands inside the loop."""

    unique_tokens: float = np.inf
    recurrence: float | None = None
    recurrent_share: float | None = None

    @property
    def loops(self) -> float:
        return 1.0 if self.recurrence is None else self.recurrence

    @property
    def looped_share(self) -> float:
        """Without a split the whole stack is run again, as in Ouro."""
        return 1.0 if self.recurrent_share is None else self.recurrent_share


def held_inputs(given: Mapping[str, float]) -> FixedInputs:
    """What a question of a plan holds fixed."""
    unique = given.get("unique_tokens", np.inf)
    return FixedInputs(unique, given.get("recurrence"), given.get("recurrent_share"))


def check_fixed_inputs(law: Form, fixed: FixedInputs) -> None:
    """Raises InputError for a law without N or D, and for what it lacks or does not know."""
    sizes = SPLIT if set(SPLIT) <= set(law.inputs) else ("params",)
    if not {*sizes, "tokens"} <= set(law.inputs):
        raise InputError(
            f"the law is one of {', '.join(law.inputs)}: a plan needs parameters and tokens",
            where=law.name,
            mend="fit a law of both, such as chinchilla",
        )
    needs = {"recurrence": "recurrence" in law.inputs, "recurrent_share": sizes == SPLIT}
    for name, needed in needs.items():
        if needed and getattr(fixed, name) is None:
            raise InputError(f"the law also takes {name}", where=law.name, mend=f"give {name}")
        if not needed and getattr(fixed, name) is not None:
            raise InputError(f"the law knows no {name}", where=law.name, mend=f"leave {name} out")
    if fixed.recurrent_share is not None and fixed.recurrent_share > 1:
        raise InputError(f"recurrent_share is {fixed.recurrent_share:g}", mend="give a share of N up to 1")
    if others := set(law.inputs) - {*sizes, "tokens", "recurrence", "unique_tokens"}:
        raise InputError(
            f"the law also takes {', '.join(sorted(others))}, which a plan cannot hold fixed",
            where=law.name,
            mend="plan with a law of params and tokens",
        )


def law_inputs(law: Form, fixed: FixedInputs, params: Values, tokens: Values) -> dict[str, Any]:
    """The inputs of ``law`` at so many parameters and tokens processed."""
    x: dict[str, Any] = {"params": params, "tokens": tokens}
    if "unique_tokens" in law.inputs:
        x["unique_tokens"] = np.minimum(tokens, fixed.unique_tokens)
    elif repeats_assumed(law, fixed):
        x["tokens"] = repeated_worth(tokens, fixed.unique_tokens, R_STAR)
    if "recurrence" in law.inputs:
        x["recurrence"] = np.full(np.shape(params), fixed.loops)
    if SPLIT[1] in law.inputs:
        x["params_once"] = (1 - fixed.looped_share) * params
        x["params_recurrent"] = fixed.looped_share * params
        del x["params"]
    return x


def repeats_assumed(law: Form, fixed: FixedInputs) -> bool:
    """Whether the worth of repeated tokens is not the law's own."""
    return bool(np.isfinite(fixed.unique_tokens)) and "unique_tokens" not in law.inputs


def passes(law: Form, fixed: FixedInputs) -> float:
    """Executed over stored parameters: what loops multiply the FLOPs of a token by."""
    if "recurrence" not in law.inputs:
        return 1.0
    return 1 - fixed.looped_share + fixed.looped_share * fixed.loops


class HasRuns(Protocol):
    """A fit, or the forecast of a table."""

    @property
    def data(self) -> FitData | None: ...


def run_sizes(source: HasRuns) -> tuple[Array, Array, Array] | None:
    """N, D and executed N of the runs behind a fit or a forecast; None where it has none."""
    if source.data is None:
        return None
    x = {name: np.array(column) for name, column in source.data.inputs.items()}
    loops = x.get("recurrence", 1.0)
    if SPLIT[1] in x:
        return x["params_once"] + x["params_recurrent"], x["tokens"], x["params_once"] + loops * x[SPLIT[1]]
    return x["params"], x["tokens"], loops * x["params"]
