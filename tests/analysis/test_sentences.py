"""What a reader meets first is short: at most 30 words and three numbers a sentence, over every story."""

import re

import pytest
import story

from isoloss.analysis.findings import findings
from isoloss.records import load, reference

INTERVAL = re.compile(r"\([^()]*\d[^()]* (?:to|and) [^()]*\)")
NUMBER = re.compile(r"(?<![\w-])[+−]?\d[\d.,]*(?:[–-]\d+)?%?[KMBT]?(?![\w-]*layer)(?!-fold)")
WORDS, NUMBERS = 30, 3
WHOLE = 25
"""Words of a whole finding of a study that ships."""


def sentences(text):
    return re.split(r"(?<=[.?!]) ", text)


def numbers(sentence):
    """Each with its interval in brackets is one; '2-layer' is a name."""
    return NUMBER.findall(INTERVAL.sub("", sentence))


def too_much(text):
    return [
        sentence
        for sentence in sentences(text)
        if len(sentence.split()) > WORDS or len(numbers(sentence)) > NUMBERS
    ]


@pytest.mark.parametrize("name", reference.names()[1:])
def test_recorded_studies_speak_shortly(name):
    for finding in findings(load(reference.folder(name))):
        assert too_much(finding.sentence) == [], finding.key
        assert len(finding.sentence.split()) <= WHOLE, finding.key


@pytest.mark.parametrize("name", [name for name, one in vars(story).items() if isinstance(one, story.Story)])
def test_made_up_studies_speak_shortly(told, name):
    for finding in findings(told(getattr(story, name))):
        assert too_much(finding.sentence) == [], finding.key


def test_the_trend_of_context_is_said_with_its_interval():
    (finding,) = findings(load(reference.folder("reference/context")))
    assert re.search(r"−0\.\d+ \(−0\.\d+ to −0\.\d+\) for tenfold N", finding.sentence)


def test_a_long_sentence_and_one_of_many_numbers_are_found():
    assert too_much("word " * 31 + "end.")
    assert too_much("It is 0.1 at 1K, 0.2 at 2K and 0.3 at 3K.")
    assert not too_much("The 4-layer LSTM is ahead by 0.1 nats (0.05 to 0.15) at N = 1K. It is so at D = 2K.")
