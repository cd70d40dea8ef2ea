"""The context law over seeds, its mean, and where a model stops using more context."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import zeta

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, FitStatus, Plateau, context_mean, fit, fit_context, where_it_stops

T_256 = np.arange(1.0, 257.0)
# Kaplan et al. 2020, Fig. 20: a, b, p of L = a + b T^-p, and the mean over 1..1024 derived from them.
KAPLAN = [
    (4.0, 3.2, 0.47, 4.228),
    (3.4, 4.0, 0.56, 3.581),
    (2.9, 4.5, 0.56, 3.103),
    (2.7, 4.9, 0.60, 2.882),
    (2.4, 5.1, 0.61, 2.581),
    (2.3, 5.4, 0.62, 2.482),
]


def _sums(mean_ST, windows=400, sd=2.5):
    mean_ST = np.atleast_2d(mean_ST)
    count = np.full(mean_ST.shape, float(windows))
    return mean_ST * count, (sd**2 + mean_ST**2) * count, count


@pytest.mark.parametrize(("a", "b", "p", "mean"), KAPLAN)
def test_context_mean_of_kaplan(a, b, p, mean):
    T = np.arange(1.0, 1025.0)
    found = fit("context", {"position": T}, a + b * T**-p)
    assert found.params == pytest.approx({"a": a, "b": b, "p": p}, rel=1e-6)
    assert context_mean(found, 1024) == pytest.approx(mean, abs=6e-4)
    closed = a + b * 1024**-p / (1 - p) + b * float(np.real(zeta(p + 0j))) / 1024
    assert context_mean(found, 1024) == pytest.approx(closed, abs=1e-3)
    assert context_mean(found, 1) == pytest.approx(a + b)


def test_the_formula_of_kaplans_figure():
    T = np.arange(1.0, 1025.0)
    assert fit("context", {"position": T}, 4.0 + 3.2 * T**-0.47).formula() == "L = 4.0 + 3.2 T^-0.47"


def _seeds(rng, seeds, T=T_256, noise=0.01):
    """Seeds differ in all three parameters together, and each position has its own noise."""
    a = 3.4 + 0.02 * rng.standard_normal((seeds, 1))
    b, p = 3.5 + 0.05 * rng.standard_normal((seeds, 1)), 0.55 + 0.01 * rng.standard_normal((seeds, 1))
    return a + b * T**-p + noise * rng.standard_normal((seeds, len(T)))


def test_intervals_over_seeds_cover():
    """1,000 simulations at nominal 90%: accept 86.8-93.0%."""
    rng, T = np.random.default_rng(0), np.arange(1.0, 65.0)
    held, naive_held = np.zeros(4), 0
    for turn in range(1000):
        found = fit_context(T, *_sums(_seeds(rng, 4, T)))
        truth = {"a": 3.4, "b": 3.5, "p": 0.55}
        held[:3] += [low <= truth[name] <= high for name, (low, high) in found.intervals.items()]
        low, high = np.log(found.intervals["a"])
        held[3] += abs(np.log(3.4) - (low + high) / 2) <= 0.7 * (high - low) / 2
        if turn < 100:  # the usual mistake: each position taken as a run of its own
            naive = fit(
                "power-floor", {"params": T}, np.array(found.residuals) + found.predict(position=T).loss
            )
            naive_held += naive.intervals["E"][0] <= 3.4 <= naive.intervals["E"][1]
    assert np.all((held[:3] >= 868) & (held[:3] <= 930))
    # Negative controls: intervals 30% narrower, and those over positions, must fail.
    assert held[3] < 868
    assert naive_held < 70


def test_one_seed_has_no_interval_and_says_so():
    found = fit_context(T_256, *_sums(_seeds(np.random.default_rng(1), 1)))
    assert found.status is FitStatus.CONVERGED
    assert found.covariance is None
    assert found.intervals == {"a": None, "b": None, "p": None}
    assert found.warnings == ("one seed: no interval can be given",)
    prediction = found.predict(position=100)
    assert prediction.interval is None
    assert prediction.band is None
    assert Fit.from_json(found.to_json()) == found


def test_two_seeds_have_wide_intervals_and_say_so():
    found = fit_context(T_256, *_sums(_seeds(np.random.default_rng(2), 2)))
    assert found.df == 1
    assert "two seeds" in found.warnings[0]
    low, high = found.predict(position=100).band
    assert low < found.predict(position=100).loss < high


def test_the_law_is_that_of_the_mean_over_seeds():
    means = _seeds(np.random.default_rng(3), 3)
    found = fit_context(T_256, *_sums(means))
    whole = fit("context", {"position": T_256}, means.mean(axis=0))
    assert found.params == pytest.approx(whole.params, rel=1e-7)
    assert found.clusters == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda p, s, q, c: (p[:-1], s, q, c),
        lambda p, s, q, c: (p[::-1], s, q, c),
        lambda p, s, q, c: (p - 1, s, q, c),
        lambda p, s, q, c: (p, s * np.nan, q, c),
        lambda p, s, q, c: (p, s, q, c * 0),
    ],
)
def test_broken_sums_are_input_errors(change):
    arguments = change(T_256, *_sums(_seeds(np.random.default_rng(0), 2)))
    with pytest.raises(InputError):
        fit_context(*arguments)


def _stops(curve_T, windows, sims, seed, sd=2.5):
    """Outcomes of ``where_it_stops`` on noisy per-position means."""
    rng = np.random.default_rng(seed)
    T = np.arange(1.0, len(curve_T) + 1)
    found = Counter()
    for _ in range(sims):
        noisy = curve_T + sd / np.sqrt(windows) * rng.standard_normal(len(curve_T))
        stop = where_it_stops(T, *_sums(noisy, windows, sd))
        found[stop.outcome, stop.index] += 1
    return found


def test_a_plateau_is_placed_within_an_octave():
    T = np.arange(1.0, 1025.0)
    found = _stops(3.4 + 3.5 * np.minimum(T, 85) ** -0.6, windows=400, sims=300, seed=0)
    assert (found[Plateau.STOPS, 64] + found[Plateau.STOPS, 128]) / 300 >= 0.95


@pytest.mark.parametrize(("a", "b", "p", "mean"), [KAPLAN[0], KAPLAN[-1]])
def test_a_power_law_does_not_stop(a, b, p, mean):
    T = np.arange(1.0, 1025.0)
    found = _stops(a + b * T**-p, windows=400, sims=200, seed=1)
    assert found[Plateau.IMPROVING, None] / 200 >= 0.99


def test_noise_alone_sees_a_gain_in_one_of_twenty():
    """A flat curve: any look seeing a gain has probability 5%; without the allowance for looks it fails."""
    T, flat = np.arange(1.0, 257.0), np.full(256, 4.0)
    rng = np.random.default_rng(2)
    careful = careless = 0
    for _ in range(1000):
        sums = _sums(flat + 2.5 / 20 * rng.standard_normal(256))
        careful += where_it_stops(T, *sums).judged != (1, 1)
        careless += where_it_stops(T, *sums, sure=0.3).judged != (1, 1)
    assert 0.025 <= careful / 1000 <= 0.075  # 5% within 3.6 standard errors
    assert careless / 1000 > 0.15


def test_too_few_tokens_decide_nothing():
    T = np.arange(1.0, 257.0)
    found = _stops(4 + 3.2 * T**-0.47, windows=5, sims=200, seed=3)
    assert found[Plateau.UNDECIDED, None] / 200 >= 0.7
    assert sum(count for (outcome, _), count in found.items() if outcome is Plateau.STOPS) / 200 <= 0.05


def test_short_contexts_are_refused():
    with pytest.raises(Refusal, match="32"):
        where_it_stops(np.arange(1, 9), *_sums(np.ones(8)))
