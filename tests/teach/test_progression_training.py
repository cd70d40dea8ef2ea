"""The training demo measured: the floor holds, memorising shows, and a leak or a wrong decoder is caught."""

import copy
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from isoloss.models.output import Output
from isoloss.teach import panel as panels
from isoloss.teach import words
from isoloss.teach.learner import Cohort, Replica, build, params
from isoloss.teach.panels import panel
from isoloss.teach.progression import tell
from isoloss.teach.progression.corpus import END, WordCorpus, corpus_of
from isoloss.teach.progression.curves import NEAR, SIDES, copy_shares, curves
from isoloss.teach.progression.measure import checks, mean_loss, sides, writing_updates
from isoloss.teach.progression.writing import write

ROUNDING = 1e-5
SETTINGS = {"seeds": 2, "rates": [0.03], "samples": 200}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def corpus() -> WordCorpus:
    return corpus_of("", 0.2, 0)


@pytest.fixture(scope="module")
def run():
    """A small measurement, and what was reported on the way."""
    settings, heard = panel("training").settings_from(SETTINGS), []

    def report(done, text, tables=None):
        heard.append((done, text, copy.deepcopy(tables) if len(heard) % 10 == 0 else None))

    return settings, panels.run(panel("training"), settings, report), heard


def cohort(corpus, side, updates, *, start=None, seeds=(0,)):
    side = next(one for one in sides(24) if one.name == side)
    side = side if start is None else type(side)(side.name, side.family, side.shape, start)
    made = Cohort(side, reading(corpus), [Replica(seed, 0.03) for seed in seeds])
    for _ in range(updates):
        made.update()
    return made


def reading(corpus):
    return corpus.task(corpus.training)


def keeps_the_floor(losses, floor):
    """Never below the floor on the training sentences, beyond rounding, and close to it at the end."""
    return min(losses) >= floor - ROUNDING and losses[-1] <= floor + NEAR


def test_training_loss_reaches_the_floor_and_never_goes_below(run):
    _, result, _ = run
    floor = result.tables["corpus"][0]["floor"]
    for side in SIDES:
        for by_update in curves(result.tables)[side].training.values():
            assert keeps_the_floor(list(by_update.values()), floor)


def see_the_future(model):
    """A leak: attention without its causal mask reads the word it is asked for."""
    for block in model.blocks:
        block.attention.mix = F.scaled_dot_product_attention


def test_a_leak_shows_as_a_loss_below_the_floor(corpus):
    leaking = cohort(corpus, "Transformer", 120, start=see_the_future)
    loss = mean_loss(leaking, reading(corpus))[0]
    assert loss < corpus.floor - 0.1
    assert not keeps_the_floor([4.7, loss], corpus.floor)


def test_too_few_updates_do_not_reach_the_floor(corpus):
    assert not keeps_the_floor([mean_loss(cohort(corpus, "LSTM", 10), reading(corpus))[0]], corpus.floor)


def test_held_out_loss_ends_higher_than_training_loss_and_than_its_best(run):
    _, result, _ = run
    for side in SIDES:
        own = curves(result.tables)[side]
        last = own.updates[-1]
        for seed in own.seeds:
            assert own.held_out[seed][last] > own.training[seed][last] + 1.0
            assert own.held_out[seed][last] > own.best[seed][0] + 0.3
            assert abs(own.held_out[seed][0] - own.training[seed][0]) < 0.1
        assert own.turns_up


def test_a_memoriser_copies_and_an_untrained_model_does_not(run):
    _, result, _ = run
    for side in SIDES:
        shares = copy_shares(result.tables, side)
        first, last = shares[min(shares)], shares[max(shares)]
        assert first.n == last.n == 200
        assert first.value == 0
        assert last.interval[0] > 0.6


def test_the_copied_share_is_what_the_model_s_own_chances_say(corpus):
    half_way = cohort(corpus, "LSTM", 70)
    prompt = corpus.beginning("we propose a")
    chance = copy_chance(half_way, corpus, prompt)
    assert 0.1 < chance < 0.9
    assert holds(half_way.model, corpus, prompt, chance)
    assert not holds(lambda x_KBT: Output([2 * half_way.model(x_KBT).logits[-1]]), corpus, prompt, chance)


def copy_chance(made, corpus, prompt):
    """Exactly: the chances of the training sentences that begin with the prompt, summed."""
    own = tuple(sentence for sentence in corpus.training if sentence[: len(prompt)] == prompt)
    x_BT, y_BT = corpus.task(own).batch(np.random.default_rng(0), 1)
    with torch.no_grad():
        logp_BTV = made.model(torch.from_numpy(x_BT)[None]).logits[-1][0].log_softmax(-1)
    logp_BT = logp_BTV.gather(-1, torch.from_numpy(y_BT).clamp(min=0)[..., None])[..., 0]
    logp_BT[torch.from_numpy(y_BT) < 0] = 0.0
    return float(logp_BT[:, len(prompt) :].sum(-1).exp().sum())


def holds(model, corpus, prompt, chance):
    """Four standard errors: one sound decoder in 16,000 would fail."""
    known = {(*sentence, END) for sentence in corpus.training}
    _, *drawn = write(model, prompt, corpus.context, [0], 0, 2_000)[0]
    copied = sum(sentence in known for sentence in drawn) / len(drawn)
    return abs(copied - chance) < 4 * (chance * (1 - chance) / len(drawn)) ** 0.5


def test_greedy_takes_the_likeliest_word_whatever_the_seed(corpus):
    made = cohort(corpus, "Transformer", 30, seeds=(0, 0))
    prompt = corpus.beginning("we propose a")
    one, other = write(made.model, prompt, corpus.context, [1, 2], 5, 3)
    assert one[0] == other[0]
    assert one[1:] != other[1:]
    with torch.no_grad():
        for place in range(len(prompt), len(one[0])):
            x_KBT = torch.tensor((END, *one[0][:place])).expand(2, 1, -1)
            assert made.model(x_KBT).logits[-1][0, 0, -1].argmax() == one[0][place]


def test_the_noise_is_the_seed_s_and_the_update_s_not_the_model_s(corpus):
    """So two models that say the same write the same; here both say nothing."""

    def flat(x_KBT):
        return Output([torch.zeros(*x_KBT.shape, corpus.vocab)])

    def written(seeds, update):
        return write(flat, (2, 3), corpus.context, seeds, update, 20)

    one, other = written([4, 5], 10)
    assert written([4], 10) == [one]
    assert written([5], 10) == [other]
    assert one[1:] != other[1:]
    assert written([4], 20)[0][1:] != one[1:]


@pytest.mark.parametrize("d_model", [8, 24, 64])
def test_both_sides_have_the_same_size(corpus, d_model):
    sizes = [params(build(side, reading(corpus), [Replica(0, 0.01)]), 1) for side in sides(d_model)]
    assert max(sizes) <= 1.1 * min(sizes)
    if d_model == 24:
        assert 12_000 <= min(sizes) <= 30_000


def test_looks_have_the_first_and_the_last_update():
    for updates in (10, 25, 120, 301, 1_000):
        looks = checks(updates)
        assert looks[0] == 0
        assert looks[-1] == updates
        assert {0, updates} <= writing_updates(looks) <= set(looks)
        assert len(looks) <= 50


def test_every_seed_of_both_sides_is_trained_at_every_rate_and_one_is_chosen_by_training_loss():
    settings = panel("training").settings_from({"seeds": 2, "updates": 20, "rates": [1e-3, 3e-2]})
    tables = panel("training").measure(settings, lambda *heard: None)
    assert [(row["side"], row["chosen"]) for row in tables["rates"]] == [
        (side, chosen) for side in SIDES for chosen in (False, True)
    ]
    trained = {(row["side"], row["seed"], row["rate"]) for row in tables["runs"]}
    assert trained == {(side, seed, rate) for side in SIDES for seed in (0, 1) for rate in settings.rates}
    assert {row["rate"] for row in (*tables["copies"], *tables["samples"])} == {3e-2}
    for side in SIDES:
        ends = [row["training_at_end"] for row in tables["rates"] if row["side"] == side]
        assert ends[1] < ends[0]


def test_the_same_settings_give_the_same_tables():
    settings = panel("training").settings_from({"seeds": 2, "updates": 10, "rates": [1e-2]})
    one, other = (panel("training").measure(settings, lambda *heard: None) for _ in range(2))
    assert one == other


def test_the_result_is_plain_json_with_an_interval_and_n_beside_each_mean(run):
    settings, result, _ = run
    reloaded = type(result).model_validate(json.loads(result.model_dump_json()))
    assert reloaded == result
    for row in (*result.tables["losses"], *result.tables["best"], *result.tables["copies"]):
        assert row["low"] <= row["value"] <= row["high"]
        assert row["n"] > 0
    assert {s.key for s in result.sentences} == {
        "floor",
        "turn",
        "memorising-transformer",
        "memorising-lstm",
        "best",
        "copied",
    }
    assert [s.key for s in result.sentences if s.exact] == ["floor"]
    assert all(words.faults(figure.title) == [] for figure in tell.figures(settings, result.tables))
    assert all(words.faults(line) == [] for line in tell.lines(settings, result.tables))


def test_progress_is_reported_often_and_can_be_drawn(run):
    settings, _, heard = run
    done = [share for share, _, _ in heard]
    assert done == sorted(done)
    assert done[-1] == pytest.approx(1.0)
    assert len(heard) >= 50
    for _, _, tables in heard:
        if tables is not None:
            assert all(figure.chart.to_dict() for figure in tell.figures(settings, tables))
            assert tell.lines(settings, tables)
            tell.html(settings, tables)
