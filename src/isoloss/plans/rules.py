"""Allocations that papers print, to hold a plan against: rules of thumb, not laws fitted to your data."""

from isoloss.plans.cost import PF_DAY


def kaplan(flops: float, *, critical_batch: bool = True) -> tuple[float, float]:
    """N and D of Kaplan et al. 2020, arXiv 2001.08361, Table 6: N = 1.3e9 (C_min / PF-day)^0.73, C = 6 N D.

    N without embeddings. At the critical batch size C_min = C / 2 (eq. 5.5), which is how Hoffmann et al.
    read the table; without ``critical_batch`` the batch is small and C_min = C.
    """
    least = flops / 2 if critical_batch else flops
    params = 1.3e9 * (least / PF_DAY) ** 0.73
    return params, flops / (6 * params)


def twenty_tokens(flops: float) -> tuple[float, float]:
    """N and D at 20 tokens a parameter and C = 6 N D: approaches 1 and 2 of Hoffmann et al. 2022."""
    params = (flops / 120) ** 0.5
    return params, 20 * params
