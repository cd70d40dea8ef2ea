"""Attention with a known right slot: the weight moves there, answers need it, words follow numbers."""

import numpy as np
import polars as pl
import pytest
import torch
from pydantic import ValidationError

from isoloss.teach.attention.mixing import mixed_by, uniform
from isoloss.teach.attention.right_slot import measure as right_slot
from isoloss.teach.attention.right_slot import slots
from isoloss.teach.attention.right_slot import tell as right_slot_tell
from isoloss.teach.attention.right_slot.draw import progress_panel
from isoloss.teach.attention.right_slot.outcomes import (
    accuracies,
    change_of_mass,
    masses,
    solvers,
    uniform_mass,
)
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.learner import Cohort, Replica, Side
from isoloss.teach.panels import panel
from isoloss.teach.tasks import Binding

SETTINGS = RightSlotSettings(seeds=2, first_seed=2, every=100)
SIDE = Side("transformer", "transformer", right_slot.SHAPE)


@pytest.fixture(scope="module")
def heard():
    """What was reported on the way, and the final tables last."""
    torch.set_num_threads(1)
    parts = []
    tables = right_slot.measure(SETTINGS, lambda done, text, tables=None: parts.append((done, text)))
    return parts, tables


@pytest.fixture(scope="module")
def tables(heard):
    return heard[1]


def with_(tables, name, change):
    return {**tables, name: [change(dict(row)) for row in tables[name]]}


def test_the_right_slots_are_where_the_string_says():
    x = np.array([[7, 40, 3, 41, 5, 42, 3, 5, 7]])
    (looks, right), (last_looks, last_right) = slots.slots(0, x), slots.slots(1, x)
    assert looks.tolist() == [[1, 3, 5]]
    assert right.tolist() == [[0, 2, 4]]
    assert last_looks.tolist() == [[6, 7, 8]]
    assert x[0, last_right[0]].tolist() == [41, 42, 40]


def test_right_slots_agree_with_the_tasks_own_answers():
    x, y = Binding(5, 12, 6).batch(np.random.default_rng(0), 50)
    looks, right = slots.slots(1, x)
    rows = np.arange(50)[:, None]
    assert (x[rows, right] == y[rows, looks]).all()
    assert (x[rows, right - 2 * (right > 1)] != y[rows, looks]).any()


@pytest.mark.parametrize("layer", [1, 2])
def test_uniform_mass_is_what_a_uniform_head_gives(layer):
    x, _ = Binding(4, 8, 8).batch(np.random.default_rng(0), 20)
    even = torch.ones(12, 12).tril() / torch.arange(1, 13)[:, None]
    mass = slots.right_mass(even.expand(1, 20, 12, 12).numpy(), *slots.slots(layer - 1, x))
    assert mass == pytest.approx(uniform_mass(layer, 4))
    assert mass != pytest.approx(uniform_mass(3 - layer, 4))


def test_recording_a_whole_network_leaves_its_answers_alone():
    cohort = Cohort(SIDE, Binding(4, 16, 8), [Replica(0, 3e-3), Replica(1, 3e-3)])
    x, _ = cohort.task.batch(np.random.default_rng(0), 10)
    x_KBT = torch.from_numpy(x).expand(2, -1, -1)
    with torch.inference_mode():
        before = cohort.model(x_KBT).logits[-1]
        maps = slots.attention_maps(cohort.model, x, 2)
        torch.testing.assert_close(cohort.model(x_KBT).logits[-1], before)
        with mixed_by(cohort.model, {0: uniform}):
            assert (cohort.model(x_KBT).logits[-1] - before).abs().max() > 1e-4
    for weights in maps:
        assert weights.shape == (2, 10, 12, 12)
        assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
        assert not np.triu(weights, 1).any()
        assert np.abs(weights[0] - weights[1]).max() > 1e-3


def test_trained_mass_is_above_nine_tenths_and_untrained_far_below(tables):
    assert solvers(tables) == SETTINGS.seed_numbers
    for layer in (1, 2):
        after, before = masses(tables, layer, "last"), masses(tables, layer, "first")
        even = uniform_mass(layer, SETTINGS.pairs)
        for seed in SETTINGS.seed_numbers:
            assert after[seed] > 0.9
            assert before[seed] < even + 0.15 < 0.5


def test_accuracy_falls_in_every_seed_when_a_layer_is_flattened(tables):
    whole = accuracies(tables, "trained", "none")
    for forced, most in (("layer 1", 0.8), ("layer 2", 0.35)):
        for seed, share in accuracies(tables, "trained", forced).items():
            assert share.interval[1] < most < whole[seed].interval[0]


def test_untrained_networks_do_not_care_which_layer_is_flattened(tables):
    for forced in ("none", "layer 1", "layer 2"):
        for share in accuracies(tables, "untrained", forced).values():
            assert share.value < 0.1


def test_baselines_are_clear_of_the_trained_networks(tables):
    levels = {row["baseline"]: row["value"] for row in tables["baselines"]}
    assert levels["uniform"] == 1 / 32
    assert 0.25 < levels["value set"] < 0.35


def test_measured_rows_carry_their_interval_and_n(tables):
    for name in ("accuracy", "mass", "ablation", "baselines", "map"):
        for row in tables[name]:
            assert row["low"] <= row["value"] <= row["high"]
            assert row["n"] > 0


def test_it_reports_often_and_in_order(heard):
    parts, _ = heard
    done = [share for share, _ in parts]
    assert done == sorted(done)
    assert len(done) > 50


def test_sentences_tell_of_the_change(tables):
    texts = {s.key: s.text for s in right_slot_tell.sentences(SETTINGS, tables)}
    assert texts["change"].startswith("In 2 of 2 seeds")
    assert texts["mass"].count("rose") == 2
    for layer in (1, 2):
        assert f"layer {layer} lowers" in texts[f"ablation-{layer}"]
    assert texts["verdict"].startswith("In both layers: map and ablation agree")


def test_aloud_both_layers_are_told_whichever_of_them_hurts_more(tables):
    def of_layers(first, second):
        shares = {"none": 0.995, "layer 1": first, "layer 2": second}
        trained = with_(
            tables, "ablation", lambda r: r | {"value": shares[r["forced"]]} if r["state"] == "trained" else r
        )
        return [one.short for one in right_slot_tell.sentences(SETTINGS, trained) if one.short][:2]

    for first, second in ((0.53, 0.1), (0.1, 0.53)):
        assert of_layers(first, second) == [
            f"First layer blurred: {100 * first:.0f}% of its answers are right.",
            f"Second layer blurred: {100 * second:.0f}% of its answers are right.",
        ]


def test_verdict_flips_when_whole_and_flattened_are_swapped(tables):
    names = {"none": "layer 1", "layer 1": "none"}
    swapped = with_(tables, "ablation", lambda r: r | {"forced": names.get(r["forced"], r["forced"])})
    texts = {s.key: s.text for s in right_slot_tell.sentences(SETTINGS, swapped)}
    assert "layer 1 raises accuracy" in texts["ablation-1"]
    assert "agree" not in right_slot_tell.layer_verdict(swapped, 1)
    assert texts["change"].startswith("In 0 of 2 seeds")
    assert f"not within {SETTINGS.updates} updates" in texts["change"]


def test_verdict_flips_when_the_weight_falls(tables):
    last = SETTINGS.updates
    swapped = with_(
        tables, "mass", lambda r: r | {"update": {0: last, last: 0}.get(r["update"], r["update"])}
    )
    assert change_of_mass(swapped, 2) == -1
    assert right_slot_tell.mass(SETTINGS, swapped).text.count("fell") == 2
    assert "did not clearly move" in right_slot_tell.verdict(swapped).text


def test_no_difference_is_called_none(tables):
    same = with_(
        tables,
        "ablation",
        lambda r: r if r["state"] == "untrained" else r | {"value": 0.995},
    )
    for layer, words in ((1, "First"), (2, "Second")):
        claim = right_slot_tell.ablation(same, layer)
        assert "makes no clear difference" in claim.text
        assert claim.short == f"{words} layer blurred: no clear difference."
    assert "does not show that the answers depend on it" in right_slot_tell.verdict(same).text
    still = with_(tables, "mass", lambda r: r | {"value": 0.5})
    assert right_slot_tell.mass(SETTINGS, still).text.count("no clear difference") == 2


def test_one_seed_gives_no_verdict(tables):
    one = {name: [row for row in rows if row.get("seed", 2) == 2] for name, rows in tables.items()}
    settings = RightSlotSettings(seeds=1, first_seed=2)
    texts = {s.key: s.text for s in right_slot_tell.sentences(settings, one)}
    assert "no verdict" in texts["verdict"]
    assert "no interval" in texts["ablation-1"]


def test_a_seed_that_did_not_learn_is_said_and_left_out_of_the_mechanism(tables):
    def failed(row):
        return row | {"value": 0.2} if row["seed"] == 3 and row["state"] == "trained" else row

    text = right_slot_tell.change_text(SETTINGS, with_(tables, "ablation", failed))
    assert text.startswith("In 1 of 2 seeds")
    assert f"in 1 not within {SETTINGS.updates} updates (20.0%)" in text
    assert solvers(with_(tables, "ablation", failed)) == [2]


def test_figures_of_parts_and_of_all(tables):
    start = {name: rows for name, rows in tables.items() if name != "ablation"}
    start["ablation"] = [row for row in tables["ablation"] if row["state"] == "untrained"]
    start["accuracy"] = [row for row in tables["accuracy"] if row["update"] == 0]
    start["mass"] = [row for row in tables["mass"] if row["update"] == 0]
    assert right_slot_tell.figures(SETTINGS, start) == []
    names = [figure.name for figure in right_slot_tell.figures(SETTINGS, tables)]
    assert names == ["progress", "ablation"]
    half = {**tables, "ablation": start["ablation"]}
    assert [f.name for f in right_slot_tell.figures(SETTINGS, half)] == ["progress"]
    assert any("trained" in line and "layer 2" in line for line in right_slot_tell.lines(SETTINGS, tables))


def test_settings_refuse_fewer_keys_than_pairs():
    with pytest.raises(ValidationError, match="different keys"):
        RightSlotSettings(pairs=8, keys=4)
    for each in ("steps", "untrained", "right-slot"):
        assert panel(each).settings_from(panel(each).full)


def test_narrow_panels_name_three_updates_whose_numbers_do_not_touch():
    rows = [{"update": n, "seed": 0, "value": 0.5, "low": 0.4, "high": 0.6} for n in (0, 275)]
    chart = progress_panel(pl.DataFrame(rows), "Gaze", {}).to_dict()
    axes = [
        layer["encoding"]["x"]["axis"] for layer in chart["layer"] if "axis" in layer["encoding"].get("x", {})
    ]
    assert axes
    assert all(axis["values"] == [0, 137, 275] for axis in axes)
