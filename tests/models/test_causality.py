"""No loss may depend on a later token, and every loss depends on earlier ones: shown by gradients."""

import pytest
import torch

from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import OneByOne

VOCAB, CONTEXT, AT = 40, 12, (0, 5, 11)

MODELS = {
    "transformer, rotary": ("transformer", {"n_layer": 2, "d_model": 16, "n_head": 2}),
    "transformer, learned, swiglu, untied": (
        "transformer",
        {"n_layer": 2, "d_model": 16, "n_head": 3, "d_head": 4, "d_ff": 20}
        | {"positions": "learned", "activation": "swiglu", "tied": False},
    ),
    "lstm, 1 layer": ("lstm", {"n_layer": 1, "d_model": 16}),
    "lstm, 4 layers": ("lstm", {"n_layer": 4, "d_model": 16}),
    "lstm, bare": ("lstm", {"n_layer": 2, "d_model": 16, "residual": False, "norm": False}),
    "looped": ("looped", {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 3}),
    "looped, iso-depth": (
        "looped",
        {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 2, "n_prelude": 1, "n_coda": 1}
        | {"injection": True, "exits": "last"},
    ),
}


def input_gradients(model, x_KBT, at):
    """|d logits at position ``at`` / d embedding of each position|, (X, T): one row per exit and gate.

    The embedding's output is replaced by a leaf, so that the tied head does not count as an input.
    """
    leaves = []

    def as_leaf(module, args, output):
        if not leaves:  # the first embedding is the tokens'; learned positions come after
            leaves.append(output.detach().requires_grad_())
            return leaves[0]
        return output

    modules = [m for m in model.modules() if type(m).__name__ == "Embedding"]
    handle = modules[0].register_forward_hook(as_leaf)
    output = model(x_KBT)
    handle.remove()
    tensors = list(output.logits) + [p[..., None] for p in output.exit_log_p or []]
    rows = []
    for tensor_KBTV in tensors:
        (gradient,) = torch.autograd.grad(
            (tensor_KBTV[:, :, at] * torch.randn_like(tensor_KBTV[:, :, at])).sum(),
            leaves[0],
            retain_graph=True,
        )
        if isinstance(model, OneByOne):
            gradient = gradient.transpose(0, 1)  # the LSTM runs time first
        rows.append(gradient.reshape(-1, *gradient.shape[-2:]).abs().sum((0, 2)))
    return torch.stack(rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("at", AT)
def test_gradients_reach_back_and_never_forward(name, at):
    kind, values = MODELS[name]
    torch.manual_seed(0)
    model = build_cohort(family(kind), shape_of(kind, values), VOCAB, CONTEXT, [3]).train(False)
    if getattr(model, "gate", None) is not None:
        torch.nn.init.normal_(model.gate.weight)  # it starts at zero, where no gradient passes
    reach_XT = input_gradients(model, torch.randint(VOCAB, (1, 2, CONTEXT)), at)
    assert (reach_XT[:, at + 1 :] == 0).all(), "a later token was seen"
    assert (reach_XT[:, : at + 1] > 0).all(), "an earlier token was not seen"


def test_control_without_the_mask_the_test_fails(monkeypatch):
    genuine = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda q, k, v, is_causal: genuine(q, k, v)
    )
    kind, values = MODELS["transformer, rotary"]
    model = build_cohort(family(kind), shape_of(kind, values), VOCAB, CONTEXT, [3])
    reach_XT = input_gradients(model, torch.randint(VOCAB, (1, 2, CONTEXT)), 5)
    assert (reach_XT[:, 6:] > 0).all()
