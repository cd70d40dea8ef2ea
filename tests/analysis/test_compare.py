import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from isoloss.analysis.compare import contrast, seed_noise
from isoloss.analysis.points import LEVEL
from isoloss.errors import Refusal


def losses(rng, sizes, seeds, sd):
    rows = [
        ("A", size, seed, 4.0 + sd * rng.standard_normal()) for size in range(sizes) for seed in range(seeds)
    ]
    return pl.DataFrame(rows, schema=["curve", "params", "seed", "loss"], orient="row")


def simulate(times=600):
    """Intervals of a difference of two sizes of three runs each, noise pooled over two sizes: truth is 0."""
    rng = np.random.default_rng(1)
    covered, by_normal = 0, 0
    for _ in range(times):
        points = losses(rng, sizes=2, seeds=2, sd=0.02)
        noise = seed_noise(points)
        means = points.group_by("params", maintain_order=True).agg(pl.col("loss").mean())["loss"]
        found = contrast([(1.0, means[0], 2), (-1.0, means[1], 2)], noise)
        low, high = found.interval
        covered += low <= 0 <= high
        reach = norm.ppf(0.5 + LEVEL / 2) * noise.sd * np.sqrt(1 / 2 + 1 / 2)
        by_normal += abs(found.value) <= reach
    return covered / times, by_normal / times


def test_intervals_cover_at_their_level_and_normal_ones_would_not():
    covered, by_normal = simulate()
    assert abs(covered - LEVEL) < 0.03
    assert by_normal < LEVEL - 0.07


def test_noise_counts_seeds_and_not_sizes():
    points = losses(np.random.default_rng(2), sizes=200, seeds=3, sd=0.05)
    noise = seed_noise(points.with_columns(pl.col("loss") + pl.col("params")))
    assert noise.df == 400
    assert noise.sd == pytest.approx(0.05, rel=0.1)


def test_one_seed_gives_a_difference_without_an_interval_or_sign():
    noise = seed_noise(losses(np.random.default_rng(3), sizes=5, seeds=1, sd=0.02))
    assert isinstance(noise, Refusal)
    found = contrast([(1.0, 4.0, 1), (-1.0, 3.0, 1)], noise)
    assert found.value == 1.0
    assert found.interval is None
    assert found.sign is None


@pytest.mark.parametrize(("value", "sign"), [(0.5, 1), (-0.5, -1), (0.001, 0)])
def test_the_sign_is_what_the_interval_supports(value, sign):
    noise = seed_noise(losses(np.random.default_rng(4), sizes=4, seeds=3, sd=0.05))
    assert contrast([(1.0, 3.0 + value, 2), (-1.0, 3.0, 2)], noise).sign == sign
