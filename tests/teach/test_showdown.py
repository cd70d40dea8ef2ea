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


# The whole


def test_texts_too_short_for_runs_say_so():
    settings, tables, _ = tasted(tokens=8)
    short = {
        **tables,
        "novelty": [],
        "samples": [{**row, "copied_4": None} for row in tables["samples"]],
    }
    assert tell.copies(short) == tell.TOO_SHORT
    assert tell.reveal_lines(settings, short)


def test_a_result_can_be_told_and_drawn(tasting_of_default):
    settings, tables, _ = tasting_of_default
    assert tell.count(settings, tables) == 6
    assert tell.sentences(settings, tables)
    figures = tell.figures(settings, tables)
    assert [figure.name for figure in figures] == ["loss-by-position"]
    for figure in figures:
        assert {"value", "low", "high", "n"} <= set(figure.table.columns)
        assert "Transformer" in render(figure).svg


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
