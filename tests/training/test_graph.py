"""The step is one graph: nothing in it reads a number of the device, and every shape of it stays compiled."""

import pytest
import torch
from torch import _dynamo
from torch._dynamo.utils import counters

from isoloss.models import build_cohort, cohort, family, registry, shape_of
from isoloss.models.registry import Family
from isoloss.studies import spec
from isoloss.training.compiling import compiled
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe
from isoloss.training.step import forward, train_step

VOCAB, CONTEXT = 20, 6
SHAPES = {
    "transformer": {"n_layer": 1, "d_model": 8, "n_head": 2},
    "lstm": {"n_layer": 1, "d_model": 8},
    "looped": {"n_layer": 1, "d_model": 8, "n_head": 2, "recurrence": 2},
}
LARGE = {
    "transformer": {"n_layer": 12, "d_model": 768, "n_head": 12, "positions": "learned"},  # GPT-2, 124M
    "lstm": {"n_layer": 2, "d_model": 1024},
    "looped": {"n_layer": 4, "d_model": 1024, "n_head": 16, "recurrence": 4},
}


def members(name, count, shape=None, vocab=VOCAB, context=CONTEXT):
    model = build_cohort(
        family(name), shape_of(name, shape or SHAPES[name]), vocab, context, list(range(count))
    )
    return model, MemberAdamW(model, count, Recipe())


def batch(count):
    return torch.randint(VOCAB, (2, count, 4, CONTEXT), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def counting(monkeypatch):
    """A family like the LSTM that looks at a number in its forward pass."""

    class Counting(family("lstm").build):
        def forward(self, x_BT):
            return super().forward(x_BT) * (1.0 if x_BT.float().mean().item() > 0 else 2.0)

    kind = family("lstm")
    monkeypatch.setitem(registry._families, "counting", Family("counting", kind.shape, Counting, kind.count))
    monkeypatch.setitem(SHAPES, "counting", SHAPES["lstm"])
    return "counting"


@pytest.fixture
def traced():
    """Fresh compilations that trace the backward pass and recurrent kernels too."""
    torch.compiler.reset()
    with _dynamo.config.patch(trace_autograd_ops=True, allow_rnn=True):
        yield
    torch.compiler.reset()


def steps(step, name, count, updates=2):
    """Losses of some updates, and the weights after."""
    model, optimizer = members(name, count)
    x_KBT, y_KBT = batch(count)
    alive_K = torch.ones(count, dtype=torch.bool)
    rates = [0.01] * count
    losses = [step(model, optimizer, x_KBT, y_KBT, rates, alive_K)[0] for _ in range(updates)]
    return torch.stack(losses), list(model.parameters())


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["transformer", "lstm", "looped"])
def test_forward_backward_clipping_and_adamw_are_one_graph(name, count, traced):
    whole = torch.compile(train_step, fullgraph=True, dynamic=False, backend="eager")
    losses, weights = steps(whole, name, count)
    plain_losses, plain_weights = steps(train_step, name, count)
    torch.testing.assert_close(losses, plain_losses, rtol=1e-5, atol=1e-6)
    # Where a gradient is rounding, AdamW's first steps are of the rate's size.
    torch.testing.assert_close(weights, plain_weights, rtol=0.0, atol=1e-3)


def test_control_a_forward_that_reads_a_number_is_no_graph(counting, traced):
    whole = torch.compile(train_step, fullgraph=True, dynamic=False, backend="eager")
    with pytest.raises(_dynamo.exc.TorchDynamoException, match=r"item\(\)"):
        steps(whole, counting, 1)


def meta_step(name, shape, vocab=VOCAB, context=CONTEXT, count=1):
    """Losses and norms of a step on the meta device, where a tensor has a shape and no numbers."""
    with torch.device("meta"):
        model, optimizer = members(name, count, shape, vocab, context)
        x_KBT = torch.zeros(count, 8, context, dtype=torch.long)
        alive_K = torch.ones(count, dtype=torch.bool)
        return model, train_step(model, optimizer, x_KBT, x_KBT, [0.1] * count, alive_K)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_shape_takes_a_step_that_allocates_nothing(name):
    context = 32 if name == "lstm" else 1024  # a recurrence is many operations, even of nothing
    model, (means_KP, norm_K) = meta_step(name, LARGE[name], vocab=50304, context=context)
    assert means_KP.shape == (1, 1)
    assert norm_K.shape == (1,)
    assert all(p.is_meta and p.grad.is_meta for p in model.parameters())
    if name == "transformer":
        counts = cohort.count(family(name), shape_of(name, LARGE[name]), 50304, 1024)
        assert sum(p.numel() for p in model.parameters()) == counts.params_total
        assert counts.params_total == pytest.approx(124e6, rel=0.01)


def test_the_largest_model_of_a_paper_takes_a_step_too():
    scale = spec.read("looped").scale["paper"]
    models = scale.models[3]
    shape = models.shape | models.shapes[-1]
    model, (means_KP, _) = meta_step("looped", shape, vocab=scale.vocabulary, context=scale.context)
    assert means_KP.shape == (1, 1)
    assert sum(p.numel() for p in model.parameters()) > 1.4e9


def test_control_a_step_that_reads_a_number_fails_on_the_meta_device(counting):
    with pytest.raises(RuntimeError, match="meta"):
        meta_step(counting, SHAPES["lstm"])


# Many shapes in one process


def graphs(functions, models):
    """How many new graphs one forward pass of each model makes."""
    before = counters["stats"]["unique_graphs"]
    for function, (model, _) in zip(functions, models, strict=True):
        function(model, *batch(1))
    return counters["stats"]["unique_graphs"] - before


@pytest.fixture
def limits():
    names = ("recompile_limit", "accumulated_recompile_limit", "fail_on_recompile_limit_hit")
    torch.compiler.reset()
    with _dynamo.config.patch({name: getattr(_dynamo.config, name) for name in names}):
        yield
    torch.compiler.reset()


def test_more_shapes_than_eight_all_stay_compiled(limits):
    widths = [8 * n for n in range(1, 12)]
    models = [members("transformer", 1, SHAPES["transformer"] | {"d_model": width}) for width in widths]
    functions = [compiled(forward, backend="eager") for _ in widths]
    assert graphs(functions, models) == len(widths)
    assert graphs(functions, models) == 0, "the first are compiled still"


def test_control_one_function_of_torchs_own_stops_at_eight(limits):
    widths = [8 * n for n in range(1, 12)]
    models = [members("transformer", 1, SHAPES["transformer"] | {"d_model": width}) for width in widths]
    plain = torch.compile(forward, dynamic=False, backend="eager")
    torchs_own = {
        "recompile_limit": 8,
        "fail_on_recompile_limit_hit": False,
    }  # another test may have raised it
    with _dynamo.config.patch(torchs_own):
        assert graphs([plain] * len(widths), models) == 8
