"""One training step: who is updated, what it returns, and which targets count."""

import pytest
import torch

from isoloss.models import build_cohort, family, shape_of
from isoloss.teach.tasks import NOT_ASKED
from isoloss.training.objective import IGNORED, losses, mean_over_all, mean_over_asked
from isoloss.training.optimizer import MemberAdamW
from isoloss.training.settings import Recipe
from isoloss.training.step import StepOptions, train_step

VOCAB, CONTEXT, RATES = 20, 6, [0.01, 0.01]


def cohort():
    shape = shape_of("transformer", {"n_layer": 1, "d_model": 8, "n_head": 1})
    model = build_cohort(family("transformer"), shape, VOCAB, CONTEXT, [1, 2])
    return model, MemberAdamW(model, 2, Recipe())


def batch():
    draw = torch.Generator().manual_seed(0)
    return (torch.randint(VOCAB, (2, 4, CONTEXT), generator=draw) for _ in range(2))


def moved_K(before, model):
    pairs = list(zip(before, model.parameters(), strict=True))
    return [not all(torch.equal(old[k], new[k]) for old, new in pairs) for k in range(2)]


@pytest.mark.parametrize("alive", [[True, True], [True, False]])
def test_only_the_living_move(alive):
    model, optimizer = cohort()
    before = [p.detach().clone() for p in model.parameters()]
    x_KBT, y_KBT = batch()
    train_step(model, optimizer, x_KBT, y_KBT, RATES, torch.tensor(alive))
    assert moved_K(before, model) == alive


def test_a_member_that_is_not_finite_is_left_as_it_was():
    model, optimizer = cohort()
    next(iter(model.parameters())).data[1] = float("inf")
    before = [p.detach().clone() for p in model.parameters()]
    x_KBT, y_KBT = batch()
    means_KP, norm_K = train_step(model, optimizer, x_KBT, y_KBT, RATES, torch.tensor([True, True]))
    assert moved_K(before, model) == [True, False]
    assert means_KP.isfinite().all(dim=1).tolist() == norm_K.isfinite().tolist() == [True, False]


def test_the_means_are_those_before_the_update():
    model, optimizer = cohort()
    x_KBT, y_KBT = batch()
    with torch.no_grad():
        expected_K = losses(model(x_KBT), y_KBT).total.mean(dim=(1, 2))
    means_KP, norm_K = train_step(model, optimizer, x_KBT, y_KBT, RATES, torch.tensor([True, True]))
    torch.testing.assert_close(means_KP[:, 0].float(), expected_K)
    assert (norm_K > 0).all()


def test_targets_that_ask_for_nothing_do_not_count():
    assert IGNORED == NOT_ASKED
    model, _ = cohort()
    x_KBT, y_KBT = batch()
    y_KBT[:, :, :-1] = IGNORED
    loss_KBT = losses(model(x_KBT), y_KBT).total
    torch.testing.assert_close(mean_over_asked(loss_KBT, y_KBT), loss_KBT[:, :, -1].mean(dim=1))
    assert not torch.allclose(mean_over_all(loss_KBT, y_KBT), mean_over_asked(loss_KBT, y_KBT))


def test_micro_batches_take_the_same_step():
    models = []
    for micro_batches in (1, 2):
        model, optimizer = cohort()
        x_KBT, y_KBT = batch()
        options = StepOptions(micro_batches=micro_batches)
        train_step(model, optimizer, x_KBT, y_KBT, RATES, torch.tensor([True, True]), options)
        models.append(model)
    for whole, halves in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(whole, halves, atol=1e-5, rtol=1e-4)
