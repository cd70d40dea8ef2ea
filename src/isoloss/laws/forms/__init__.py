"""Functional forms of scaling laws, one module a family; ``FORMS`` holds them by name."""

from isoloss.laws.forms.chinchilla import (
    CHINCHILLA,
    DATA_CONSTRAINED,
    OPTIMAL_PARAMS,
    OUTER_EXPONENT,
    PEARCE_SONG,
    POWER,
    POWER_FLOOR,
)
from isoloss.laws.forms.context import CONTEXT, CONTEXT_PARAMS
from isoloss.laws.forms.custom import from_function
from isoloss.laws.forms.form import FORMS, ZERO, Array, Form, Nested, form, register, registered
from isoloss.laws.forms.kaplan import KAPLAN_ND, KAPLAN_NS
from isoloss.laws.forms.layout import Term
from isoloss.laws.forms.looped import LOOP_EQUIVALENCE, LOOP_STEP, LOOP_TOTAL
from isoloss.laws.forms.shape import SHAPE, WIDTH_DEPTH
from isoloss.laws.forms.sums import PowerSum, power_sum
from isoloss.laws.forms.warps import Warp

for _form in (
    POWER,
    POWER_FLOOR,
    KAPLAN_ND,
    KAPLAN_NS,
    CHINCHILLA,
    OUTER_EXPONENT,
    DATA_CONSTRAINED,
    PEARCE_SONG,
    OPTIMAL_PARAMS,
    LOOP_TOTAL,
    LOOP_STEP,
    LOOP_EQUIVALENCE,
    CONTEXT,
    CONTEXT_PARAMS,
    SHAPE,
    WIDTH_DEPTH,
):
    register(_form)

__all__ = [
    "FORMS",
    "ZERO",
    "Array",
    "Form",
    "Nested",
    "PowerSum",
    "Term",
    "Warp",
    "form",
    "from_function",
    "power_sum",
    "register",
    "registered",
]
