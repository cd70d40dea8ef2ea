"""Where a text can be cut so that a byte-level tokenizer gives its parts the ids of the whole.

A tokenizer first divides text into words by a regular expression, and no token reaches over a word's end. The
places here are ends of words for GPT-2's expression, which isoloss trains with: its words are contractions
such as "'s" or runs of letters, of digits or of other characters, a space before them counts as theirs, and
what is left is white space. Expressions of other tokenizers end words at nearly all of them.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from isoloss.errors import InputError

PART_CHARACTERS = 2**16
"""While it works the tokenizers library keeps 100 to 200 bytes for each byte of a part."""
LONGEST_WITHOUT = 2**16
"""Characters. Training on one word takes time that grows as its square: half a minute for so much Chinese."""
TRIES = 1000

_LETTERS = "A-Za-z\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
"""Latin, kana, Chinese, Korean. Named one by one: what counts as a letter depends on Unicode's version."""
_MARKS = r"!-&(-/:-@\[-^{-~。，、；：！？「」『』（）《》"
"""No apostrophe: in "it's" some tokenizers end no word before it."""
_PLACE = re.compile(rf"\S(?=[ \t\n\u3000])|[0-9{_LETTERS}](?=[{_MARKS}])|[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")


def parts_of(text: str, ends_word: Callable[[str, int], bool] = lambda text, at: True) -> Iterator[str]:
    """The text in parts of about PART_CHARACTERS, cut where ``ends_word`` of the text and a place is true.

    Where it is not true at TRIES places in a row the rest is one part.
    """
    begin = 0
    while cut := _next_place(text, begin + PART_CHARACTERS, ends_word):
        yield text[begin:cut]
        begin = cut
    yield text[begin:]


def _next_place(text: str, start: int, ends_word: Callable[[str, int], bool]) -> int | None:
    places = (found.end() for found in islice(_PLACE.finditer(text, start), TRIES))
    return next((at for at in places if ends_word(text, at)), None)


def check_places(text: str, source: str) -> None:
    """Raises InputError where LONGEST_WITHOUT characters have no place to cut."""
    for at in range(0, len(text) - LONGEST_WITHOUT + 1, LONGEST_WITHOUT):
        if not _PLACE.search(text, at, at + LONGEST_WITHOUT):
            byte, begins = len(text[:at].encode("utf-8")), text[at : at + 20]
            raise InputError(
                f"{LONGEST_WITHOUT:,} characters from byte {byte:,} on are one word ({begins!r} ...)",
                where=source,
                mend="put line ends into it, or leave it out",
            )
