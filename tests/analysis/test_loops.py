"""What loops buy: differences with either sign and none, a law that holds or not on what it has not seen."""

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
import story

from isoloss.analysis import loop_laws, loops
from isoloss.errors import InputError, Refusal

LOOPS = story.LSTM_AHEAD.looped
LOOPED = replace(story.FEW, transformer_widths=(), lstm_widths=(), loops=(1, 2, 4))


@pytest.fixture(scope="module")
def data(ahead):
    return loops.measure(ahead)


@pytest.fixture(scope="module")
def wide(told):
    """Five sizes and five T_m: enough to leave a whole row or column out."""
    many = replace(LOOPED, looped_widths=(16, 32, 64, 128, 256), loops=(1, 2, 3, 4, 8), seeds=1)
    return loops.measure(told(many))


# The law and what it has not seen


def test_one_law_recovers_the_truth(wide):
    law = wide.fits["total"]
    for name, low, high in ((name, *law.intervals[name]) for name in ("alpha", "beta", "gamma", "C")):
        assert low < getattr(LOOPS, name) < high, name
    assert law.params["gamma"] == pytest.approx(LOOPS.gamma, rel=0.15)


def test_every_number_of_loops_and_every_size_is_left_out_once(wide):
    kinds = [outcome.kind for outcome in wide.judged]
    assert kinds == ["fitted", *["a T_m left out"] * 5, *["an N left out"] * 5, "the last half left out"]
    assert [outcome.rows.height for outcome in wide.judged[1:6]] == [wide.judged[0].rows.height // 5] * 5
    last = wide.judged[-1].rows
    assert last["tokens"].min() > 0.5 * story.D_POINTS[-1]


def test_points_left_out_are_predicted_better_than_by_their_neighbour(wide):
    for outcome in wide.judged[1:]:
        assert outcome.refusal is None
        assert outcome.error < 0.015, outcome.what
        assert outcome.error < outcome.baseline, outcome.what


def curves(rng, bend=0.0):
    """Traces of 25 panels: the additive law, one shift a panel, and ``bend`` nats more at eight loops."""
    rows = []
    for params, T in product((6e3, 2e4, 7e4, 2e5, 8e5), (1, 2, 3, 4, 8)):
        shift = rng.normal(0, 0.006) + bend * (T == 8)
        for tokens in 2.0 ** np.arange(17, 21.5, 0.5):
            total = LOOPS.loss(params, tokens, T) + shift + rng.normal(0, 0.002)
            rows.append((f"N{params:g}", T, tokens, params, params, total))
    return pl.DataFrame(
        rows, schema=["size", "recurrence", "tokens", "params", "size_params", "total"], orient="row"
    )


def test_intervals_hold_what_was_left_out_as_often_as_they_say():
    rng, inside, count = np.random.default_rng(5), 0, 0
    for _ in range(6):
        judged = [outcome for outcome in loop_laws.judge(curves(rng)) if outcome.kind != "fitted"]
        inside += sum(outcome.inside for outcome in judged)
        count += sum(outcome.rows.height for outcome in judged)
    assert 0.9 < inside / count < 0.995


def test_a_law_that_does_not_hold_is_found_out_by_what_was_left_out():
    """Negative control: the deepest loops made worse, which no additive falling law can say."""
    bent = {j.what: j for j in loop_laws.judge(curves(np.random.default_rng(6), bend=0.4))}["T_m = 8"]
    assert bent.error > 0.05
    assert bent.inside == 0


def test_two_values_left_refuse_and_say_so(data):
    by_name = {outcome.what: outcome for outcome in data.judged}
    assert "takes 2 values" in by_name["T_m = 4"].refusal.what
    assert by_name["T_m = 4"].error is by_name["T_m = 4"].inside is None
    assert "takes 2 values" in loop_laws.judged_table(data.judged)["refused"][1]
    assert "a T_m left out" not in loop_laws.errors_by_kind(data.judged)
    assert by_name["last half of every run"].error < 0.02


def test_the_early_drop_is_left_out_of_the_fit(data):
    late = loop_laws.late(data.curves)
    assert late["tokens"].min() > loop_laws.EARLY * story.D_POINTS[-1]
    assert late.height < data.curves.height


def test_losses_are_those_of_held_out_text_without_minibatch_noise(ahead, data):
    table = ahead.table().filter((pl.col("family") == "looped") & ~pl.col("cooled") & (pl.col("step") > 0))
    assert data.curves.height == table.select("d_model", "recurrence", "tokens").n_unique()
    at = data.curves.filter((pl.col("recurrence") == 4) & (pl.col("tokens") == story.D_POINTS[0]))
    same = table.filter((pl.col("recurrence") == 4) & (pl.col("tokens") == story.D_POINTS[0]))
    assert sorted(at["total"]) == pytest.approx(
        sorted(same.group_by("d_model").agg(pl.col("loss_total").mean())["loss_total"])
    )


def test_total_expected_and_last_exit_stand_apart(data):
    last = data.curves.filter(pl.col("recurrence") == 4)
    assert (last["expected"] - last["total"]).mean() == pytest.approx(0.1 * 0.9 * 1.3863, abs=0.03)
    assert (last["expected"] - last["last_exit"]).mean() == pytest.approx(0.12, abs=0.03)
    one_loop = data.curves.filter(pl.col("recurrence") == 1)
    assert one_loop["total"].equals(one_loop["expected"])


# More loops against one


def test_gains_hold_the_truth(data):
    assert [(gain.params, gain.loops) for gain in data.mean_gains] == [
        ((24576, 98304, 393216), 2),
        ((24576, 98304, 393216), 4),
    ]
    for gain in (*data.gains, *data.mean_gains):
        truth = LOOPS.C * (gain.loops**-LOOPS.gamma - 1)
        # The two seeds' own noise moves a difference; its interval is made for that.
        assert gain.total.low - 0.01 < truth < gain.total.high + 0.01
        assert gain.bonus == pytest.approx(LOOPS.entropy_weight * 0.9 * np.log(gain.loops), rel=1e-3)
        assert gain.cap == pytest.approx(LOOPS.entropy_weight * np.log(gain.loops), rel=1e-3)
        assert gain.last_exit.sign == -1


def test_the_mean_over_sizes_is_that_of_the_sizes(data):
    each = [gain.last_exit for gain in data.gains if gain.loops == 4]
    mean = data.mean_gains[-1].last_exit
    assert mean.value == pytest.approx(np.mean([gain.value for gain in each]))
    assert mean.high - mean.low < each[0].high - each[0].low


def cooled(rng, effect, noise=0.01):
    """Cooled points of four sizes and four T_m, two seeds: ``effect`` nats from one loop to eight."""
    rows = []
    for width, T, seed in product((24, 40, 64, 96), (1, 2, 4, 8), (0, 1)):
        loss = 3 + 10 / width + effect * np.log(T) / np.log(8) + rng.normal(0, noise)
        entropy = 0.9 * np.log(T)
        rows.append(
            ("looped", f"T{T}", 2, width, T, 24 * width**2, seed, loss, loss, loss - 0.1 * entropy, entropy)
        )
    names = ["family", "curve", "n_layer", "d_model", "recurrence", "params", "seed"]
    names += ["loss", "loss_expected", "loss_total", "entropy"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.mark.parametrize(("effect", "sign"), [(-0.03, -1), (0.03, 1)])
def test_an_effect_of_either_sign_is_seen(effect, sign):
    rng = np.random.default_rng(7)
    signs = [loops.mean_gains(cooled(rng, effect))[-1].last_exit.sign for _ in range(40)]
    assert signs.count(sign) == 40


def test_no_effect_is_called_one_as_rarely_as_the_level_says():
    rng = np.random.default_rng(8)
    signs = [loops.mean_gains(cooled(rng, 0.0))[-1].last_exit.sign for _ in range(200)]
    assert 2 <= 200 - signs.count(0) <= 20  # 5% of 200, give or take three standard errors


def test_the_weight_of_the_entropy_is_recovered_from_records(data):
    assert data.beta == pytest.approx(LOOPS.entropy_weight, rel=1e-9)


def test_the_verdict_is_short_and_the_other_loops_stand_behind_it(data):
    verdict = loops.loops_verdict(data)
    two, four = (gain.last_exit.value for gain in data.mean_gains)
    assert verdict.startswith(f"4 loops predict better than one: −{-four:.3f} nats (−")
    assert verdict.endswith("), the mean of 3 sizes")
    assert f"−{-two:.3f} nats" in loops.fewer_loops_words(data)
    assert loops.fewer_loops_words(replace(data, mean_gains=data.mean_gains[-1:])) == ""


def test_one_seed_says_nothing_about_what_loops_buy(wide):
    verdict = loops.loops_verdict(wide)
    assert verdict.startswith("no verdict")
    assert "better" not in verdict


def test_loops_that_buy_nothing_are_not_said_to(told):
    """The story's last exits are better than the mean by a constant; noise of its size hides that."""
    flat = replace(
        story.LSTM_AHEAD, looped=replace(LOOPS, C=1e-6, entropy_weight=0.0), hostile=False, noise=0.2
    )
    data = loops.measure(told(flat))
    assert "neither better nor worse than one" in loops.loops_verdict(data)
    assert "shifted_" not in loops.fit_words(data)


def test_a_study_without_loops_is_refused(told):
    with pytest.raises(Refusal, match="no finished looped run"):
        loops.measure(told(story.FEW))


def test_no_loop_at_all_is_an_error_where_it_stands():
    rows = curves(np.random.default_rng(9)).with_columns(recurrence=pl.col("recurrence") - 1)
    with pytest.raises(InputError, match=r"recurrence is 0\.0, not positive"):
        loop_laws.fit_law(rows)
