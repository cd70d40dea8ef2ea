"""Tails and quantiles are SciPy's, over the degrees of freedom that tables of runs have."""

from math import inf, nan

import numpy as np
import pytest
import scipy.special as sc

from isoloss.distributions import beta_cdf, binomial_cdf, f_tail, normal_cdf, normal_quantile, t_quantile

LEVELS = [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999]
FREEDOM = [1, 1.5, 2, 3, 7, 19.4, 120, 2_000, 9_999, 10_001, 1e6, 1e9]


@pytest.mark.parametrize("df", FREEDOM)
def test_quantiles_of_t_are_scipys(df: float):
    ours = [t_quantile(level, df) for level in LEVELS]
    assert ours == pytest.approx(sc.stdtrit(df, [0.5 + level / 2 for level in LEVELS]), rel=1e-9)


def test_quantiles_of_t_with_endless_freedom_are_the_normals():
    assert t_quantile(0.95, inf) == normal_quantile(0.95) == pytest.approx(1.959963984540054, rel=1e-14)
    assert t_quantile(0.95, 30) > 1.02 * normal_quantile(0.95)


def test_quantiles_of_t_near_both_ends_of_the_levels():
    """t = tan(pi level / 2) with one degree of freedom, and level sqrt(2 / (1 - level^2)) with two."""
    for level in (1e-12, 1e-6, 0.3, 0.7):
        assert t_quantile(level, 1) == pytest.approx(np.tan(np.pi * level / 2), rel=1e-12)
        assert t_quantile(level, 2) == pytest.approx(level * np.sqrt(2 / (1 - level**2)), rel=1e-12)
        assert t_quantile(level, 9_999) == pytest.approx(t_quantile(level, 10_001), rel=1e-7)
    highest = 1 - 2**-53
    assert t_quantile(highest, 1) == pytest.approx(2 / np.pi * 2**53, rel=1e-12)
    assert normal_quantile(highest) == pytest.approx(8.2923611, rel=1e-7)


def test_tails_of_f_are_scipys_down_to_the_rarest():
    rng = np.random.default_rng(0)
    above, below = np.exp(rng.uniform(0, np.log([[50], [20_000]]), (2, 500)))
    ratio = np.exp(2 * rng.standard_normal(500))
    ours = [f_tail(*three) for three in zip(above, below, ratio, strict=True)]
    wanted = sc.fdtrc(above, below, ratio)
    assert wanted.min() < 1e-100 < 0.9 < wanted.max()
    assert ours == pytest.approx(wanted, rel=1e-9, abs=1e-300)


def test_shares_of_hits_are_scipys():
    for n in (1, 7, 40, 3_000):
        hits = np.unique(np.linspace(0, n, 9).astype(int))
        for chance in (0.05, 0.5, 0.95):
            ours = [binomial_cdf(int(k), n, chance) for k in hits]
            assert ours == pytest.approx(sc.bdtr(hits, n, chance), rel=1e-9, abs=1e-300)


def test_the_normal_is_scipys_in_any_shape():
    x = np.linspace(-30, 30, 602).reshape(2, 7, 43)
    assert normal_cdf(x).shape == x.shape
    np.testing.assert_allclose(normal_cdf(x), sc.ndtr(x), rtol=1e-12)
    assert float(normal_cdf(0.0)) == 0.5
    assert [normal_quantile(level) for level in LEVELS] == pytest.approx(
        [sc.ndtri(0.5 + level / 2) for level in LEVELS], rel=1e-12
    )


def test_ends_and_missing_numbers_are_passed_on():
    assert (beta_cdf(0.0, 2, 3), beta_cdf(1.0, 2, 3)) == (0.0, 1.0)
    assert (f_tail(1, 5, 0.0), f_tail(1, 5, inf)) == (1.0, 0.0)
    assert np.isnan([t_quantile(0.9, nan), t_quantile(0.9, 0), f_tail(1, 5, nan), beta_cdf(nan, 1, 1)]).all()
