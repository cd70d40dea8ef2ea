"""Kept weights are those that the record's last loss was measured with."""

import pytest
import torch
from safetensors.torch import load_file

from isoloss.corpus.batches import evaluation_windows
from isoloss.corpus.library import open_tokenized
from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import member_weights
from isoloss.records.store import WEIGHTS, check, read_record
from isoloss.training.evaluation import evaluate
from isoloss.training.loop import train
from isoloss.training.settings import Execution


def loss_with(task, member, weights):
    settings = member.settings
    shape = shape_of(settings.family, settings.shape)
    model = build_cohort(family(settings.family), shape, settings.vocab, settings.context, [settings.seed])
    model.load_state_dict(weights)
    corpus = open_tokenized(task.tokens, settings.corpus_hash)
    x_MT, y_MT = evaluation_windows(
        corpus.validation, count=settings.evaluation.final_windows, context=settings.context
    )
    return evaluate(model, x_MT, y_MT, members=1, device=torch.device("cpu"))[0].mean("exit_1")


@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_kept_weights_give_the_recorded_loss(make_task, name):
    task = make_task(name, seeds=(0, 1), execution=Execution(keep_weights=True))
    assert train(task)
    saved = [load_file(member.folder / WEIGHTS) for member in task.members]
    for k, member in enumerate(task.members):
        check(member.folder)
        recorded = read_record(member.folder).evaluations[-1].loss
        assert loss_with(task, member, saved[k]) == pytest.approx(recorded, abs=1e-5)
        assert loss_with(task, member, saved[1 - k]) != pytest.approx(recorded, abs=1e-5)


def test_a_run_stopped_at_its_last_update_still_keeps_them(make_task):
    task = make_task("transformer", execution=Execution(keep_weights=True))
    left = [1]

    def at_the_end(progress):
        left[0] = progress.updates - progress.done

    assert not train(task, report=at_the_end, should_stop=lambda: left[0] == 0)
    assert not (task.lead.folder / WEIGHTS).exists()
    assert train(task)
    recorded = read_record(task.lead.folder).evaluations[-1].loss
    kept = load_file(task.lead.folder / WEIGHTS)
    assert loss_with(task, task.lead, kept) == pytest.approx(recorded, abs=1e-5)


def test_weights_are_kept_only_if_wanted(make_task):
    task = make_task("transformer")
    assert train(task)
    assert not (task.lead.folder / WEIGHTS).exists()
    assert WEIGHTS not in read_record(task.lead.folder).files


@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_a_members_weights_are_those_it_would_have_alone(name):
    kind = family(name)
    values = {"n_layer": 1, "d_model": 16} | ({"n_head": 2} if name == "transformer" else {})
    both, alone = (build_cohort(kind, shape_of(name, values), 50, 8, seeds) for seeds in ([3, 4], [4]))
    mine, other = (member_weights(both, k) for k in (1, 0))
    wanted = dict(alone.named_parameters())
    assert mine.keys() == wanted.keys()
    assert all(torch.equal(mine[key], wanted[key]) for key in wanted)
    assert not all(torch.equal(other[key], wanted[key]) for key in wanted)
