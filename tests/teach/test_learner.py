"""The learner: fair sides, members as they would be alone, stopping, and what a check counts."""

import numpy as np
import pytest
import torch

from isoloss.models.lstm import initialise, initialise_chrono
from isoloss.teach.learner import Cohort, Replica, Side, build, right_answers
from isoloss.teach.tasks import NOT_ASKED, Binding, FirstLetter

TASK = FirstLetter(6, letters=5)
ATTENTION = Side(
    "Transformer", "transformer", {"n_layer": 1, "d_model": 16, "n_head": 1, "positions": "learned"}
)
RECURRENT = Side("LSTM", "lstm", {"n_layer": 1, "d_model": 16})


def trained(side, members, updates=5):
    cohort = Cohort(side, TASK, members, batch=16)
    for _ in range(updates):
        cohort.update()
    return cohort


def logits(cohort, member):
    x_BT, _ = TASK.batch(np.random.default_rng(5), 8)
    x_KBT = torch.from_numpy(x_BT).expand(len(cohort.members), -1, -1)
    with torch.no_grad():
        return cohort.model(x_KBT).logits[-1][member]


@pytest.mark.parametrize("side", [ATTENTION, RECURRENT], ids=lambda side: side.name)
def test_a_member_learns_as_it_would_alone(side):
    together = trained(side, [Replica(0, 1e-2), Replica(1, 3e-3)])
    alone = trained(side, [Replica(1, 3e-3)])
    torch.testing.assert_close(logits(together, 1), logits(alone, 0), rtol=1e-4, atol=1e-5)
    # Control: another seed or another rate is told apart.
    assert not torch.allclose(logits(together, 1), logits(trained(side, [Replica(2, 3e-3)]), 0), atol=1e-3)
    assert not torch.allclose(logits(together, 1), logits(trained(side, [Replica(1, 1e-2)]), 0), atol=1e-3)


def test_every_side_reads_the_same_strings():
    members = [Replica(0, 1e-2), Replica(0, 3e-3), Replica(1, 3e-3)]
    one, other = (Cohort(side, TASK, members).draw(7) for side in (ATTENTION, RECURRENT))
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[0][0], one[0][1])
    assert not torch.equal(one[0][0], one[0][2])


def test_start_sets_each_member_by_its_seed():
    def chrono(member):
        initialise_chrono(member.layers[0], 20)

    side = Side("chrono", "lstm", RECURRENT.shape, chrono)
    first, second, other = (build(side, TASK, [Replica(s, 1e-3)]).members[0].layers[0] for s in (0, 0, 1))
    b_f, b_i = first.bias_ih_l0[16:32], first.bias_ih_l0[:16]
    assert torch.equal(first.bias_ih_l0, second.bias_ih_l0)
    assert not torch.equal(first.bias_ih_l0, other.bias_ih_l0)
    assert torch.equal(b_f, -b_i)
    assert ((b_f >= 0) & (b_f <= np.log(19))).all()
    assert (first.bias_hh_l0 == 0).all()


def test_the_forget_bias_stands_in_one_bias_alone():
    layer = torch.nn.LSTM(4, 4)
    with torch.no_grad():
        initialise(layer, 3.0)
    assert (layer.bias_ih_l0 + layer.bias_hh_l0).tolist() == [0.0] * 4 + [3.0] * 4 + [0.0] * 8


def test_learning_stops_when_enough_is_right_or_at_the_cap():
    short = looks(cap=400, every=50, enough=0.95)
    assert short[-1]["value"] >= 0.95
    assert short[-1]["update"] < 400
    capped = looks(cap=7, every=5, enough=1.1)
    assert [look["update"] for look in capped] == [0, 5, 7]


def looks(**until):
    cohort = Cohort(ATTENTION, TASK, [Replica(0, 1e-2)])
    return [look for looks in cohort.learn(**until) for look in looks]


class Says(torch.nn.Module):
    """Says one token everywhere."""

    def __init__(self, token, vocab):
        super().__init__()
        self.token, self.vocab = token, vocab

    def forward(self, x_KBT):
        from isoloss.models import Output

        logits = torch.zeros(*x_KBT.shape, self.vocab)
        logits[..., self.token] = 1.0
        return Output([logits])


def test_a_string_is_right_if_all_that_it_asks_is():
    task = Binding(2, 3, 3)
    x_BT, y_BT = task.batch(np.random.default_rng(0), 300)
    right_KB = right_answers(Says(4, task.vocab), x_BT, y_BT, 2)
    expected = ((y_BT == 4) | (y_BT == NOT_ASKED)).all(axis=1)
    assert right_KB.shape == (2, 300)
    assert np.array_equal(right_KB[0], expected)
    assert 0 < expected.mean() < 0.3


def test_a_diverged_member_does_not_take_the_others_along():
    cohort = trained(ATTENTION, [Replica(0, 1e-2), Replica(1, 1e-2)], updates=1)
    with torch.no_grad():
        next(cohort.model.parameters())[0].fill_(float("nan"))
    before = logits(cohort, 1)
    cohort.update()
    assert np.isnan(cohort.loss_K[0])
    assert np.isfinite(cohort.loss_K[1])
    assert torch.isfinite(logits(cohort, 1)).all()
    assert not torch.equal(before, logits(cohort, 1))
