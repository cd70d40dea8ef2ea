"""The packaged models read a sentence: the numbers are the models' own, and the sentences follow them."""

import copy
from importlib import resources

import numpy as np
import pytest
import torch
from torch import nn

from isoloss.models.lstm import initialise
from isoloss.teach.amnesia.contest.tell import cells_of, sign_of
from isoloss.teach.attention.right_slot import tell as right_slot_tell
from isoloss.teach.attention.settings import TrainedSettings
from isoloss.teach.attention.trained import tell
from isoloss.teach.attention.trained.gates import left_of, trace
from isoloss.teach.attention.trained.measure import measure
from isoloss.teach.deck import page
from isoloss.teach.learner import TEST_STREAM
from isoloss.teach.panels import PANELS
from isoloss.teach.tasks import Binding
from isoloss.teach.words import check_short

SETTINGS = TrainedSettings(sentence="the man said that he was in the house")


@pytest.fixture(scope="module")
def tables():
    return measure(SETTINGS, lambda *_: None)


def test_the_gates_are_those_of_torchs_own_layer():
    layer = nn.LSTM(6, 6)
    initialise(layer)
    x_TD = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
    lstm_trace = trace(layer, x_TD)
    h_TD, _ = layer(x_TD)
    assert torch.allclose(lstm_trace.h_TD, h_TD, atol=1e-6)
    assert all(((gate > 0) & (gate < 1)).all() for gate in lstm_trace.gates_TD.values())


def test_ink_is_what_the_forget_gates_leave():
    """With every forget gate at f, f^(t - s) is left, whatever was written."""
    written_TD = torch.tensor([[1.0, -2.0], [0.5, 0.5], [3.0, -1.0]])
    left_ST = left_of(written_TD, torch.full((3, 2), 0.5))
    assert left_ST.tolist() == [[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]


def test_weights_look_back_only_and_each_row_adds_up_to_one(tables):
    rows = {}
    for row in tables["map"]:
        assert row["looks_at"] <= row["place"]
        rows.setdefault(tuple(row[key] for key in ("weights", "layer", "head", "place")), []).append(
            row["value"]
        )
    assert len(rows) == 2 * 4 * 4 * len(tables["tokens"])
    assert np.allclose([sum(values) for values in rows.values()], 1.0, atol=1e-5)


def test_trained_and_random_weights_differ_and_a_flat_layer_changes_what_comes_next(tables):
    maps = {
        kind: [row["value"] for row in tables["map"] if row["weights"] == kind]
        for kind in ("trained", "random")
    }
    assert max(abs(a - b) for a, b in zip(*maps.values(), strict=True)) > 0.2
    chances = {
        flat: [
            row["chance"]
            for row in tables["next"]
            if (row["model"], row["flattened"]) == ("transformer", flat)
        ]
        for flat in (0, 1, 2)
    }
    assert all(values == sorted(values, reverse=True) for values in chances.values())
    assert chances[0] != chances[1] != chances[2]


def test_the_sentence_that_ships_needs_its_first_layer_as_the_notes_say():
    held = page.recordings(PANELS, None)["trained"].tables
    tokens, arrays = [row["token"].strip() for row in held["tokens"]], tell.arrays(held)
    assert {key: arrays["begin"][key] for key in ("layer", "head")} == {"layer": 1, "head": 1}
    own = arrays["weights"]["trained"][0][0][-1]
    assert tokens[own.index(max(own))] == "Darcy"
    assert max(own) > 0.5
    first = {row["flattened"]: row["likeliest"][0][0] for row in arrays["next"] if row["model"] != "lstm"}
    assert (first[0], first[2]) == ("Darcy", "Darcy")
    assert first[1] != "Darcy"


def sentences_of(tables):
    return {sentence.key: sentence for sentence in tell.sentences(SETTINGS, tables)}


def reweighted(tables, **looks):
    """Every head looks evenly, but the last token of ``head_LAYER_HEAD``: (weight, how far back)."""
    other, last = copy.deepcopy(tables), len(tables["tokens"])
    for row in other["map"]:
        weight, back = looks.get(f"head_{row['layer']}_{row['head']}", (None, None))
        here = weight is not None and row["place"] == last and row["weights"] == "trained"
        row["value"] = weight if here and row["looks_at"] == last - back else 1 / row["place"]
    return other


def test_the_sentence_and_the_picture_are_of_one_head_that_looks_far_back(tables):
    even = reweighted(tables)
    assert sentences_of(even)["look"].short == "No head has one favourite here."
    near = reweighted(tables, head_2_3=(0.9, 1), head_4_1=(0.45, 6))
    token = tables["tokens"][-2]["token"].strip()
    assert (
        sentences_of(near)["look"].short
        == f"Second layer, third head, picked from 16: looks mostly at “{token}”."
    )
    far = reweighted(tables, head_2_3=(0.9, 1), head_4_1=(0.55, 6))
    token = tables["tokens"][-7]["token"].strip()
    assert sentences_of(far)["look"].short == check_short(
        f"Fourth layer, first head, picked from 16: looks mostly at “{token}”."
    )
    assert f"on token {len(tables['tokens']) - 6}." in sentences_of(far)["look"].text
    begins = [tell.arrays(these)["begin"] for these in (near, far)]
    assert [(begin["layer"], begin["head"]) for begin in begins] == [(2, 3), (4, 1)]


def test_a_head_that_was_picked_is_said_to_be_so_with_what_the_others_do(tables):
    far = reweighted(tables, head_2_3=(0.9, 1), head_4_1=(0.55, 6), head_1_2=(0.31, 6))
    even = 1 / len(tables["tokens"])
    assert (
        f"picked because it looks back farthest; the other 15 put {even:.2f} to 0.31"
        in sentences_of(far)["look"].text
    )
    assert tell.arrays(far)["begin"]["sentence"] == "Picked from 16 heads: looks back farthest."
    # Control: where no head has a favourite, none was picked for one.
    begin = tell.arrays(reweighted(tables))["begin"]
    assert begin["sentence"] == "One of 16 heads: none has one favourite here."


def inked(tables, **layers):
    """LSTM layers that keep these shares of every token but the last."""
    other = copy.deepcopy(tables)
    for row in other["ink"]:
        row["value"] = 1.0 if row["token"] == row["place"] else layers[f"layer_{row['layer']}"]
    return other


def test_the_lstm_layer_that_is_shown_beside_the_picked_head_keeps_most(tables):
    first, second = inked(tables, layer_1=0.6, layer_2=0.2), inked(tables, layer_1=0.2, layer_2=0.6)
    assert [tell.arrays(these)["carried"]["layer"] for these in (first, second)] == [1, 2]
    token = tell.shown(tables["tokens"][0]["token"])
    for these in (first, second):
        assert sentences_of(these)["ink"].short == f"LSTM: the better of two layers keeps 60% of “{token}”."
        # Control: the layer that keeps least is never told.
        assert "20%" not in tell.arrays(these)["carried"]["sentence"]


def test_the_first_slide_shows_the_lstm_at_its_best_and_says_what_it_keeps():
    held = page.recordings(PANELS, None)["trained"].tables
    arrays, last = tell.arrays(held), len(held["tokens"]) - 1
    at = arrays["tokens"].index("Darcy")
    left = [ink[at][last - at] for ink in arrays["ink"]]
    layer, sentence = arrays["carried"]["layer"], arrays["carried"]["sentence"]
    assert left[layer - 1] == max(left) > 2 * min(left)
    assert f"keeps {100 * max(left):.0f}% of “Darcy”." in check_short(sentence)
    check_short(arrays["begin"]["sentence"])


def test_a_layer_that_the_answer_does_not_need_is_said_to_be_so(tables):
    same = copy.deepcopy(tables)
    whole = [row for row in same["next"] if (row["model"], row["flattened"]) == ("transformer", 0)]
    same["next"] = whole + [{**row, "flattened": layer} for layer in (1, 2) for row in whole]
    assert sentences_of(same)["flat-2"].short == "Second layer blurred: same next words."
    other = copy.deepcopy(same)
    for row in other["next"]:
        if row["flattened"] == 2:
            row["token"] += "x"
    assert sentences_of(other)["flat-2"].short == "Second layer blurred: 0 of three next words stay."
    assert len(tell.arrays(other)["next"][0]["likeliest"]) == 3, "as many as are told"


def test_the_drawing_gets_the_tables_numbers(tables):
    arrays = tell.arrays(tables)
    T = len(arrays["tokens"])
    for row in tables["map"]:
        nested = arrays["weights"][row["weights"]][row["layer"] - 1][row["head"] - 1][row["place"] - 1]
        assert nested[row["looks_at"] - 1] == pytest.approx(row["value"], abs=6e-4)
    assert [len(ink) for ink in arrays["ink"][0]] == list(range(T, 0, -1))
    assert arrays["ink"][0][0][0] == 1.0
    sentences = {
        row["flattened"]: row.get("sentence") for row in arrays["next"] if row["model"] == "transformer"
    }
    verdicts = {layer: tell.flat(tables, layer).short.split(": ")[1] for layer in range(1, 5)}
    assert sentences == {0: None} | {layer: verdict.capitalize() for layer, verdict in verdicts.items()}


def test_the_drawing_of_the_cards_gets_the_recorded_strings_weights_and_right_slots():
    held = page.recordings(PANELS, None)["right-slot"].tables
    arrays = right_slot_tell.arrays(held)
    assert len(arrays["tokens"]) == len(held["string"]) == 12
    assert [hue is not None for hue in arrays["hues"]] == [row["role"] == "value" for row in held["string"]]
    for row in held["map"]:
        kind = {"trained": "trained", "untrained": "random"}[row["state"]]
        weights = arrays["weights"][kind][row["layer"] - 1][0][row["place"]]
        assert len(weights) == row["place"] + 1, "backwards only"
        assert weights[row["looks_at"]] == pytest.approx(row["value"], abs=6e-4)
    # A question has the name of the key that it asks for, and no other token has.
    for n, row in enumerate(held["string"]):
        asked = arrays["tokens"][n].rstrip("?")
        if row["role"] == "query":
            keys = [held["string"][at]["token"] for at, name in enumerate(arrays["tokens"]) if name == asked]
            assert keys == [row["token"].rstrip("?")]


def test_the_cards_that_attention_is_asked_about_are_those_of_the_test_before_it():
    """Slide 8 shows one string twice: what models answer to it, and where attention looks."""
    recorded = page.recordings(PANELS, None)
    held, binding = recorded["right-slot"], recorded["binding"]
    arrays, example = right_slot_tell.arrays(held.tables), binding.tables["example"]
    cell = cells_of(binding.tables, ("keys", "pairs", "width"))[0]
    signs = [sign_of(row["token"], cell) for row in example]
    assert [name.rstrip("?") for name in arrays["tokens"]] == [sign["text"] for sign in signs]
    assert arrays["hues"] == [sign.get("hue") for sign in signs]
    # Control: the test's unseen strings are others.
    task = Binding(*(held.settings[name] for name in ("pairs", "keys", "values")))
    scored, _ = task.batch(np.random.default_rng([TEST_STREAM, 500]), 500)
    assert not (scored == [row["token"] for row in example]).all(1).any()


def test_without_a_script_the_last_tokens_weights_are_a_table(tables):
    html = str(tell.html(SETTINGS, tables))
    assert html.count('<tr><th scope="row">') == len(tables["tokens"])
    assert 'data-machine="web"' in html
    assert tell.html(SETTINGS, {"map": []}) == ""


def test_every_machine_that_a_page_names_has_a_script():
    folder = resources.files("isoloss.teach.deck").joinpath("machines")
    scripts = "".join(part.read_text("utf-8") for part in folder.iterdir())
    for kind in ("cell", "web", "dictionary", "blame"):
        assert f"kinds.{kind} = " in scripts
