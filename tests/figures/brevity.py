"""How long a sentence is and how many numbers it holds, as a reader counts them."""

import re

from isoloss import text

INTERVAL = re.compile(r"\([^()]*\d[^()]* (?:to|and) [^()]*\)")
FORMULA = re.compile(r"\b\w+ = [^,;]*\^[^,;]*")
NUMBER = re.compile(r"(?<![\w-])[+−]?\d[\d.,]*(?:[–-]\d+)?%?[KMBT]?(?![\w-]*layer)(?!-fold)")
WORDS, NUMBERS = 30, 3
ROWS = re.compile(r"rows? \d+(?:, \d+)*(?: and \d+ more)?")
POINT = re.compile(r"\((?:\w+ [\d.e]+[KMBT]?(?:, )?)+\)")
MOST = 20
"""Words of a warning before its detail."""


def sentences(text):
    return re.split(r"(?<=[.?!]) ", text)


def numbers(sentence):
    """Each with its interval in brackets is one, and so is a formula; '2-layer' is a name."""
    return NUMBER.findall(FORMULA.sub("1", INTERVAL.sub("", sentence)))


def too_long(text):
    return [sentence for sentence in sentences(text) if len(sentence.split()) > WORDS]


def too_much(text):
    return too_long(text) + [sentence for sentence in sentences(text) if len(numbers(sentence)) > NUMBERS]


def wordy(warning):
    """Whether what is said before the detail is more than ``MOST`` words or ``NUMBERS`` numbers.

    Named rows are one word, and so is a point such as (params 7B, tokens 140B).
    """
    first = POINT.sub("there", ROWS.sub("rows", text.headline(warning)[0]))
    return len(first.split()) > MOST or len(numbers(first)) > NUMBERS
