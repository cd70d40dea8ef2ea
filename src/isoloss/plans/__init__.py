"""Plans: what a law says to do. No torch."""

from isoloss.plans.cost import PF_DAY, Hardware, gpus, hardware
from isoloss.plans.curve import AllocationExponent, Optima, allocation_exponent, optima, surface_of
from isoloss.plans.fixed_inputs import FixedInputs
from isoloss.plans.heuristics import effective_tokens, epoch_value
from isoloss.plans.penalty import Penalty
from isoloss.plans.plan import Draws, Plan, plan

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
