"""What no sentence here may say: claims that the measurements do not carry."""

import re

from isoloss.errors import RunError

FORBIDDEN = (
    r"mathematical(ly)? proof|mathematically prove",
    r"forgotten entirely|forgets? everything",
    r"vanishing gradient destroyed",
    r"\bcannot\b|\bcan not\b|\bcan't\b|\bis unable\b|\bimpossible\b",
    r"O\(1\) (parallel )?(transformer|process|architecture|context)",
    r"infinitely (better|faster)",
    r"loss to (zero|0)\b",
    r"\bperfect(ly)?\b",
    r"exactly \d+(\.\d+)? ?%",
    r"absorbs? \d",
    r"\bdestroy",
    r"hallucinat",
    r"x faster at training",
    r"how ChatGPT works",
)
"""Patterns, whatever the case. "cannot" is among them since a capped run only says "not within N updates"."""

_PERCENT = re.compile(r"\d\s?%")
_UNITS = "strings|sentences|texts|tokens|windows|samples"
_COUNTED = re.compile(rf"\bn\s?=\s?[\d,]*\d|\b\d[\d,]* (unseen |held-out |fresh )?({_UNITS})\b")


def faults(sentence: str) -> list[str]:
    """What is wrong with a sentence about measurements: a forbidden claim, a percentage without n."""
    wrong = [
        f"says {match.group(0)!r}" for p in FORBIDDEN if (match := re.search(p, sentence, re.IGNORECASE))
    ]
    measured = re.sub(r"\b\d+(\.\d+)?\s?% (Wilson |t |bootstrap )?interval", "interval", sentence)
    if _PERCENT.search(measured) and not _COUNTED.search(measured):
        wrong.append("has a percentage without n")
    return wrong


def check(sentence: str) -> str:
    """The sentence, if it may be said. Raises RunError otherwise: a fault of the program, not of its user."""
    if wrong := faults(sentence):
        raise RunError(f"a sentence that must not be shown: it {' and '.join(wrong)}", where=repr(sentence))
    return sentence


MOST_WORDS = 14
"""Of a sentence that is said in the room, which also holds at most one number."""


def short_faults(sentence: str) -> list[str]:
    """What is wrong with a sentence for the room. Its n stands behind it, so it may give a bare share."""
    wrong = [fault for fault in faults(sentence) if fault != "has a percentage without n"]
    if len(sentence.split()) > MOST_WORDS:
        wrong.append(f"has more than {MOST_WORDS} words")
    if len(re.findall(r"\d[\d.,]*", sentence)) > 1:
        wrong.append("has more than one number")
    return wrong


def check_short(sentence: str) -> str:
    """The sentence, if it may be said in the room. Raises RunError otherwise."""
    if wrong := short_faults(sentence):
        raise RunError(f"a sentence too long to be said: it {' and '.join(wrong)}", where=repr(sentence))
    return sentence
