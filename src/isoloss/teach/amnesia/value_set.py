"""The best answer without binding: memory of which values occurred, not of whose they are. Exact."""

from math import factorial

import numpy as np

FORMULA = "E[max_v c_v] / D, with c the counts of D values drawn from V with replacement"


def value_set_share(pairs: int, values: int) -> float:
    """Share of right answers of "always the most frequent value of this string".

    E[max_v c_v] / D with c ~ multinomial(D; 1/V ..), and by exponential generating functions

        P(max c <= m) = D! / V^D  [x^D] (sum_{j <= m} x^j / j!)^V
        E[max c]      = sum_{m < D} (1 - P(max c <= m))

    Substituting x -> x / V keeps the coefficients near 1.
    """
    missed = [1.0 - _none_above(m, pairs, values) for m in range(pairs)]
    return float(sum(missed) / pairs)


def _none_above(most: int, pairs: int, values: int) -> float:
    base = np.array([values**-j / factorial(j) if j <= most else 0.0 for j in range(pairs + 1)])
    power = np.zeros(pairs + 1)
    power[0] = 1.0
    for _ in range(values):
        power = np.convolve(power, base)[: pairs + 1]
    return float(factorial(pairs) * power[pairs])
