"""How often intervals hold new runs to ten times the largest, the truth in the set of laws or not."""

import numpy as np
import pytest

from isoloss.plans.forecast import forecast

SEEDS, RUNS, NEW, NOISE = 12, 30, 12, 0.01
BAND = (0.86, 0.98)
INSIDE, OUTSIDE = ("chinchilla", "outer-exponent", "alpha = beta"), ("product", "bend")
LEAST = 0.8
"""Of one kind of truth: 12 tables of 12 runs each, whose misses come together."""


def losses(rng, kind, N, D):
    """A law of the set; or one with a term in both sizes or a bend of 1 %, which no law of it has."""
    (alpha, beta), (floor, a, b) = rng.uniform(0.25, 0.5, 2), rng.uniform(0.5, [2.0, 1.2, 1.2])
    beta = alpha if kind == "alpha = beta" else beta
    falling = a * (N / 1e8) ** -alpha + b * (D / 1e10) ** -beta
    out = floor + falling ** (0.6 if kind == "outer-exponent" else 1.0)
    if kind == "product":
        out = out + 0.3 * (N / 1e8) ** -0.2 * (D / 1e10) ** -0.2
    if kind == "bend":
        out = out * (1 + 0.01 * np.sin(np.log(N * D) / 3))
    return out * np.exp(NOISE * rng.standard_normal(len(N)))


def misses(kind):
    """Log errors of new runs as parts of the interval's half-width."""
    out = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        N = 10 ** np.concatenate([rng.uniform(7, 9, RUNS), rng.uniform(8.5, 10, NEW)])
        D = 10 ** np.concatenate([rng.uniform(9, 11, RUNS), rng.uniform(10.5, 12, NEW)])
        y = losses(rng, kind, N, D)
        prediction = forecast(
            {"params": N[:RUNS], "tokens": D[:RUNS]},
            y[:RUNS],
            {"params": N[RUNS:], "tokens": D[RUNS:]},
        )
        low, high = np.log(prediction.interval).T
        out.append(np.abs(np.log(y[RUNS:] / prediction.loss)) / ((high - low) / 2))
    return np.concatenate(out)


@pytest.fixture(scope="module")
def parts():
    return {kind: misses(kind) for kind in (*INSIDE, *OUTSIDE)}


@pytest.mark.parametrize("kinds", [INSIDE, OUTSIDE])
def test_intervals_hold_as_often_as_they_say_and_narrower_ones_do_not(parts, kinds):
    pooled = np.concatenate([parts[kind] for kind in kinds])
    assert BAND[0] < np.mean(pooled < 1.0) < BAND[1]
    assert not BAND[0] < np.mean(pooled < 0.7) < BAND[1]


@pytest.mark.parametrize("kind", [*INSIDE, *OUTSIDE])
def test_no_kind_of_truth_is_held_seldom(parts, kind):
    assert np.mean(parts[kind] < 1.0) > LEAST
    assert np.mean(parts[kind] < 0.4) < LEAST  # negative control


def checkpoint_misses(runs=14, rows=5):
    """As above, of runs with several checkpoints, which share a noise of 1 % and have a tenth of it alone."""
    out = []
    for seed in range(2 * SEEDS):
        rng = np.random.default_rng(seed)
        run = np.repeat(np.arange(runs), rows)
        N = 10 ** rng.uniform(7, 9, runs)[run]
        D = 10 ** rng.uniform(10, 11, runs)[run] * np.tile(np.geomspace(0.1, 1, rows), runs)
        noise = NOISE * rng.standard_normal(runs)[run] + NOISE / 10 * rng.standard_normal(runs * rows)
        new = 10 ** rng.uniform(8.5, 10, NEW), 10 ** rng.uniform(10.5, 12, NEW)
        seen, new_losses = (1.8 + 480 * n**-0.35 + 2100 * d**-0.37 for n, d in ((N, D), new))
        new_losses = new_losses * np.exp(NOISE * rng.standard_normal(NEW))
        at = dict(zip(("params", "tokens"), new, strict=True))
        prediction = forecast({"params": N, "tokens": D}, seen * np.exp(noise), at, cluster=run)
        low, high = np.log(prediction.interval).T
        out.append(np.abs(np.log(new_losses / prediction.loss)) / ((high - low) / 2))
    return np.concatenate(out)


def test_checkpoints_of_one_run_count_once():
    parts = checkpoint_misses()
    assert BAND[0] < np.mean(parts < 1.0) < BAND[1]
    assert not BAND[0] < np.mean(parts < 0.7) < BAND[1]
