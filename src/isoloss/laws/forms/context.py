"""Loss over the position T in the context (1-based), for one model and jointly with its size."""

from dataclasses import replace

from isoloss.laws.forms.sums import Term, power_sum
from isoloss.laws.forms.warps import Steeper

_MEND = "evaluate at longer contexts, or on more windows"

CONTEXT = power_sum(
    "context",
    (Term("a"), Term("b", (("position", "p"),))),
    formula="L = a + b T^-p",
    source="Kaplan et al. 2020, arXiv 2001.08361, appendix D.5",
    mend_floor=_MEND,
    min_points=5,
    correlated="position",
)

# No paper gives a law in N and T together; this one keeps D.5 at each size: a falls, b and p grow with N.
CONTEXT_PARAMS = power_sum(
    "context-params",
    (
        Term("E"),
        Term("A", (("params", "alpha"),)),
        Term("B", (("params", "eta"), ("bent_position", "p"))),
    ),
    inputs=("params", "position"),
    formula="L = E + A N^-alpha + B N^-eta T^-(p N^q), q = 0 unless freed",
    text="L = {E} + {A} N^-{alpha} + {B} N^-({eta}) T^-({p} N^{q})",
    source="ours; at one N it is Kaplan et al. 2020, arXiv 2001.08361, appendix D.5",
    mend_floor=_MEND,
    warp=Steeper(),
    units=("params", "1"),
    signed=("eta", "q"),
    fixed={"q": 0.0},
    min_points=15,
    correlated="position",
)
CONTEXT_PARAMS = replace(CONTEXT_PARAMS, nested=CONTEXT_PARAMS.nested[:2])
