"""Plans: what a law says to do. No torch."""

from isoloss.plans.cost import PF_DAY, Hardware, gpus, hardware
from isoloss.plans.curve import AllocationExponent, Optima, allocation_exponent, optima
from isoloss.plans.penalty import Penalty
from isoloss.plans.plan import Draws, Plan, plan
from isoloss.plans.repeat import effective_tokens, epoch_value
from isoloss.plans.setting import Setting

__all__ = [
    "PF_DAY",
    "AllocationExponent",
    "Draws",
    "Hardware",
    "Optima",
    "Penalty",
    "Plan",
    "Setting",
    "allocation_exponent",
    "effective_tokens",
    "epoch_value",
    "gpus",
    "hardware",
    "optima",
    "plan",
]
