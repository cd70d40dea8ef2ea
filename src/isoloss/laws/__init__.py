"""Laws: functional forms fitted to runs, or refused.

What fits, judges and predicts one law is here; frontiers are read off sweeps by modules of their own:
``isoflop``, ``envelope``, ``frontier`` and ``isoflop_bias``.
"""

from isoloss.laws._constants import from_constants
from isoloss.laws._entropy import OURO_BETA, EntropyShare, entropy_share
from isoloss.laws._fit import check_seed, fit, problem_of
from isoloss.laws._predict import Prediction, far_warnings
from isoloss.laws._profile import Profile, profile
from isoloss.laws._result import Fit, FitData, FitStatus
from isoloss.laws._rows import Points, rows_of
from isoloss.laws._scaled import Interval
from isoloss.laws._solve import Problem, descend
from isoloss.laws._spread import WORST_CONDITION, covariance_S
from isoloss.laws._support import input_word, rise_together, together_refusal
from isoloss.laws.crossing import Crossing, CrossingOutcome, crossing
from isoloss.laws.forms import (
    FORMS,
    ZERO,
    Array,
    Form,
    Term,
    form,
    from_function,
    power_sum,
    register,
    registered,
)

__all__ = [
    "FORMS",
    "OURO_BETA",
    "WORST_CONDITION",
    "ZERO",
    "Array",
    "Crossing",
    "CrossingOutcome",
    "EntropyShare",
    "Fit",
    "FitData",
    "FitStatus",
    "Form",
    "Interval",
    "Points",
    "Prediction",
    "Problem",
    "Profile",
    "Term",
    "check_seed",
    "covariance_S",
    "crossing",
    "descend",
    "entropy_share",
    "far_warnings",
    "fit",
    "form",
    "from_constants",
    "from_function",
    "input_word",
    "power_sum",
    "problem_of",
    "profile",
    "register",
    "registered",
    "rise_together",
    "rows_of",
    "together_refusal",
]
