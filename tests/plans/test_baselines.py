"""What can be predicted without a law, by hand on grids where the answer is known."""

import numpy as np
import pytest

from isoloss.plans.baselines import baselines
from isoloss.plans.holdout import hide
from isoloss.plans.scores import score_of

N = np.repeat([1e6, 1e7, 1e8, 1e9], 2)
D = np.tile([1e9, 1e10], 4)
NAMES = ("params", "tokens")


def predictions(loss, x=(N, D)):
    x_In = np.array(x)
    return baselines(NAMES, x_In, loss, hide(NAMES, x_In, "largest-params", rungs=1))


def test_a_power_law_of_all_inputs_is_found_exactly_and_one_of_one_input_is_not():
    loss = 60 * N**-0.1 * D**-0.05
    predicted = predictions(loss)
    np.testing.assert_allclose(predicted["power law in all inputs"], loss[N == 1e9], rtol=1e-12)
    assert np.abs(predicted["power law in params"] / loss[N == 1e9] - 1).max() > 0.03
    # The best of each rung has 1e10 tokens: the frontier predicts that one.
    assert predicted["frontier"] == pytest.approx(loss[(N == 1e9) & (D == 1e10)][0])
    np.testing.assert_allclose(predicted["frontier"], predicted["two largest rungs"])


def test_a_sentence_calls_inputs_by_their_symbols():
    words = {name: score_of(name, loss, np.ones(2)).words for name, loss in predictions(60 * N**-0.1).items()}
    assert words["power law in params"] == "power law in N"
    assert words["power law in tokens"] == "power law in D"
    unchanged = ("power law in all inputs", "nearest run", "frontier")
    assert [words[name] for name in unchanged] == list(unchanged)


def test_the_nearest_run_and_the_largest_rung_repeat_what_was_seen():
    loss = np.arange(8.0) + 2
    predicted = predictions(loss)
    np.testing.assert_allclose(predicted["nearest run"], loss[N == 1e8])
    np.testing.assert_allclose(predicted["mean of the largest rung"], np.sqrt(loss[N == 1e8].prod()))


def test_equally_near_seeds_count_alike():
    """In logarithms, so that the mean is geometric."""
    x = [np.append(column, column[4]) for column in (N, D)]
    loss = np.append(60 * N**-0.1, 20.0)
    predicted = predictions(loss, x)
    assert predicted["nearest run"][0] == pytest.approx(np.sqrt(loss[4] * 20.0))


def test_hidden_losses_decide_nothing():
    loss = 60 * N**-0.1 * D**-0.05
    rigged = np.where(N == 1e9, 100.0, loss)
    for name, values in predictions(loss).items():
        np.testing.assert_array_equal(values, predictions(rigged)[name])


def test_an_input_that_does_not_vary_or_is_zero_gives_no_power_law():
    assert "power law in tokens" not in predictions(60 * N**-0.1, (N, np.full(8, 1e9)))
    assert "power law in tokens" not in predictions(60 * N**-0.1, (N, np.where(D > 1e9, D, 0.0)))
