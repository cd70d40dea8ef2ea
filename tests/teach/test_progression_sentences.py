"""The training demo's sentences, and the loss below which nothing can be: exact by brute force."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from isoloss.errors import InputError
from isoloss.teach.panels import panel
from isoloss.teach.progression.corpus import (
    END,
    UNKNOWN,
    corpus_of,
    entropy_floor,
    longest_copied,
    shipped_text,
)
from isoloss.teach.tasks import NOT_ASKED

KNOWN = (
    ([(2, 3), (2, 4)], 2 * math.log(2) / 6),
    ([(2, 3), (2, 3)], 0.0),
    ([(2,), (2, 3)], 2 * math.log(2) / 5),
    ([(2, 3, 4), (5, 3, 6)], 2 * math.log(2) / 8),
    ([(2,), (2,), (3,)], (3 * math.log(3) - 2 * math.log(2)) / 6),
)


def brute_force(sentences):
    """Every position by itself: who shares its whole prefix, and what did they do next?"""
    whole = [(*sentence, END) for sentence in sentences]
    nats = [
        -math.log(sum(w[: t + 1] == s[: t + 1] for w in whole) / sum(w[:t] == s[:t] for w in whole))
        for s in whole
        for t in range(len(s))
    ]
    return sum(nats) / len(nats)


def bigram_floor(sentences):
    """Wrong on purpose: it looks one word back instead of at the whole prefix."""
    pairs = Counter(pair for s in sentences for pair in pairwise((END, *s, END)))
    firsts = Counter()
    for (first, _), count in pairs.items():
        firsts[first] += count
    return -sum(c * math.log(c / firsts[a]) for (a, _), c in pairs.items()) / sum(pairs.values())


def is_exact(floor):
    known = all(math.isclose(floor(s), answer, abs_tol=1e-12) for s, answer in KNOWN)
    rng = np.random.default_rng(0)
    drawn = [[tuple(rng.integers(2, 5, rng.integers(1, 5)).tolist()) for _ in range(12)] for _ in range(40)]
    return known and all(math.isclose(floor(s), brute_force(s), abs_tol=1e-12) for s in drawn)


def test_the_floor_is_what_brute_force_finds_and_a_wrong_one_is_caught():
    assert is_exact(entropy_floor)
    assert not is_exact(bigram_floor)
    assert not is_exact(lambda sentences: 1.001 * entropy_floor(sentences))


def test_the_shipped_floor_follows_from_the_chain_rule():
    # Different sentences: the tokens of one together have the entropy ln S of which sentence it is.
    corpus = corpus_of("", 0.2, 0)
    tokens = sum(1 + len(sentence) for sentence in corpus.training)
    assert corpus.floor == pytest.approx(80 * math.log(80) / tokens, abs=1e-12)
    assert 0.3 < corpus.floor < corpus.uniform


def test_the_shipped_sentences_are_short_different_and_in_plain_letters():
    lines = shipped_text().splitlines()
    assert len(lines) == len(set(lines)) == 100
    assert all(7 <= len(line.split()) <= 10 for line in lines)
    assert all(line == line.lower() and line.replace(" ", "").isalpha() for line in lines)
    assert sum(line.startswith("we propose a ") for line in lines) >= 20


def test_the_split_is_disjoint_and_fixed_by_its_seed():
    one, second, other = (corpus_of("", 0.2, seed) for seed in (0, 0, 1))
    assert one == second
    assert set(one.held_out) != set(other.held_out)
    assert not set(one.training) & set(one.held_out)
    assert (len(one.training), len(one.held_out)) == (80, 20)


def test_words_are_numbered_in_order_of_appearance():
    corpus = corpus_of("", 0.2, 0)
    appearing = list(dict.fromkeys(token for sentence in corpus.training for token in sentence))
    assert appearing == list(range(2, corpus.vocab))


def own_corpus():
    """Ten sentences, each with a last word that no other has."""
    return "\n".join(f"we like the number {'i' * number}" for number in range(1, 11))


def test_a_held_out_word_that_is_not_trained_is_read_but_never_asked():
    corpus = corpus_of(own_corpus(), 0.2, 0)
    x_BT, y_BT = corpus.task(corpus.held_out).batch(np.random.default_rng(0), 1)
    assert len(corpus.held_out) == 2
    assert (x_BT[:, 5] == UNKNOWN).all()
    assert (y_BT[:, 4] == NOT_ASKED).all()
    assert (y_BT != UNKNOWN).all()
    assert (y_BT[:, 5] == END).all()
    assert corpus.task(corpus.held_out).answers == (y_BT != NOT_ASKED).sum() == 10


def test_a_sentence_that_comes_twice_is_kept_once():
    corpus = corpus_of(own_corpus() + "\nWe like the number III.\n", 0.2, 0)
    assert corpus.dropped == 1
    assert len(corpus.training) + len(corpus.held_out) == 10


def test_the_longest_copied_run():
    training = [(2, 3, 4, 5), (6, 7)]
    assert longest_copied((9, 3, 4, 5, 6), training) == 3
    assert longest_copied((5, 6), training) == 1
    assert longest_copied((9, 9), training) == 0
    assert longest_copied((), training) == 0


@pytest.mark.parametrize(
    "hostile",
    [
        {"prompt": ""},
        {"prompt": " \n "},
        {"prompt": "we " * 100_000},
        {"prompt": "we " * 40},
        {"prompt": "<script>alert(1)</script>"},
        {"prompt": "we propose\0 a"},
        {"prompt": "we \u202epropose"},
        {"corpus": "one"},
        {"corpus": "one sentence alone"},
        {"corpus": "word " * 100_000},
        {"corpus": "\n".join(f"we like {n}" for n in range(400))},
        {"corpus": "\n".join(f"we like {n} " + "very " * 40 for n in range(12)), "prompt": "we"},
        {"corpus": own_corpus() + "\n\0", "prompt": "we"},
        {"corpus": own_corpus()},
        {"corpus": ["we"]},
        {"rates": []},
        {"rates": [0.01, 0.01]},
        {"rates": [math.nan]},
        {"rates": [10.0]},
        {"held_out": 0.9},
        {"samples": 10},
        {"d_model": 10},
        {"updates": 10**9},
        {"unheard_of": 1},
    ],
)
def test_hostile_settings_are_input_errors(hostile):
    with pytest.raises(InputError):
        panel("training").settings_from(hostile)


def test_own_sentences_with_a_prompt_of_theirs_are_taken():
    settings = panel("training").settings_from({"corpus": own_corpus(), "prompt": "We like"})
    assert settings.read().beginning(settings.prompt) == (2, 3)
