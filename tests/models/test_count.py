"""Every counting rule against brute force: counting modules, and FLOPs by PyTorch's own counter."""

import dataclasses

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from isoloss import units
from isoloss.models import count, family, shape_of
from isoloss.models.layers import Embedding

VOCAB, CONTEXT = 90, 32

CASES = [
    ("transformer", {"n_layer": 2, "d_model": 24, "n_head": 2}),
    ("transformer", {"n_layer": 3, "d_model": 32, "n_head": 3, "d_head": 4, "d_ff": 50, "tied": False}),
    (
        "transformer",
        {"n_layer": 1, "d_model": 16, "n_head": 2, "activation": "swiglu", "positions": "learned"},
    ),
    ("lstm", {"n_layer": 1, "d_model": 24}),
    ("lstm", {"n_layer": 4, "d_model": 16}),
    ("looped", {"n_layer": 2, "d_model": 24, "n_head": 2, "recurrence": 1}),
    ("looped", {"n_layer": 2, "d_model": 24, "n_head": 2, "recurrence": 4}),
    (
        "looped",
        {"n_layer": 1, "d_model": 16, "n_head": 1, "recurrence": 3, "exits": "last", "injection": True},
    ),
    ("looped", {"n_layer": 2, "d_model": 16, "n_head": 2, "recurrence": 2, "n_prelude": 1, "n_coda": 2}),
]


def built(name, values):
    shape = shape_of(name, values)
    return shape, family(name).build(shape, VOCAB, CONTEXT), count(family(name), shape, VOCAB, CONTEXT)


@pytest.mark.parametrize(("name", "values"), CASES)
def test_parameters_equal_the_modules(name, values):
    _, model, counted = built(name, values)
    total = sum(p.numel() for p in model.parameters())
    tables = sum(
        p.numel()
        for m in model.modules()
        if isinstance(m, Embedding | torch.nn.Embedding)
        for p in m.parameters()
    )
    head = getattr(getattr(model, "vocabulary", None), "head", None)
    tables += head.weight.numel() if head is not None else 0
    assert counted.params_total == total
    assert counted.params == total - tables
    assert counted.params_executed >= counted.params


def counted_flops(model, tokens):
    # Fused attention is opaque to the counter; its plain form is not.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(tokens)
    return counter.get_total_flops()


@pytest.mark.parametrize(("name", "values"), [case for case in CASES if case[0] != "lstm"])
def test_flops_equal_the_counter(name, values):
    """PyTorch counts attention as the full square, 4 T^2 d_attn; the causal mean is 2 T (T + 1) d_attn."""
    shape, model, counted = built(name, values)
    flops = counted_flops(model, torch.randint(VOCAB, (1, 1, CONTEXT))) / CONTEXT
    layers = getattr(shape, "executed_layers", getattr(shape, "n_layer", 0))
    full_square = layers * 4 * CONTEXT * shape.d_attn
    assert counted.attention_flops == layers * 2 * (CONTEXT + 1) * shape.d_attn
    assert counted.matmul_flops + counted.head_flops + full_square == pytest.approx(flops, rel=1e-12)
    assert counted.flops_exact(1) == 3 * (counted.matmul_flops + counted.head_flops + counted.attention_flops)


@pytest.mark.parametrize(("name", "values"), [case for case in CASES if case[0] == "lstm"])
def test_lstm_flops_equal_a_plain_loop(name, values):
    """The fused kernel is opaque to the counter, so the same matmuls are made one by one."""
    shape, model, counted = built(name, values)
    x_TD = torch.randn(CONTEXT, shape.d_model)
    with FlopCounterMode(display=False) as counter:
        for layer in model.layers:
            h_D = torch.zeros(1, shape.d_model)
            for t in range(CONTEXT):
                gates = x_TD[t : t + 1] @ layer.weight_ih_l0.T + h_D @ layer.weight_hh_l0.T
                h_D = gates[:, : shape.d_model].tanh()
        x_TD @ model.embedding.weight.T
    assert counted.matmul_flops + counted.head_flops == pytest.approx(
        counter.get_total_flops() / CONTEXT, rel=1e-12
    )


def test_executed_parameters_count_each_pass():
    once = count(family("looped"), shape_of("looped", CASES[5][1]), VOCAB, CONTEXT)
    four = count(family("looped"), shape_of("looped", CASES[6][1]), VOCAB, CONTEXT)
    gate = 24 + 1
    assert four.params == once.params + gate
    assert four.params_executed == 4 * once.params_executed + 3 * gate


def test_a_family_without_formula_is_counted_on_the_meta_device():
    plain = dataclasses.replace(family("transformer"), count=None)
    shape = shape_of("transformer", CASES[0][1])
    by_hand, by_counter = (
        count(family("transformer"), shape, VOCAB, CONTEXT),
        count(plain, shape, VOCAB, CONTEXT),
    )
    assert by_counter.params == by_hand.params
    assert by_counter.params_total == by_hand.params_total
    square = shape.n_layer * 4 * CONTEXT * shape.d_attn
    everything = by_hand.matmul_flops + by_hand.head_flops + square
    assert by_counter.flops_exact(1) == pytest.approx(3 * everything)


def test_kaplan_count_is_exact_here():
    shape = shape_of("transformer", {"n_layer": 6, "d_model": 64, "n_head": 4})
    assert count(family("transformer"), shape, VOCAB, CONTEXT).params == 12 * 6 * 64**2


def test_attention_conventions_differ_by_two():
    """Causal mean against full square: 2 s d_attn per layer and token, but for attention to oneself."""
    assert 4 * 1024 * 64 - units.attention_flops(1024, 64) == 2 * (1024 - 1) * 64
