"""Loss over parameters, tokens and loops."""

from isoloss.laws.forms.form import Form
from isoloss.laws.forms.sums import Term, power_sum
from isoloss.laws.forms.warps import LoopedParams, Shifted


def _ouro(name: str, loops: str, source: str) -> Form:
    """The published laws have shifts t1, t2, t3 beside N, D and the loops; they are 0 unless freed.

    Inputs are never near zero, and the grids people train do not determine three more parameters.
    """
    inputs = ("params", "tokens", "recurrence")
    shifts = ("t1", "t2", "t3")
    return power_sum(
        name,
        (
            Term("E"),
            Term("A", (("shifted_params", "alpha"),)),
            Term("B", (("shifted_tokens", "beta"),)),
            Term("C", (("shifted_recurrence", "gamma"),)),
        ),
        inputs=inputs,
        formula=f"L = E + A (N+t1)^-alpha + B (D+t2)^-beta + C ({loops}+t3)^-gamma (shifts 0 unless freed)",
        text="L = {E} + {A} N^-{alpha} + {B} D^-{beta} + {C} " + loops + "^-{gamma}",
        source=source,
        mend_floor="add larger models, more tokens or more loops",
        warp=Shifted(inputs, shifts),
        fixed=dict.fromkeys(shifts, 0.0),
    )


LOOP_TOTAL = _ouro("loop-total", "T_m", "Ouro, arXiv 2510.25741, total loss law")
LOOP_STEP = _ouro("loop-step", "T", "Ouro, arXiv 2510.25741, step-wise law at one T_m; T is the step")

LOOP_EQUIVALENCE = power_sum(
    "loop-equivalence",
    (Term("E"), Term("A", (("params_effective", "alpha"),)), Term("B", (("tokens", "beta"),))),
    inputs=("params_once", "params_recurrent", "recurrence", "tokens"),
    formula="L = E + A (N_once + r^phi N_rec)^-alpha + B D^-beta",
    source="iso-depth looped law, arXiv 2604.21106, eq. 3",
    mend_floor="add larger models or more tokens",
    warp=LoopedParams(),
    units=("params", "params", "1", "tokens"),
    spans={"params_recurrent": ("alpha",), "recurrence": ("phi",), "tokens": ("beta",)},
    signed=("phi",),
    zeros=("params_once",),
)
