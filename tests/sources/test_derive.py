"""Columns that follow from others: values, the rules that made them, and chains of rules."""

import math

import polars as pl
import pytest

from isoloss.sources.derive import derive, rules


def derived(name, columns, **options):
    return derive(name, pl.DataFrame(columns), rules(**options))


@pytest.mark.parametrize(
    ("name", "columns", "value", "rule"),
    [
        ("tokens", {"steps": [10.0], "batch_tokens": [512.0]}, 5120.0, "tokens = steps * batch_tokens"),
        ("tokens", {"unique_tokens": [1e9], "epochs": [4.0]}, 4e9, "tokens = unique_tokens * epochs"),
        ("tokens", {"flops": [6e18], "params": [1e8]}, 1e10, "tokens = flops / (6 params)"),
        ("flops", {"params": [1e8], "tokens": [1e10]}, 6e18, "flops = 6 params tokens"),
        ("params", {"flops": [6e18], "tokens": [1e10]}, 1e8, "params = flops / (6 tokens)"),
        ("unique_tokens", {"tokens": [4e9], "epochs": [4.0]}, 1e9, "unique_tokens = tokens / epochs"),
    ],
)
def test_each_rule_gives_its_value_and_says_so(name, columns, value, rule):
    frame, rules_used = derived(name, columns)
    assert frame[name].to_list() == [pytest.approx(value)]
    assert rules_used == {name: rule}


def test_rules_are_chained_and_every_link_is_named():
    columns = {"flops": [6e18], "steps": [10.0], "batch_sequences": [8.0], "context": [64.0]}
    frame, rules_used = derived("params", columns)
    assert frame["params"].to_list() == [pytest.approx(6e18 / (6 * 5120))]
    assert list(rules_used) == ["batch_tokens", "tokens", "params"]


def test_what_is_there_needs_no_rule_and_what_cannot_follow_is_none():
    assert derived("tokens", {"tokens": [1.0]})[1] == {}
    assert derived("tokens", {"params": [1.0]}) is None
    assert derived("flops", {"params": [1.0]}) is None


def test_a_loop_of_parameters_is_split_only_where_it_is_passed_twice():
    columns = {"params": [10.0, 10.0], "params_executed": [34.0, 10.0], "recurrence": [4.0, 1.0]}
    frame, _ = derived("params_once", columns)
    assert frame["params_recurrent"].to_list() == [8.0, 10.0]
    assert frame["params_once"].to_list() == [2.0, 0.0]


def test_bits_and_embeddings_follow_only_once_their_constants_are_given():
    bits, total = {"bits_per_byte": [0.8]}, {"params_total": [1e8], "vocab": [5e4], "d_model": [512.0]}
    assert derived("loss", bits) is None
    assert derived("loss", bits, bytes_per_token=4.0)[0]["loss"].to_list() == [0.8 * math.log(2) * 4]
    assert derived("params", total) is None
    assert derived("params", total, tied_embeddings=True)[0]["params"].to_list() == [1e8 - 2.56e7]
    assert derived("params", total, tied_embeddings=False)[0]["params"].to_list() == [1e8 - 5.12e7]
