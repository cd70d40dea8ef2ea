"""Losses at or below 0, as when a unigram model's is taken off: allowed on request, with a signed floor."""

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.laws import FORMS, Fit, fit, form

SIGNED = sorted(name for name, law in FORMS.items() if law.with_signed_floor() is not law)


def _shifted(world, seed, shift):
    y = world.noisy(seed) - shift
    assert y.min() < 0 < y.max()
    return y


def test_without_the_request_the_row_is_named(worlds):
    world = worlds["power-floor"]
    y = _shifted(world, 0, 3.0)
    row = int(np.argmax(y < 0)) + 1
    with pytest.raises(InputError, match=f"row {row}: loss is") as caught:
        fit("power-floor", world.inputs, y)
    assert "allow_negative" in caught.value.mend


@pytest.mark.parametrize("law", SIGNED)
def test_a_constant_taken_off_comes_off_the_floor_alone(worlds, law):
    """L - c has the same exponents, intervals and residuals; its floor is E - c."""
    world = worlds[law]
    shift = float(np.median(world.losses()))
    plain = fit(law, world.inputs, world.noisy(0))
    low = fit(law, world.inputs, _shifted(world, 0, shift), allow_negative=True)
    floor = _floor(law)
    assert low.params[floor] == pytest.approx(plain.params[floor] - shift, rel=1e-5)
    for name in low.params:
        if name != floor:
            assert low.params[name] == pytest.approx(plain.params[name], rel=1e-4)
    np.testing.assert_allclose(low.residuals, plain.residuals, atol=1e-7)
    assert low.sigma == pytest.approx(plain.sigma, rel=1e-6)
    before, after = plain.predict(**world.far), low.predict(**world.far)
    assert after.loss == pytest.approx(before.loss - shift, abs=1e-5)
    if plain.covariance is not None:
        for name in form(law).limits:
            if name not in plain.fixed:
                assert low.intervals[name] == pytest.approx(plain.intervals[name], rel=1e-3)
        # The band is symmetric about the loss rather than about its logarithm, and as wide.
        assert after.loss - after.band[0] == pytest.approx(after.band[1] - after.loss)
        assert np.ptp(after.band) == pytest.approx(np.ptp(before.band), rel=0.02)
        assert np.ptp(after.interval) == pytest.approx(np.ptp(before.interval), rel=0.02)
    assert Fit.from_json(low.to_json()) == low


def _floor(law):
    return next(iter(form(law).parameters))


def test_intervals_of_a_negative_law_hold():
    """90% of 200, the floor below 0 and predictions ten times beyond; 30% narrower fails."""
    sizes = np.geomspace(1e6, 1e8, 12)
    truth, far = -1.2 + 400 * sizes**-0.35, -1.2 + 400 * 1e9**-0.35
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = truth + 0.01 * rng.standard_normal(12)
        fitted = fit("power-floor", {"params": sizes}, y, allow_negative=True)
        prediction, new = fitted.predict(params=1e9), far + 0.01 * rng.standard_normal()
        ends = [(fitted.intervals["E"], -1.2), (prediction.band, far), (prediction.interval, new)]
        held.append([low <= value <= high for (low, high), value in ends])
        middles = [(sum(interval) / 2, np.ptp(interval) / 2, value) for interval, value in ends[:2]]
        held[-1] += [abs(value - middle) <= 0.7 * half for middle, half, value in middles]
    floor, mean, new, *narrowed = np.mean(held, axis=0)
    assert 0.825 <= min(floor, mean, new) <= max(floor, mean, new) <= 0.96
    assert max(narrowed) < 0.825


def test_logarithms_of_negative_losses_are_refused(worlds):
    world = worlds["power-floor"]
    for objective in ("squared-log", "huber-log", "huber-likelihood"):
        with pytest.raises(InputError, match="has no logarithm"):
            fit("power-floor", world.inputs, world.noisy(0) - 3, objective=objective, allow_negative=True)


def test_profile_and_bootstrap_of_a_negative_floor():
    sizes = np.geomspace(1e6, 1e8, 12)
    y = -1.2 + 400 * sizes**-0.35 + 0.01 * np.random.default_rng(0).standard_normal(12)
    t, by_profile, resampled = (
        fit("power-floor", {"params": sizes}, y, allow_negative=True, intervals=i)
        for i in ("t", "profile", "bootstrap")
    )
    for fitted in (t, by_profile, resampled):
        low, high = fitted.intervals["E"]
        assert low < fitted.params["E"] < high < 0
    assert by_profile.intervals["E"] == pytest.approx(t.intervals["E"], abs=0.3 * np.ptp(t.intervals["E"]))
    band = resampled.predict(params=1e9).band
    assert np.ptp(band) == pytest.approx(np.ptp(t.predict(params=1e9).band), rel=0.5)
