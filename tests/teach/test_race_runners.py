"""The five runners: the loops are the LSTM layer, attention alone is its formula, the counts are exact."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from isoloss.teach.race import counts
from isoloss.teach.race.counts import ALONE, BLOCK, FUSED, LSTM, NAIVE, RUNNERS
from isoloss.teach.race.runners import Entry, entries, lstm_layer, naive_loop

T, D, B = 9, 32, 2


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(1)


def outputs(entry: Entry, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Output and the gradients of input and weights."""
    x = x.clone().requires_grad_()
    y = entry.forward(x)
    gradient = torch.linspace(-1, 1, y.numel()).view(y.shape)
    return y, list(torch.autograd.grad(y, [x, *entry.weights], gradient))


def agree(a: tuple, b: tuple) -> bool:
    pairs = zip([a[0], *a[1]], [b[0], *b[1]], strict=True)
    return all(torch.allclose(p, q, atol=1e-5, rtol=1e-4) for p, q in pairs)


@pytest.mark.parametrize("one", [NAIVE, FUSED])
def test_a_loop_computes_what_the_lstm_layer_computes_and_its_gradients(one: counts.Runner) -> None:
    entry_of = entries(T, D, B, "cpu")
    x_TBD = torch.randn(T, B, D)
    assert agree(outputs(entry_of[one.name], x_TBD), outputs(entry_of[LSTM.name], x_TBD))


def test_a_loop_with_two_gates_swapped_is_found_out() -> None:
    layer, x_TBD = lstm_layer(D), torch.randn(T, B, D)
    whole = layer(x_TBD)[0]
    assert torch.allclose(naive_loop(layer, x_TBD), whole, atol=1e-5)
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.cat([layer.weight_hh_l0[D:], layer.weight_hh_l0[:D]]))
    assert not torch.allclose(naive_loop(layer, x_TBD), whole, atol=1e-3)


def nodes(y: torch.Tensor) -> Iterator[torch.autograd.graph.Node]:
    """Every node behind ``y``, each once."""
    seen, waiting = set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting.extend(inner for inner, _ in node.next_functions)


def slices(y: torch.Tensor) -> int:
    return sum(node.name().startswith(("SelectBackward", "SliceBackward")) for node in nodes(y))


@pytest.mark.parametrize("one", [NAIVE, FUSED])
def test_no_loop_slices_a_token_out_of_the_whole(one: counts.Runner) -> None:
    """Each slice's backward would fill a tensor of the whole's size: T^2 work."""
    entry = entries(T, D, B, "cpu")[one.name]
    y = entry.forward(torch.randn(T, B, D, requires_grad=True))
    assert slices(y) == 0
    assert sum(node.name().startswith("UnbindBackward") for node in nodes(y)) == 1


def test_slicing_in_a_loop_would_be_counted() -> None:
    z = torch.randn(T, B, D, requires_grad=True)
    assert slices(torch.stack([z[t] for t in range(T)])) == T


def test_attention_alone_is_its_formula() -> None:
    entry = entries(T, D, B, "cpu")[ALONE.name]
    x_KBTD = torch.randn(1, B, T, D)
    q, k, v = ((x_KBTD[0] @ w[0]).detach().double().numpy() for w in entry.weights)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(D)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    output = entry.forward(x_KBTD)[0].detach().numpy()
    assert np.allclose(output, weights @ v, atol=1e-5)
    assert not np.allclose(output, np.tril(weights) @ v, atol=1e-2)  # it sees the future: no mask


def test_attention_alone_sees_the_future_and_the_block_does_not() -> None:
    entry_of = entries(T, D, B, "cpu")
    x = torch.randn(1, B, T, D)
    later = x.clone()
    later[:, :, -1] += 1.0
    for one, sees in ((ALONE, True), (BLOCK, False)):
        forward = entry_of[one.name].forward
        assert torch.allclose(forward(x)[:, :, 0], forward(later)[:, :, 0], atol=1e-6) is not sees


def counted(one: counts.Runner, *, backward: bool = False) -> int:
    # On the meta device the LSTM layer is made of plain matmuls; fused kernels are opaque to the counter.
    entry = entries(T, D, B, "meta")[one.name]
    x = torch.randn(entry.shape, requires_grad=True, device="meta")
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        y = entry.forward(x)
        if backward:
            y.backward(torch.ones_like(y))
    return counter.get_total_flops()


@pytest.mark.parametrize("one", RUNNERS, ids=lambda one: one.name)
def test_flops_are_what_pytorch_counts(one: counts.Runner) -> None:
    assert counts.flops_square(one, T, D, B) == counted(one)
    assert counts.flops_square(one, T + 1, D, B) != counted(one)


@pytest.mark.parametrize("one", [ALONE, BLOCK], ids=lambda one: one.name)
def test_backward_costs_twice_as_much_again(one: counts.Runner) -> None:
    assert 3 * counts.flops_square(one, T, D, B) == counted(one, backward=True)


def test_the_mask_halves_the_scores_of_a_block_and_of_nothing_else() -> None:
    for one in RUNNERS:
        saved = counts.flops_square(one, T, D, B) - counts.flops(one, T, D, B)
        assert saved == (B * T * 2 * (T - 1) * D if one == BLOCK else 0)


@pytest.mark.parametrize("one", RUNNERS, ids=lambda one: one.name)
def test_weights_are_the_layers_own(one: counts.Runner) -> None:
    entry = entries(T, D, B, "cpu")[one.name]
    assert counts.weights(one, D) == sum(weight.numel() for weight in entry.weights)


def chain(y: torch.Tensor) -> int:
    """The most matmuls on any way back through the graph."""
    order, longest = list(nodes(y)), {}
    waiting = [(y.grad_fn, False)]
    while waiting:
        node, ready = waiting.pop()
        if node in longest:
            continue
        inner = [n for n, _ in node.next_functions if n is not None]
        if ready:
            matmul = node.name().startswith(("AddmmBackward", "MmBackward", "BmmBackward"))
            longest[node] = matmul + max((longest[n] for n in inner), default=0)
        else:
            waiting.append((node, True))
            waiting.extend((n, False) for n in inner)
    assert len(longest) == len(order)
    return longest[y.grad_fn]


@pytest.mark.parametrize("one", [NAIVE, FUSED, ALONE, BLOCK], ids=lambda one: one.name)
@pytest.mark.parametrize("length", [5, 9])
def test_depth_is_the_longest_chain_of_matmuls(one: counts.Runner, length: int) -> None:
    entry = entries(length, D, B, "cpu")[one.name]
    with sdpa_kernel(SDPBackend.MATH):
        longest = chain(entry.forward(torch.randn(entry.shape, requires_grad=True)))
    # Fused: a step's addmm holds both its sum and its matmul, so the inputs' matmul seems to come before.
    assert counts.depth(one, length) == longest - (one == FUSED)
