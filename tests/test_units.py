"""Counting rules against numbers worked out from the papers' formulas, typed in here."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoloss import units

# Kaplan et al. 2020 eq. 2.1 with d_ff = 4 d_model, d_attn = d_model: (n_layer, d_model) -> N as quoted.
KAPLAN = [
    ((2, 128), 3.93e5, 3),
    ((6, 4288), 1.324e9, 4),
    ((48, 1600), 1.475e9, 4),
    ((207, 768), 1.465e9, 4),
    ((36, 1280), 7.08e8, 3),
    ((1, 8), 768, 3),
]


@pytest.mark.parametrize(("shape", "params", "digits"), KAPLAN)
def test_blocks_are_counted_as_kaplan_does(shape, params, digits):
    n_layer, d_model = shape
    counted = n_layer * units.block_params(d_model, 4 * d_model, d_model)
    assert float(f"{counted:.{digits}g}") == params
    assert counted == 12 * n_layer * d_model**2


def test_a_block_with_free_widths_and_gates():
    # 4 x 10 x 6 attention weights; 2 x 10 x 7 of a plain, 3 x 10 x 7 of a gated feed-forward.
    assert units.block_params(10, 7, 6) == 240 + 140
    assert units.block_params(10, 7, 6, gated=True) == 240 + 210


# Widths that give LSTMs of 400K, 2M and 200M weights with d_in = h: h = sqrt(N / (8 n)).
LSTM_WIDTHS = [
    (4e5, {1: 224, 2: 158, 4: 112}),
    (2e6, {1: 500, 2: 354, 4: 250}),
    (2e8, {1: 5000, 2: 3536, 4: 2500}),
]


@pytest.mark.parametrize(("params", "widths"), LSTM_WIDTHS)
def test_lstms_of_the_published_sizes_have_the_widths_derived_for_them(params, widths):
    for n_layer, width in widths.items():
        weights = n_layer * (units.lstm_layer_params(width, width) - 8 * width)
        assert weights == pytest.approx(params, rel=0.02)
        assert round(math.sqrt(params / (8 * n_layer))) == width


def test_an_lstm_layer_has_four_gates_and_two_biases_each():
    assert units.lstm_layer_params(3, 5) == 4 * (5 * 3 + 5 * 5) + 4 * 2 * 5
    assert units.lstm_layer_flops(3, 5) == 2 * 4 * (5 * 3 + 5 * 5)


def test_causal_attention_is_the_mean_over_positions():
    context, d_attn = 16, 12
    # Position t: t dot products of d_attn, and t weighted values of d_attn; two FLOPs a multiply-add.
    by_position = [2 * 2 * t * d_attn for t in range(1, context + 1)]
    assert units.attention_flops(context, d_attn) == sum(by_position) / context
    # Kaplan rounds to 2 s d_attn; the full square is twice that.
    assert units.attention_flops(10**6, d_attn) == pytest.approx(2 * 10**6 * d_attn, rel=1e-5)


def test_the_head_costs_a_multiply_add_for_each_weight():
    assert units.head_flops(768, 50257) == 2 * 768 * 50257


def test_flops_under_both_rules():
    # GPT-2 small, tied, 1,024 positions: 12 layers of 12 d^2.
    d, context, vocab = 768, 1024, 50257
    params = 12 * 12 * d * d
    count = units.Count(
        params=params,
        params_executed=params,
        embedding=vocab * d + context * d,
        matmul_flops=2.0 * params,
        attention_flops=12 * units.attention_flops(context, d),
        head_flops=units.head_flops(d, vocab),
    )
    assert count.params == count.params_executed == 84_934_656
    assert count.params_total == 84_934_656 + 38_597_376 + 786_432
    assert count.flops_6nd(1e9) == 6 * 84_934_656 * 1e9
    forward = 2 * 84_934_656 + 12 * 2 * 1025 * 768 + 2 * 768 * 50257
    assert count.flops_exact(1e9) == 3 * forward * 1e9
    assert count.flops_exact(1e9) > count.flops_6nd(1e9)


def test_a_loop_counts_once_as_unique_and_once_per_pass_as_executed():
    count = units.Count(100, 400, 50, 800.0, 0.0, 0.0)
    assert (count.params, count.params_executed, count.params_total) == (100, 400, 150)
    assert count.flops_6nd(2) == 6 * 400 * 2


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 4000), st.booleans())
def test_more_width_is_more_parameters(d_model, d_ff, d_attn, gated):
    count = units.block_params(d_model, d_ff, d_attn, gated)
    assert units.block_params(d_model + 1, d_ff, d_attn, gated) > count
    assert units.block_params(d_model, d_ff + 1, d_attn, gated) > count
    assert units.block_params(d_model, d_ff, d_attn + 1, gated) > count
    assert units.block_params(d_model, d_ff, d_attn, True) > units.block_params(d_model, d_ff, d_attn, False)


@given(st.integers(1, 4000), st.integers(1, 4000))
def test_more_width_is_a_bigger_lstm(d_in, d_hidden):
    for rule in (units.lstm_layer_params, units.lstm_layer_flops):
        assert rule(d_in + 1, d_hidden) > rule(d_in, d_hidden)
        assert rule(d_in, d_hidden + 1) > rule(d_in, d_hidden)
    assert units.lstm_layer_params(d_in, d_hidden) > units.lstm_layer_flops(d_in, d_hidden) / 2


@given(st.floats(1, 1e15), st.floats(1.01, 10))
def test_flops_grow_in_proportion_to_tokens(tokens, factor):
    count = units.Count(100, 300, 50, 600.0, 7.0, 11.0)
    for rule in (count.flops_6nd, count.flops_exact):
        assert rule(tokens * factor) == pytest.approx(rule(tokens) * factor)
        assert rule(tokens * factor) > rule(tokens)


def test_bits_per_byte_divides_sums():
    # A token of 1 byte at 1 bit and one of 3 bytes at 5 bits: 6 bits over 4 bytes, not the mean of 1 and 5/3.
    nats = (1 + 5) * math.log(2)
    assert units.bits_per_byte(nats, 1 + 3) == pytest.approx(1.5)
