import random
import string

import pytest


def make_prose(seed: int, words: int) -> str:
    """Paragraphs of made-up words from one small vocabulary, so that BPE finds repeats."""
    lexicon = random.Random(0)
    vocabulary = [
        "".join(lexicon.choices(string.ascii_lowercase, k=lexicon.randint(2, 9))) for _ in range(300)
    ]
    draw = random.Random(seed)
    paragraphs = []
    for start in range(0, words, 40):
        count = min(40, words - start)
        paragraphs.append(" ".join(draw.choices(vocabulary, k=count)).capitalize() + ".")
    return "\n\n".join(paragraphs)


@pytest.fixture(scope="session")
def prose():
    return make_prose


@pytest.fixture
def book_folder(tmp_path):
    """A folder of thirty text files of uneven length."""
    folder = tmp_path / "books"
    folder.mkdir()
    for i in range(30):
        (folder / f"book{i:02}.txt").write_text(make_prose(i, 100 + 37 * i), "utf-8")
    return folder
