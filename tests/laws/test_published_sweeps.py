"""IsoFLOP on published sweeps: the exponents that their papers print, under each counting rule."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from isoloss.laws.isoflop import TokenRule, isoflop


@pytest.fixture(scope="module")
def counting_rules():
    path = Path(__file__).parents[2] / "benchmarks" / "counting_rules.py"
    spec = importlib.util.spec_from_file_location("counting_rules", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def porian(counting_rules, run_tables):
    return counting_rules.porian(run_tables)


def test_porians_chain_of_choices_on_refinedweb(porian):
    chain = [sweep_fit.params.exponent for corpus, _, sweep_fit, *_ in porian if corpus == "RefinedWeb"][:5]
    assert chain == pytest.approx([0.834, 0.701, 0.604, 0.571, 0.497], abs=0.005)


def test_porians_exponents_plain_and_weighted(porian):
    assert len(porian) == 15
    for _, step, sweep_fit, plain, weighted in porian:
        assert sweep_fit.params.exponent == pytest.approx(plain, abs=0.005), step
        assert sweep_fit.params_weighted.exponent == pytest.approx(weighted, abs=0.005), step
        assert sweep_fit.token_rule is TokenRule.OBEYED


def test_a_parabola_over_porians_wide_grids_reads_something_else(porian):
    sweep_fit = porian[0][2]
    C, N, loss = (
        np.concatenate(
            [np.broadcast_to(getattr(budget, name), len(budget.sizes)) for budget in sweep_fit.budgets]
        )
        for name in ("flops", "sizes", "losses")
    )
    assert abs(isoflop(C, N, loss, method="parabola").params.exponent - 0.834) > 0.03


def test_nanochat_under_three_counting_rules(counting_rules, run_tables):
    for rule, N, D, _ in counting_rules.nanochat(run_tables):
        assert (N.exponent, D.exponent) == pytest.approx(counting_rules.PUBLISHED_NANOCHAT[rule], abs=0.005)


def test_the_benchmark_prints_both_tables(counting_rules, run_tables, capsys):
    counting_rules.main(run_tables)
    printed = capsys.readouterr().out
    assert "OpenWebText2" in printed
    assert "0.834 (" in printed
    assert "blocks alone" in printed
