"""Each member is updated as torch's AdamW with norm clipping would update it alone."""

import pytest
import torch

from isoloss.models import build_cohort, family, shape_of
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe

SHAPES = {
    "transformer": {"n_layer": 1, "d_model": 8, "n_head": 1, "positions": "learned", "tied": False},
    "lstm": {"n_layer": 2, "d_model": 8},
    "looped": {"n_layer": 1, "d_model": 8, "n_head": 1, "recurrence": 2},
}
RATES = [0.01, 0.05]


def cohort(name, seeds):
    return build_cohort(family(name), shape_of(name, SHAPES[name]), 20, 6, seeds)


def backward(model, x_KBT):
    output = model(x_KBT)
    model.zero_grad()
    # The factor makes the first gradients exceed the clip and the later ones not.
    (5.0 * output.logits[-1].square().mean(dim=(1, 2, 3)).sum()).backward()


@pytest.mark.parametrize("name", SHAPES)
def test_two_members_equal_two_optimizers(name):
    torch.manual_seed(0)
    x_KBT = torch.randint(20, (2, 3, 6))
    both, recipe = cohort(name, [1, 2]), Recipe(clip=0.05)
    ours = MemberAdamW(both, 2, recipe)
    alone = [cohort(name, [seed]) for seed in (1, 2)]
    theirs = [torch_adamw(model, rate) for model, rate in zip(alone, RATES, strict=True)]
    for _ in range(8):
        backward(both, x_KBT)
        ours.step(RATES, ours.gradient_norms(), torch.tensor([True, True]))
        for k, (model, optimizer) in enumerate(zip(alone, theirs, strict=True)):
            backward(model, x_KBT[k : k + 1])
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
    logits = both(x_KBT).logits[-1]
    for k, model in enumerate(alone):
        torch.testing.assert_close(logits[k], model(x_KBT[k : k + 1]).logits[-1][0], atol=2e-5, rtol=1e-4)


def torch_adamw(model, rate):
    """Matrices decay; tables and vectors do not: told apart here by name and shape of one member's tensor."""
    groups = {True: [], False: []}
    for name, p in model.named_parameters():
        size = p.shape if name.startswith("members") else p.shape[1:]
        matrix = len(size) == 2 and not any(w in name for w in ("embedding", "tokens", "positions"))
        groups[matrix].append(p)
    return torch.optim.AdamW(
        [{"params": groups[True], "weight_decay": 0.1}, {"params": groups[False], "weight_decay": 0.0}],
        lr=rate,
        betas=(0.9, 0.99),
    )


def test_a_dead_member_stays_put_and_the_other_moves():
    model = cohort("transformer", [1, 2])
    optimizer = MemberAdamW(model, 2, Recipe())
    before = [p.detach().clone() for p in model.parameters()]
    backward(model, torch.randint(20, (2, 3, 6)))
    for p in model.parameters():
        p.grad[0] = float("nan")
    optimizer.step(RATES, optimizer.gradient_norms(), torch.tensor([False, True]))
    assert all(torch.equal(p[0], b[0]) for p, b in zip(model.parameters(), before, strict=True))
    assert any(not torch.equal(p[1], b[1]) for p, b in zip(model.parameters(), before, strict=True))
    assert all(p.isfinite().all() for p in model.parameters())


def test_state_comes_back_whole():
    model = cohort("looped", [1, 2])
    optimizer = MemberAdamW(model, 2, Recipe())
    backward(model, torch.randint(20, (2, 3, 6)))
    optimizer.step(RATES, optimizer.gradient_norms(), torch.tensor([True, True]))
    saved = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    other = MemberAdamW(model, 2, Recipe())
    assert not all(torch.equal(other.state()[name], saved[name]) for name in saved)
    other.restore(saved)
    assert all(torch.equal(other.state()[name], saved[name]) for name in saved)
