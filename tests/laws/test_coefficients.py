"""Coefficients that are not negative: as the library's, for many sums at once."""

import numpy as np
import pytest
from scipy.optimize import nnls

from isoloss.laws.forms.coefficients import not_negative


@pytest.mark.parametrize("terms", [1, 2, 3, 4])
def test_each_is_what_the_library_finds(terms):
    rng = np.random.default_rng(terms)
    falling_GK = -rng.uniform(0.03, 2, (40, terms, 1))
    terms_GKn = np.exp(falling_GK * rng.uniform(-4, 4, (1, 1, 30))) * 10 ** rng.uniform(-3, 3, (40, terms, 1))
    target_n = 1 + rng.standard_normal(30)
    coefficients_GK = not_negative(terms_GKn, target_n)
    assert (coefficients_GK >= 0).all()
    for terms_Kn, coefficients_K in zip(terms_GKn, coefficients_GK, strict=True):
        best = nnls(terms_Kn.T, target_n)[1]
        assert np.linalg.norm(coefficients_K @ terms_Kn - target_n) == pytest.approx(best, rel=1e-6)


def test_targets_of_their_own_and_nothing_that_helps():
    terms = np.ones((2, 1, 5))
    coefficients = not_negative(terms, np.stack([np.full(5, 2.0), np.full(5, -2.0)]))
    np.testing.assert_allclose(coefficients, [[2.0], [0.0]])
