"""What the tasting says when it is over: who predicts, copies and spells better follows the numbers."""

import pytest

from isoloss.teach.deck.page import recordings
from isoloss.teach.panels import panel
from isoloss.teach.showdown import measure, tell
from isoloss.teach.showdown.checkpoints import FAMILIES
from isoloss.teach.words import check_short

PANEL = panel("showdown")


def exchanged(tables):
    """The same numbers with the two sides' names exchanged."""
    other = dict(zip(FAMILIES, reversed(FAMILIES), strict=True))
    return {
        name: [{key: other.get(value, value) for key, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def losses(transformer, lstm):
    """Tables for the sentences on recorded losses; early losses are alike, late ones are the losses."""
    runs = {"transformer": transformer, "lstm": lstm}
    rows = [
        {"family": name, "seed": seed, "loss": value, "early": 5.0, "late": value}
        for name, values in runs.items()
        for seed, value in enumerate(values)
    ]
    return {"held_out": rows, "recorded": [{"made": "2026-11-28", "context": 256}]}


def test_the_verdict_on_loss_follows_the_numbers():
    apart = losses([3.70, 3.71, 3.72], [3.50, 3.51, 3.52])
    assert tell.loss(apart).endswith("the LSTM predicts held-out text better.")
    assert tell.loss(exchanged(apart)).endswith("the Transformer predicts held-out text better.")
    assert tell.context(apart).endswith("the LSTM gains more from context.")
    assert tell.context(exchanged(apart)).endswith("the Transformer gains more from context.")


def test_overlapping_intervals_are_no_clear_difference():
    close = losses([3.50, 3.60, 3.55, 3.55], [3.52, 3.58, 3.57, 3.55])
    assert tell.loss(close).endswith("no clear difference.")
    assert tell.context(close).endswith("no clear difference.")
    few = tell.loss(losses([3.50, 3.60, 3.55], [3.52, 3.58, 3.57]))
    assert few.endswith("three seeds are too few to tell them apart.")
    assert "interval" not in few


def test_runs_of_one_seed_are_compared_with_each_other():
    paired = losses([3.0, 4.0, 5.0, 6.0], [3.1, 4.12, 5.11, 6.09])
    assert tell.loss(paired).endswith("the Transformer predicts held-out text better.")
    # Control: the same losses, each beside that of another seed.
    assert tell.loss(losses([3.0, 4.0, 5.0, 6.0], [6.09, 3.1, 5.11, 4.12])).endswith("no clear difference.")


def test_the_room_hears_whose_losses_they_are_beside_texts_of_another_pair():
    held = recordings([PANEL], None)["showdown"]
    close = losses([3.50, 3.60, 3.55, 3.55], [3.52, 3.58, 3.57, 3.55])["held_out"]
    for rows in (held.tables["held_out"], close):
        sentences = tell.sentences(PANEL.settings_from(held.settings), held.tables | {"held_out": rows})
        short = {one.key: one.short for one in sentences}
        for key in ("reveal-loss", "reveal-positions"):
            assert short[key].startswith("Other models: ")
        assert not short["reveal-words"].startswith("Other"), "control: this one is of the pair"


def shown(transformer, lstm):
    losses = {"transformer": transformer, "lstm": lstm}
    return {"shown": [{"family": family, "loss": loss} for family, loss in losses.items()]}


def test_the_two_that_write_have_their_losses_and_no_verdict():
    one, other = tell.pair_short(shown(3.719, 3.867)), tell.pair_short(shown(3.9, 3.8))
    assert one == check_short("The writers: Transformer's loss 0.15 lower; one seed, no verdict.")
    assert other == check_short("The writers: LSTM's loss 0.10 lower; one seed, no verdict.")
    held = recordings([PANEL], None)["showdown"]
    by_key = {one.key: one for one in held.sentences}
    assert [one.key for one in held.sentences if one.short][:2] == ["reveal-pair", "reveal-loss"]
    assert by_key["reveal-pair"].ahead == "", "one seed finds nobody ahead"
    html = str(tell.html(PANEL.settings_from(held.settings), held.tables))
    for row in held.tables["order"]:
        loss = next(one["loss"] for one in held.tables["shown"] if one["family"] == row["family"])
        side = html.split(f'data-side="{row["label"]}"')[1].split("</h3>")[0]
        assert f"data-reveal>{tell.NAMES[row['family']]}</span>" in side
        assert f"data-reveal>loss {loss:.2f}</span>" in side, "hidden until the vote"


def test_a_side_tuned_worse_is_said_to_be():
    def at(family, rate, loss, recipe):
        return {"family": family, "learning_rate": rate, "loss": loss, "recipe": recipe}

    transformer = [at("transformer", 0.003, 3.8, False), at("transformer", 0.006, 3.7, True)]
    lstm = [at("lstm", 0.006, 3.6, False), at("lstm", 0.012, 3.7, True)]
    sentence = tell.tuning({"rates": [*transformer, *lstm]})
    assert "Transformer 0.003: 3.800, 0.006: 3.700 (the recipe's is the best of these)" in sentence
    assert "LSTM 0.006: 3.600, 0.012: 3.700 (0.006 is 0.100 better than the recipe's)" in sentence
    assert tell.tuning(exchanged({"rates": [*transformer, *lstm]})) != sentence


def real(transformer, lstm):
    """Tables for the sentence on real words: shares by text."""
    sides = {"transformer": transformer, "lstm": lstm, measure.PEOPLE: [0.99, 0.98]}
    return {"real": [{"side": side, **measure.over_texts(values, True)} for side, values in sides.items()]}


def test_the_share_of_real_words_is_of_the_worse_side():
    tables = real([0.98, 0.99, 1.0], [0.9, 0.94, 0.92])
    assert tell.real_words_short(tables) == "At least 92% of their words are real words."
    assert "Transformer 99.0%, LSTM 92.0%, held-out text 98.5%" in tell.real_words(tables)
    assert tell.real_words_short({"real": []}) == ""
    nearly = real([1.0, 1.0, 0.998], [0.99, 1.0, 0.997])
    assert tell.real_words_short(nearly) == "At least 99% of their words are real words."


def test_words_that_no_book_holds_are_not_real(monkeypatch):
    two = [(b"the", b"day", b"was", b"fine"), (b"the", b"dayish", b"was", b"funed")]
    texts = dict.fromkeys(FAMILIES, two)
    monkeypatch.setattr(measure, "written_words", lambda _, writer: texts[writer])
    rows = measure.real_words(None, {name: name for name in FAMILIES})
    values = {row["side"]: row["value"] for row in rows}
    assert values["lstm"] == values["transformer"] == 0.75
    assert values[measure.PEOPLE] > 0.9


def test_the_recorded_pair_writes_real_words():
    """Of the full recording: more than 97 of 100 words that either model writes are in the training books."""
    rows = {row["side"]: row for row in recordings([PANEL], None)["showdown"].tables["real"]}
    assert min(rows[name]["value"] for name in FAMILIES) > 0.97


def writings(transformer, lstm):
    """Tables for the sentences on texts: every measure has the value given."""
    sides = {"transformer": transformer, "lstm": lstm, measure.PEOPLE: [0.06, 0.08, 0.07, 0.05]}
    keys = ("copied_4", "copied_8", "distinct_1", "distinct_2")
    samples = {
        side: [{"words": 20, "longest": 4, **dict.fromkeys(keys, value)} for value in values]
        for side, values in sides.items()
    }
    rows = [{"side": side, **row} for side, texts in samples.items() for row in texts]
    return {"samples": rows, "novelty": measure.novelty(samples)}


def test_the_verdicts_on_texts_follow_the_numbers():
    apart = writings([0.30, 0.32, 0.31, 0.29], [0.10, 0.12, 0.11, 0.09])
    assert "the Transformer repeats more of the training text" in tell.copies(apart)
    assert "the LSTM repeats more of the training text" in tell.copies(exchanged(apart))
    close = writings([0.10, 0.30, 0.20, 0.15], [0.12, 0.28, 0.22, 0.14])
    assert "no clear difference" in tell.copies(close)


def test_no_copies_in_few_texts_are_not_certain_to_be_none():
    row = writings([0.0] * 4, [0.0] * 4)["novelty"][0]
    assert (row["value"], row["low"]) == (0.0, 0.0)
    assert row["high"] == pytest.approx(0.49, abs=0.01)
    assert measure.over_texts([0.0, 0.1], True)["low"] == 0.0


def test_the_titles_of_figures_flip_with_the_sides():
    held = recordings([PANEL], None)["showdown"]
    settings, tables = PANEL.settings_from(held.settings), held.tables
    tables = {**tables, **losses([3.70, 3.71, 3.72], [3.50, 3.51, 3.52])}
    tables["recorded"] = [{**tables["recorded"][0], "vocab": 1024}]
    one, other = (tell.figures(settings, some)[0].title for some in (tables, exchanged(tables)))
    assert one == "Loss by position: the LSTM gains more from context"
    assert other == "Loss by position: the Transformer gains more from context"
