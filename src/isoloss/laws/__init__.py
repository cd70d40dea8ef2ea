"""Laws: functional forms fitted to runs, with intervals that hold and reasons to doubt them. No torch."""

from isoloss.laws.context import context_mean, fit_context, where_it_stops
from isoloss.laws.crossing import Crossing, crossing
from isoloss.laws.fit import again, fit
from isoloss.laws.forms import FORMS, Form, Term, form, from_function, power_sum, register
from isoloss.laws.known import known
from isoloss.laws.noise import difference, paired_difference, paired_noise, pooled_noise
from isoloss.laws.predict import Prediction
from isoloss.laws.profile import Profile, profile
from isoloss.laws.result import Fit, FitStatus

__all__ = [
    "FORMS",
    "Crossing",
    "Fit",
    "FitStatus",
    "Form",
    "Prediction",
    "Profile",
    "Term",
    "again",
    "context_mean",
    "crossing",
    "difference",
    "fit",
    "fit_context",
    "form",
    "from_function",
    "known",
    "paired_difference",
    "paired_noise",
    "pooled_noise",
    "power_sum",
    "profile",
    "register",
    "where_it_stops",
]
