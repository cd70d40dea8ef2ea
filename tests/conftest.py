"""For all tests: generated examples without a clock, a home of their own, a text small enough to train on."""

import os
import random

import pytest
from hypothesis import settings

# Time limits on single examples fail on a busy machine and say nothing about the code.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# Tests share the cores with each other's subprocesses; losses compared to the bit need a fixed thread count.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def isoloss_home(tmp_path_factory):
    """Corpora and token files go to a folder of this session: no test touches the user's."""
    home = tmp_path_factory.mktemp("isoloss-home")
    before = os.environ.get("ISOLOSS_HOME")
    os.environ["ISOLOSS_HOME"] = str(home)
    yield home
    if before is None:
        del os.environ["ISOLOSS_HOME"]
    else:
        os.environ["ISOLOSS_HOME"] = before


@pytest.fixture(scope="session")
def tiny(isoloss_home, tmp_path_factory):
    """The name of a corpus of some 40 kB of made-up sentences; a vocabulary of 300 fits it."""
    from isoloss.corpus import library

    folder = tmp_path_factory.mktemp("tiny")
    draw = random.Random(5)  # noqa: S311
    words = [
        first + last for first in ("ba", "do", "ki", "lu", "me") for last in ("ran", "to", "vi", "sh", "")
    ]
    for number in range(16):
        sentences = [" ".join(draw.choices(words, k=draw.randint(4, 9))) + "." for _ in range(90)]
        (folder / f"{number:02}.txt").write_text("\n".join(sentences), "utf-8")
    return library.add("tiny", [folder]).name
