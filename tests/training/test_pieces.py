"""Losses of logits that are never all held: the plain ones to rounding, in a fraction of the memory."""

import pytest
import torch

from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import set_pieces
from isoloss.training.distributed import checkpoint_activations
from isoloss.training.objective import last_exit, losses, pieces_of_logits
from isoloss.training.setup import set_up
from isoloss.training.step import forward

VOCAB, CONTEXT = 400, 24
SHAPES = {
    "transformer": {"n_layer": 1, "d_model": 8, "n_head": 2},
    "looped": {"n_layer": 1, "d_model": 8, "n_head": 2, "recurrence": 3, "n_coda": 1},
    "untied": {"n_layer": 1, "d_model": 8, "n_head": 2, "tied": False},
}


def loss_and_gradients(name, pieces):
    kind = name if name == "looped" else "transformer"
    model = build_cohort(family(kind), shape_of(kind, SHAPES[name]), VOCAB, CONTEXT, [0, 1])
    set_pieces(model, pieces)
    x_KBT, y_KBT = torch.randint(VOCAB, (2, 2, 3, CONTEXT), generator=torch.Generator().manual_seed(0))
    largest = 0

    def note(tensor):
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = losses(model(x_KBT), y_KBT)
        loss.total.mean().backward()
    assert torch.equal(last_exit(model(x_KBT), y_KBT), loss.exits[-1])
    return loss.parts(), [p.grad for p in model.parameters()], largest


@pytest.mark.parametrize("pieces", [2, 5, CONTEXT])
@pytest.mark.parametrize("name", SHAPES)
def test_loss_and_gradient_are_the_plain_ones(name, pieces):
    plain_parts, plain_gradients, whole = loss_and_gradients(name, 1)
    parts, gradients, kept = loss_and_gradients(name, pieces)
    for part, loss_KBT in plain_parts.items():
        torch.testing.assert_close(parts[part], loss_KBT, rtol=1e-5, atol=1e-5)
    for gradient, plain in zip(gradients, plain_gradients, strict=True):
        torch.testing.assert_close(gradient, plain, rtol=1e-4, atol=1e-6)
    assert whole == 2 * 3 * CONTEXT * VOCAB, "control: the logits are what is largest"
    assert kept <= whole / min(pieces, 5) + VOCAB * 2 * 3


def test_a_piece_that_is_left_out_would_be_seen():
    _, plain_gradients, _ = loss_and_gradients("transformer", 1)
    model = build_cohort(
        family("transformer"), shape_of("transformer", SHAPES["transformer"]), VOCAB, CONTEXT, [0, 1]
    )
    x_KBT, y_KBT = torch.randint(VOCAB, (2, 2, 3, CONTEXT), generator=torch.Generator().manual_seed(0))
    total = losses(model(x_KBT), y_KBT).total
    (total[..., : CONTEXT - 1].sum() / total.numel()).backward()
    with pytest.raises(AssertionError):
        torch.testing.assert_close(
            [p.grad for p in model.parameters()], plain_gradients, rtol=1e-4, atol=1e-6
        )


def test_pieces_are_part_of_the_one_graph():
    torch.compiler.reset()
    model = build_cohort(family("looped"), shape_of("looped", SHAPES["looped"]), VOCAB, CONTEXT, [0])
    set_pieces(model, 3)
    x_KBT, y_KBT = torch.randint(VOCAB, (2, 1, 3, CONTEXT), generator=torch.Generator().manual_seed(0))
    whole = torch.compile(forward, fullgraph=True, dynamic=False, backend="eager")
    torch.testing.assert_close(whole(model, x_KBT, y_KBT).total, losses(model(x_KBT), y_KBT).total)


def looks_at_generators(monkeypatch, *, every="none", draws=False):
    """How often a step asks for the state of torch's own generators, which no CUDA graph can hold."""
    asked = []

    def state(genuine=torch.get_rng_state):
        asked.append(1)
        return genuine()

    model = build_cohort(family("looped"), shape_of("looped", SHAPES["looped"]), VOCAB, CONTEXT, [0])
    set_pieces(model, 3)
    if every != "none":
        checkpoint_activations(model, every, draws=draws)
    x_KBT = torch.zeros(1, 2, CONTEXT, dtype=torch.long)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "get_rng_state", state)
        losses(model(x_KBT), x_KBT).total.mean().backward()
    return len(asked)


@pytest.mark.parametrize("every", ["none", "block", "loop"])
def test_what_is_computed_again_can_be_captured(monkeypatch, every):
    assert looks_at_generators(monkeypatch, every=every) == 0
    if every != "none":
        assert looks_at_generators(monkeypatch, every=every, draws=True) > 0, "control: as a user's family"


@pytest.mark.parametrize(
    ("logits", "memory", "pieces"), [(1, 16, 1), (2, 16, 1), (2.1, 16, 2), (16, 16, 8), (1000, 16, 500)]
)
def test_pieces_by_bytes(logits, memory, pieces):
    assert pieces_of_logits(logits * 2**30, memory * 2**30) == pieces


def test_a_small_run_is_whole_and_a_large_vocabulary_is_not(make_task, monkeypatch):
    setup = set_up(make_task("looped"))
    assert setup.first_state().model.vocabulary.pieces == 1
    monkeypatch.setattr("isoloss.training.device.CPU_BYTES", 8 * 4.0 * 32 * 16 * 3 * 300 / 2)
    assert setup.first_state().model.vocabulary.pieces == 2, "32 windows of 16 tokens, 3 exits, 300 words"
    set_pieces(setup.first_state().model, 1)
