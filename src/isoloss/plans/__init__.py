"""Plans: what a law says to do. No torch."""

from typing import TYPE_CHECKING, Any

from isoloss.plans.cost import PF_DAY, Hardware, gpus, hardware
from isoloss.plans.curve import AllocationExponent, Optima, allocation_exponent, optima, surface_of
from isoloss.plans.fixed_inputs import FixedInputs
from isoloss.plans.heuristics import effective_tokens, epoch_value

if TYPE_CHECKING:
    from isoloss.plans.planning import Draws, Penalty, Plan, plan

__all__ = [
    "PF_DAY",
    "AllocationExponent",
    "Draws",
    "FixedInputs",
    "Hardware",
    "Optima",
    "Penalty",
    "Plan",
    "allocation_exponent",
    "effective_tokens",
    "epoch_value",
    "gpus",
    "hardware",
    "optima",
    "plan",
    "surface_of",
]


def __getattr__(name: str) -> Any:
    """Plans on demand: they ask forecasts, of which a fit has no need."""
    if name not in ("Draws", "Penalty", "Plan", "plan"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isoloss.plans import planning

    return getattr(planning, name)
