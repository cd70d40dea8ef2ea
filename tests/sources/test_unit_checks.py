"""Checks of units, each on the smallest table that must alarm it; raw counts and nats alarm none."""

import polars as pl
import pytest
from run_tables import grid, kinds

from isoloss.errors import InputError
from isoloss.sources import columns_for, runs, unit_checks
from isoloss.sources.fits import check_flops, flops_rule

GOOD = {
    "params": [1e6, 1e7, 1e8, 1e9],
    "tokens": [2e7, 2e8, 2e9, 2e10],
    "loss": [5.0, 4.0, 3.2, 2.6],
}
CHECKS = (
    unit_checks.counts, unit_checks.tokens_per_param, unit_checks.loss, unit_checks.batch, unit_checks.flops
)  # fmt: skip


def issues(check, columns=None, *, mapping=None, **more):
    runs_read = runs(pl.DataFrame(GOOD | more if columns is None else columns), columns=mapping)
    return {issue.kind: (issue.severity, issue.rows) for issue in check(runs_read)}


@pytest.mark.parametrize("check", CHECKS)
def test_raw_counts_and_nats_alarm_none(check):
    steps = [tokens / 1e6 for tokens in GOOD["tokens"]]
    flops = [6 * n * d for n, d in zip(GOOD["params"], GOOD["tokens"], strict=True)]
    assert issues(check, flops=flops, steps=steps, batch_tokens=[1e6] * 4) == {}


def test_counts_in_billions_are_refused_whole_or_in_part():
    assert issues(unit_checks.counts, params=[0.1, 1.0, 7.0, 70.0]) == {"params-unit": ("refuse", ())}
    assert issues(unit_checks.counts, params=[7.0, 70.0, 1e8, 1e9]) == {"mixed-units": ("refuse", (1, 2))}


def test_the_ratio_tells_which_column_is_in_another_unit():
    assert issues(unit_checks.tokens_per_param, tokens=[600.0, 6e3, 6e4, 6e5]) == {
        "tokens-unit": ("warn", ())
    }
    assert issues(unit_checks.tokens_per_param, tokens=[6.0, 60.0, 600.0, 6e3]) == {
        "tokens-unit": ("refuse", ())
    }
    in_thousands = issues(unit_checks.tokens_per_param, params=[600.0, 6e3, 3e4, 6e4])
    assert in_thousands == {"params-unit": ("warn", ())}


def test_a_loss_named_in_bits_or_as_large_as_a_perplexity_is_doubted():
    named = {"N": GOOD["params"], "D": GOOD["tokens"], "val bpb": GOOD["loss"]}
    assert set(issues(unit_checks.loss, named, mapping={"loss": "val bpb"})) == set()
    named["val ppl"] = named.pop("val bpb")
    assert set(issues(unit_checks.loss, named, mapping={"loss": "val ppl"})) == {"loss-is-perplexity"}
    shares = {"N": GOOD["params"], "D": GOOD["tokens"], "top1_acc": GOOD["loss"]}
    assert set(issues(unit_checks.loss, shares, mapping={"loss": "top1_acc"})) == {"loss-is-accuracy"}
    assert set(issues(unit_checks.loss, loss=[90.0, 50.0, 30.0, 20.0])) == {"loss-is-perplexity"}
    assert set(issues(unit_checks.loss, vocab=[16.0] * 4)) == {"loss-in-bits"}


def test_a_batch_in_sequences_is_known_by_its_factor():
    sequences = {"steps": [tokens / 2**20 for tokens in GOOD["tokens"]], "batch_tokens": [512.0] * 4}
    batch_issues = list(unit_checks.batch(runs(pl.DataFrame(GOOD | sequences))))
    assert [issue.kind for issue in batch_issues] == ["batch-unit"]
    assert "2048 times" in batch_issues[0].message
    one_wrong = {"steps": [20.0, 200.0, 2e3, 3e4], "batch_tokens": [1e6] * 4}
    assert issues(unit_checks.batch, **one_wrong) == {"batch-unit": ("warn", (4,))}


@pytest.mark.parametrize(
    ("factor", "kind", "words"),
    [
        (1 / 6, "flops-rule", "N D"),
        (1 / 3, "flops-rule", "the forward pass alone"),
        (4 / 3, "flops-rule", "with recomputation"),
        (1e-15, "flops-unit", "petaFLOP"),
        (1 / 8.64e19, "flops-unit", "PF-days"),
    ],
)
def test_flops_of_another_rule_or_unit_are_named(factor, kind, words):
    flops = [factor * 6 * n * d for n, d in zip(GOOD["params"], GOOD["tokens"], strict=True)]
    flops_issues = list(unit_checks.flops(runs(pl.DataFrame(GOOD | {"flops": flops}))))
    assert [issue.kind for issue in flops_issues] == [kind]
    assert words in flops_issues[0].message


@pytest.mark.parametrize("factors", [(1.3, 2.0), (1.0, 1.4), (0.5, 1.0)])
def test_flops_that_are_6nd_by_no_constant_are_told_where_one_asks_by_flops(factors):
    low, high = factors
    size = pl.col("params").log10()
    share = (size - size.min()) / (size.max() - size.min())
    table = grid().with_columns(C=6 * pl.col("params") * pl.col("tokens") * (high - (high - low) * share))
    data = columns_for("chinchilla", table)
    assert data.warnings == ()  # exact FLOPs are no fault of a table
    with pytest.raises(InputError, match=f"C is {low:g} to {high:g} times 6 params tokens from row to row"):
        check_flops(data.source, data.inputs)


def test_control_flops_within_a_tenth_and_those_of_loops_are_taken():
    loops = pl.Series("recurrence", [1, 2, 4, 8, 4] * 5)
    for factor in (1.0, pl.Series([1.0, 1.05, 0.95, 1.02, 1.09] * 5)):
        flops = 6 * pl.col("params") * pl.col("tokens") * factor
        check_flops(columns_for("chinchilla", grid().with_columns(flops=flops)).source, ())
        looped = grid().with_columns(loops, flops=flops * loops)
        check_flops(columns_for("chinchilla", looped).source, ())


@pytest.mark.parametrize("count", ["params", "params_total", "params_executed"])
def test_flops_are_held_against_the_count_that_is_asked_for(count):
    own, times = pl.col("params"), pl.Series("recurrence", [1, 2, 4, 8, 4] * 5)
    counted = {
        "params": own * times,
        "params_total": own * times + 5e7 * times,
        "params_executed": own * times,
    }
    table = grid().with_columns(times, params_total=own + 5e7, params_executed=own * times)
    for factor, words in ((1.0, ""), (1.5, f"C is 1.5 times 6 {count} tokens in every row")):
        C = factor * 6 * counted[count] * pl.col("tokens")
        data = columns_for("chinchilla", table.with_columns(C=C), count=count)
        assert flops_rule(data.source) == words
    other = "params" if count == "params_total" else "params_total"
    data = columns_for("chinchilla", table.with_columns(C=C), count=other)
    assert "from row to row" in flops_rule(data.source)


def test_executed_parameters_count_each_loop_already():
    source = {"count": "params_executed"}
    check_flops(source, ("params", "tokens"))
    with pytest.raises(InputError, match="params_executed counts each loop already"):
        check_flops(source, ("params", "tokens", "recurrence"))


def test_flops_in_pf_days_are_what_is_wrong_where_tokens_follow_from_them():
    days = grid().with_columns(flops=6 * pl.col("params") * pl.col("tokens") / 8.64e19).drop("tokens")
    with pytest.raises(InputError, match=r"(?s)flops goes to .*PF-days, or exaFLOP.*'flops \(PF-days\)'"):
        columns_for("chinchilla", days)
    named = columns_for("chinchilla", days.rename({"flops": "flops (PF-days)"}))
    assert kinds(named.runs) == set()
