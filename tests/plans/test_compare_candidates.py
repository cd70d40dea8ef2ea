"""One form of a comparison: errors by group, AICc by hand, and refusals carried as reasons."""

import numpy as np
import pytest

from isoloss.errors import Refusal
from isoloss.laws import Fit, fit, form
from isoloss.plans.compare import aicc, fit_candidate, group_errors
from isoloss.plans.holdout import RunData, points_of

N = np.repeat(np.geomspace(1e6, 1e9, 8), 2)
LOSS = (1.7 + 400 * N**-0.34) * np.exp(0.003 * np.random.default_rng(0).standard_normal(16))
GROUP = points_of(N[None], None)
OPTIONS = {"objective": "squared-log", "level": 0.9}


def data(loss=LOSS, cluster=None):
    return RunData({"params": N}, loss, None, cluster, OPTIONS)


def test_errors_are_means_over_the_hidden_rows_of_each_group():
    hide_n = np.unique(N)[-2] <= N
    errors = group_errors(form("power-floor"), data(), [hide_n], GROUP)
    law = fit("power-floor", {"params": N[~hide_n]}, LOSS[~hide_n], **OPTIONS, curve_only=True)
    relative_h = np.abs(law.predict(params=N[hide_n]).loss / LOSS[hide_n] - 1)
    assert list(errors) == [6, 7]
    assert list(errors.values()) == pytest.approx([relative_h[:2].mean(), relative_h[2:].mean()])


def test_aicc_is_that_of_hurvich_and_tsai():
    law = fit("power-floor", {"params": N}, LOSS, objective="squared-log")
    n, k = len(law.residuals), 4  # three parameters and the noise
    expected = n * np.log(law.objective.value / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)
    assert n == law.df + 3
    assert aicc(law) == pytest.approx(expected)


def test_rows_of_the_same_inputs_count_once_by_design():
    by_design = data(cluster=GROUP)
    rows = fit_candidate(form("power-floor"), data(), data(), {}, GROUP)
    designs = fit_candidate(form("power-floor"), data(), by_design, {}, GROUP)
    clustered = fit("power-floor", {"params": N}, LOSS, cluster=by_design.cluster, objective="squared-log")
    assert designs.criterion == pytest.approx(aicc(clustered))
    assert clustered.df == 8 - 3
    assert rows.fit.df == 16 - 3
    assert rows.criterion != designs.criterion


def test_a_refusal_is_a_reason_and_no_error_is_measured():
    flat = 3 + 0.001 * np.random.default_rng(1).standard_normal(16)
    splits = {"largest": [N >= 1e8]}
    refused = fit_candidate(form("power-floor"), data(flat), data(flat), splits, GROUP)
    assert isinstance(refused.fit, Refusal)
    assert refused.fit.what
    assert refused.errors == {}
    # Control: the same call on runs that determine the law.
    kept = fit_candidate(form("power-floor"), data(), data(), splits, GROUP)
    assert isinstance(kept.fit, Fit)
    assert set(kept.errors) == {"largest"}


def test_a_split_that_hides_too_much_is_left_out_with_its_reason():
    splits = {"largest": [N > 1e6], "folds": [N >= 1e9]}
    candidate = fit_candidate(form("power-floor"), data(), data(), splits, GROUP)
    assert set(candidate.errors) == {"folds"}
    assert candidate.left_out[0].startswith("largest: ")
