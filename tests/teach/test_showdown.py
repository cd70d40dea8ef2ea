"""The tasting: blind until the vote, the same dice for both, sentences that follow the numbers."""

import re
import subprocess
import sys

import numpy as np
import pytest

from isoloss.cli.teaching import show_result
from isoloss.errors import InputError
from isoloss.figures.render import render
from isoloss.teach.deck.page import recordings
from isoloss.teach.panels import panel
from isoloss.teach.showdown import checkpoints, measure, tell
from isoloss.teach.showdown.checkpoints import FAMILIES
from isoloss.teach.showdown.writing import Writer, prompt_ids
from isoloss.teach.words import check_short

PANEL = panel("showdown")
SMALL = {"tokens": 24, "samples": 2}
FAMILY_WORDS = re.compile(r"transformer|lstm|recurren|attention", re.IGNORECASE)


def tasted(**changes):
    """Tables of a small tasting, and everything that was reported on the way."""
    settings, heard = PANEL.settings_from(SMALL | changes), []
    tables = PANEL.measure(settings, lambda done, text, tables=None: heard.append((done, text, tables)))
    return settings, tables, heard


@pytest.fixture(scope="module")
def tasting_of_default():
    return tasted()


def by_family(tables):
    """The shown texts by who wrote them."""
    texts = {row["label"]: row["text"] for row in tables["texts"]}
    return {row["family"]: texts[row["label"]] for row in tables["order"]}


def exchanged(tables):
    """The same numbers with the two sides' names exchanged."""
    other = dict(zip(FAMILIES, reversed(FAMILIES), strict=True))
    return {
        name: [{key: other.get(value, value) for key, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def test_no_step_stands_still_under_the_words_of_the_one_before(tasting_of_default):
    """What takes seconds is said before it begins."""
    _, _, heard = tasting_of_default
    assert [text for _, text, _ in heard][-2:] == [
        "reading the training text",
        "comparing with the training text",
    ]
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)


# Blind


def test_nothing_names_a_family_before_the_reveal(tasting_of_default):
    settings, tables, heard = tasting_of_default
    before = [text for _, text, _ in heard]
    before += tell.blind_lines(settings, tables)
    before += [str(tell.html(settings, some)) for _, _, some in heard if some]
    page, hidden = str(tell.html(settings, tables)), r"<(\w+)[^>]* data-reveal>.*?</\1>"
    assert len(re.findall(hidden, page)) == 5, "two names, two losses, the tally"
    before += [re.sub(hidden, "", page)]
    before += [f"{PANEL.title} {PANEL.question}", str([some for _, _, some in heard if some][-1])]
    assert not [line for line in before if FAMILY_WORDS.search(line)]
    for after in ("\n".join(tell.reveal_lines(settings, tables)), str(tell.html(settings, tables))):
        assert set(tell.NAMES.values()) <= set(FAMILY_WORDS.findall(after))


def test_the_terminal_draws_the_losses_after_the_reveal(capsys):
    held = recordings((PANEL,), None)[PANEL.name]
    show_result(PANEL, PANEL.settings_from(held.settings), held)
    out = capsys.readouterr().out
    assert out.index("(first token, by chance") < out.index("A = LSTM") < out.index("\nLoss by position: ")
    assert "o transformer" in out


def test_partial_tables_have_neither_order_nor_figures(tasting_of_default):
    settings, tables, heard = tasting_of_default
    partial = [some for _, _, some in heard if some]
    assert len(partial) == settings.tokens
    assert all(some.keys() == {"steps", "texts"} for some in partial)
    assert all(tell.figures(settings, some) == [] for some in partial)
    assert "data-vote" not in tell.html(settings, partial[-1])
    assert "order" in tables


def test_every_sentence_waits_for_the_reveal(tasting_of_default):
    settings, tables, _ = tasting_of_default
    sentences = tell.sentences(settings, tables)
    assert [one.key for one in sentences] == [
        "reveal-identities",
        "reveal-pair",
        "reveal-loss",
        "reveal-words",
        "reveal-rates",
        "reveal-positions",
        "reveal-copied",
    ]


def test_the_order_is_drawn_afresh_and_not_by_a_seed():
    assert measure.random_order(lambda n: 0) == {"A": "transformer", "B": "lstm"}
    assert measure.random_order(lambda n: 1) == {"A": "lstm", "B": "transformer"}
    np.random.seed(0)  # noqa: NPY002 - to show that it decides nothing
    assert len({measure.random_order()["A"] for _ in range(64)}) == 2


def test_the_page_offers_the_vote_and_hides_nothing_by_itself(tasting_of_default):
    settings, tables, _ = tasting_of_default
    page = str(tell.html(settings, tables))
    for vote in ("A", "B", "same"):
        assert f'data-vote="{vote}"' in page
    assert "data-reveal" in page
    assert " hidden" not in page
    labels = {row["label"]: tell.NAMES[row["family"]] for row in tables["order"]}
    heading = '<h3>{} <span class="identity" data-reveal>{}</span> <span class="loss" data-reveal>loss '
    assert all(heading.format(label, name) in page for label, name in labels.items())


# The same dice


def test_a_seed_gives_the_same_texts_whatever_the_order_and_the_number_of_samples(tasting_of_default):
    _, tables, _ = tasting_of_default
    _, three_samples, _ = tasted(samples=3)
    assert by_family(three_samples) == by_family(tables)
    _, other, _ = tasted(seed=1)
    assert all(by_family(other)[name] != by_family(tables)[name] for name in FAMILIES)


def test_both_sides_throw_the_same_dice(monkeypatch):
    thrown, original = {}, Writer.write  # by writer, which keeps it: a freed one's id may come again

    def write(self, dice_KB, **how):
        thrown.setdefault(self, []).append(dice_KB.copy())
        return original(self, dice_KB, **how)

    monkeypatch.setattr(Writer, "write", write)
    tasted(tokens=8)
    shown, partner, small, other = (np.stack(dice) for dice in thrown.values())
    assert np.array_equal(shown, partner)
    assert np.array_equal(small, other)
    assert not np.array_equal(small, small[::-1])


def test_what_is_said_to_be_taken_is_what_is_written(tasting_of_default):
    _, tables, _ = tasting_of_default
    for text in tables["texts"]:
        taken = [row for row in tables["steps"] if row["label"] == text["label"] and row["taken"]]
        assert [row["step"] for row in taken] == list(range(1, 25))
        if "\ufffd" not in text["text"]:
            assert "".join(row["token"] for row in taken) == text["text"]
        chances = [row["chance"] for row in tables["steps"] if row["label"] == text["label"]]
        assert all(0 < chance <= 1 for chance in chances)


def test_one_candidate_is_greedy_and_the_dice_do_not_matter():
    _, one, _ = tasted(top_k=1, tokens=8)
    _, other, _ = tasted(top_k=1, tokens=8, seed=9)
    assert by_family(one) == by_family(other)
    assert {row["chance"] for row in one["steps"]} == {1.0}


# Hostile prompts


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " \n\t",
        "<script>alert(1)</script>",
        "\x1b[31m\x00\x07\u202eabc",
        "\ud800 half",
        "\U0001f600 snow \u2603",
        "<|endoftext|>",
        "word " * 100,
    ],
)
def test_hostile_prompts_are_text(prompt):
    try:
        settings, tables, _ = tasted(prompt=prompt, tokens=8)
    except InputError:
        assert prompt.startswith("\ud800")  # no UTF-8 holds half a pair; settings refuse it
        return
    printed = "\n".join([*tell.blind_lines(settings, tables), *tell.reveal_lines(settings, tables)])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", printed)
    page = str(tell.html(settings, tables))
    assert "<script" not in page
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", page)
    assert len(tables["texts"]) == 2


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"prompt": "x" * 100_000}, "prompt"),
        ({"tokens": 10**9}, "tokens"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_what_is_too_large_is_refused_by_name(values, key):
    with pytest.raises(InputError, match=key):
        PANEL.settings_from(values)


def test_a_marker_in_a_prompt_is_plain_text():
    tokenizer = checkpoints.tokenizer()
    assert 0 not in prompt_ids(tokenizer, "a <|endoftext|> b")
    assert prompt_ids(tokenizer, "") == [0]
    assert prompt_ids(tokenizer, "\ud800") == prompt_ids(tokenizer, "?")


# Verdicts


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


def test_texts_too_short_for_runs_say_so():
    settings, tables, _ = tasted(tokens=8)
    short = {
        **tables,
        "novelty": [],
        "samples": [{**row, "copied_4": None} for row in tables["samples"]],
    }
    assert tell.copies(short) == tell.TOO_SHORT
    assert tell.reveal_lines(settings, short)


# The whole


def test_a_result_can_be_told_and_drawn(tasting_of_default):
    settings, tables, _ = tasting_of_default
    assert tell.count(settings, tables) == 6
    assert tell.sentences(settings, tables)
    figures = tell.figures(settings, tables)
    assert [figure.name for figure in figures] == ["loss-by-position"]
    for figure in figures:
        assert {"value", "low", "high", "n"} <= set(figure.table.columns)
        assert "Transformer" in render(figure).svg


def test_the_titles_of_figures_flip_with_the_sides(tasting_of_default):
    settings, tables, _ = tasting_of_default
    tables = {**tables, **losses([3.70, 3.71, 3.72], [3.50, 3.51, 3.52])}
    tables["recorded"] = [{**tables["recorded"][0], "vocab": 1024}]
    one, other = (tell.figures(settings, some)[0].title for some in (tables, exchanged(tables)))
    assert one == "Loss by position: the LSTM gains more from context"
    assert other == "Loss by position: the Transformer gains more from context"


def test_positions_cover_the_window_once(tasting_of_default):
    _, tables, _ = tasting_of_default
    for name in FAMILIES:
        bins = [(row["first"], row["last"]) for row in tables["positions"] if row["family"] == name]
        assert bins == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 256)]
    weights = [row["last"] - row["first"] + 1 for row in tables["positions"] if row["family"] == "lstm"]
    values = [row["value"] for row in tables["positions"] if row["family"] == "lstm"]
    losses = [row["loss"] for row in tables["held_out"] if row["family"] == "lstm"]
    assert np.average(values, weights=weights) == pytest.approx(np.mean(losses), abs=1e-5)


def test_telling_needs_no_torch():
    code = "import sys; from isoloss.teach.showdown import tell; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
