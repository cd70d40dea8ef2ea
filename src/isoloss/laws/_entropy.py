"""How much of a recurrence term the entropy bonus of looped training could explain alone."""

from dataclasses import dataclass

import numpy as np

from isoloss.errors import InputError
from isoloss.laws._result import Fit
from isoloss.text import percent

OURO_BETA = 0.1  # the larger of the entropy weights in arXiv 2510.25741; the smaller is half of it


@dataclass(frozen=True)
class EntropyShare:
    """From ``least`` to ``recurrence`` loops: the fall of C (T + t3)^-gamma and of -beta ln T, in nats.

    ``share`` is the part of the fall that the bonus could explain alone, at most 1; ``enough`` the weight
    that would explain all of it; ``sentence`` says so.
    """

    recurrence: float
    least: float
    beta: float
    fall: float
    bonus: float
    share: float
    enough: float
    sentence: str


def entropy_share(fit: Fit, beta: float, recurrence: float | None = None) -> EntropyShare:
    """How much of the fall of ``loop-total`` with T_m the term -beta H(p) could make without better losses.

    The total objective is sum_t p(t) L_t - beta H(p) over exits t = 1..T_m, and H is at most ln T_m: from the
    fewest loops in the data to ``recurrence`` (by default the most in them) the bonus lowers it by at most
    beta ln(recurrence / least). The fitted term falls by C [(least + t3)^-gamma - (recurrence + t3)^-gamma].
    Raises InputError for another law, a beta below 0, or loops that do not grow.
    Source: total loss of Ouro, arXiv 2510.25741, eq. 4; the bound is ln of the number of exits.
    """
    if fit.law != "loop-total":
        raise InputError("has no term in the total loss of looped training", where=fit.law, mend="loop-total")
    least, most = fit.ranges.get("recurrence", (1.0, None))
    recurrence = most if recurrence is None else recurrence
    if recurrence is None or not 1 <= least < recurrence < np.inf:
        raise InputError(
            f"loops from {least} to {recurrence}",
            where=fit.law,
            mend="give two numbers of loops that grow from 1",
        )
    if not 0 <= beta < np.inf:
        raise InputError(f"beta is {beta}", mend="give the weight of the entropy in training, 0 or larger")
    C, gamma, t3 = (fit.params[name] for name in ("C", "gamma", "t3"))
    fall = float(C * ((least + t3) ** -gamma - (recurrence + t3) ** -gamma))
    bonus = float(beta * np.log(recurrence / least))
    share = min(bonus / fall, 1.0) if fall > 0 else 1.0
    enough = max(fall, 0.0) / float(np.log(recurrence / least))
    sentence = (
        f"From {least:g} to {recurrence:g} loops the law falls by {fall:.3f} nats. An entropy bonus of "
        f"weight {beta:g} alone could give {bonus:.3f} nats, {percent(share, 0)} of that, without better "
        f"predictions. A weight of {enough:.3g} could explain all of it."
    )
    return EntropyShare(float(recurrence), float(least), float(beta), fall, bonus, share, enough, sentence)
