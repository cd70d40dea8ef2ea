"""Functional forms of scaling laws, one module a family; ``FORMS`` holds them by name."""

from isoloss.laws.forms import chinchilla, context, kaplan, looped, shape
from isoloss.laws.forms.custom import from_function
from isoloss.laws.forms.form import FORMS, ZERO, Array, Form, Nested, form, register, registered
from isoloss.laws.forms.sums import PowerSum, Term, power_sum
from isoloss.laws.forms.warps import Warp

for _form in (
    chinchilla.POWER,
    chinchilla.POWER_FLOOR,
    kaplan.KAPLAN_ND,
    kaplan.KAPLAN_NS,
    chinchilla.CHINCHILLA,
    chinchilla.OUTER_EXPONENT,
    chinchilla.DATA_CONSTRAINED,
    chinchilla.PEARCE_SONG,
    chinchilla.OPTIMAL_PARAMS,
    looped.LOOP_TOTAL,
    looped.LOOP_STEP,
    looped.LOOP_EQUIVALENCE,
    context.CONTEXT,
    context.CONTEXT_PARAMS,
    shape.SHAPE,
    shape.WIDTH_DEPTH,
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
