"""The sliding evaluation against a plain one: every target, cut out with exactly T tokens before it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from isoloss.models import build_cohort, family, shape_of
from isoloss.training.sliding import BLOCKS, STRETCHES, evaluate_sliding, sliding

VOCAB, CPU = 32, torch.device("cpu")


def text(tokens, seed=0):
    return np.random.default_rng(seed).integers(0, VOCAB, tokens, dtype=np.uint16)


def cohort(kind, context, seeds):
    shape = {"n_layer": 1, "d_model": 8} | ({"n_head": 1} if kind == "transformer" else {})
    return build_cohort(family(kind), shape_of(kind, shape), VOCAB, context, seeds)


def plainly(model, ids, plan, member):
    """Mean loss by group and block, one forward pass a target and T."""
    sums_GN = np.zeros((len(plan.first_G), BLOCKS))
    for stretch, start in enumerate(plan.starts_S):
        for offset in range(plan.length):
            target = start + offset
            block = (stretch * plan.length + offset) * BLOCKS // (STRETCHES * plan.length)
            losses = []
            for T in range(1, plan.context + 1):
                x_BT = torch.from_numpy(ids[target - T : target].astype(np.int64))[None]
                logits_V = model(x_BT.expand(len(model_members(model)), -1, -1)).logits[-1][member, 0, -1]
                losses.append(float(F.cross_entropy(logits_V, torch.tensor(int(ids[target])))))
            for g, (first, last) in enumerate(zip(plan.first_G, plan.last_G, strict=True)):
                sums_GN[g, block] += np.mean(losses[first - 1 : last])
    return sums_GN


def model_members(model):
    return getattr(model, "members", [model])


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_every_position_is_as_if_cut_out(kind):
    """With a stride of 1 every group is one T, so the sums are equal and not only alike."""
    context = 12
    ids, model = text(400), cohort(kind, context, [3])
    plan = sliding(len(ids), context, targets=STRETCHES * 4)
    assert (plan.stride, plan.near, plan.length) == (1, 8, 4)
    with torch.no_grad():
        expected_GN = plainly(model, ids, plan, member=0)
    sums_KGN = evaluate_sliding(model, ids, plan, members=1, device=CPU)
    np.testing.assert_allclose(sums_KGN[0], expected_GN, rtol=1e-5)


@pytest.mark.parametrize(("members", "most"), [(1, 1024), (64, 1023), (100_000, 1)])
def test_a_batch_of_all_members_has_a_grid_on_a_gpu(members, most):
    plan = sliding(3_000_000, 256, targets=STRETCHES * 3000)
    batches = [starts_B for _, starts_B, _, _ in plan.windows(members)]
    assert max(map(len, batches)) == most
    assert sum(map(len, batches)) == sum(len(starts_B) for _, starts_B, _, _ in plan.windows(1))


def test_in_a_group_every_target_occurs_once():
    """A model that knows nothing of context has the same loss at every T: so has every group, and exactly."""
    ids = text(30_000)
    plan = sliding(len(ids), 256, targets=1024)
    assert (plan.stride, plan.near, plan.block_targets) == (4, 8, 64)
    assert plan.first_G[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 13]
    assert plan.last_G[-1] == 256

    class Unigram(torch.nn.Module):
        def forward(self, x_KBT):
            from isoloss.models.output import Output

            return Output([torch.arange(VOCAB).float().expand(*x_KBT.shape, VOCAB)])

    sums_KGN = evaluate_sliding(Unigram(), ids, plan, members=2, device=CPU)
    np.testing.assert_allclose(sums_KGN[:, 1:], np.repeat(sums_KGN[:, :1], 69, axis=1), rtol=1e-12)
    # The control: over blocks, which hold other text, it does differ.
    assert np.ptp(sums_KGN[0, 0]) > 1.0


def test_members_are_measured_as_they_are_alone():
    ids = text(3_000)
    plan = sliding(len(ids), 16, targets=256)
    together = evaluate_sliding(cohort("transformer", 16, [0, 1]), ids, plan, members=2, device=CPU)
    for k in range(2):
        alone = evaluate_sliding(cohort("transformer", 16, [k]), ids, plan, members=1, device=CPU)
        np.testing.assert_allclose(together[k], alone[0], rtol=1e-5)
    assert not np.allclose(together[0], together[1], rtol=1e-3)


@pytest.mark.parametrize(("tokens", "context"), [(100, 64), (20, 128), (580, 64)])
def test_text_that_is_too_short_is_not_slid_over(tokens, context):
    assert sliding(tokens, context, targets=1024) is None


def test_models_of_another_context_are_asked_for_the_same_targets():
    short, long = (sliding(300_000, context, targets=2048) for context in (8, 256))
    assert short.starts_S.tolist() == long.starts_S.tolist()
    assert short.length == long.length


def test_no_targets_means_none():
    assert sliding(100_000, 64, targets=0) is None


def test_stretches_stay_inside_the_text():
    for tokens in (5_000, 5_001, 40_000):
        plan = sliding(tokens, 128, targets=4096)
        assert plan.starts_S[0] >= plan.context
        assert plan.starts_S[-1] + plan.length + plan.context < tokens
        assert np.all(np.diff(plan.starts_S) >= plan.length)
