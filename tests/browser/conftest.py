"""The synthetic studies, as loaded from disk."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

import story

from isoloss.records import load


@pytest.fixture(scope="session")
def told(tmp_path_factory):
    """A function from a Story to its StudyData."""
    loaded = {}

    def tell(one):
        if one not in loaded:
            loaded[one] = load(story.on_disk(tmp_path_factory.getbasetemp(), one))
        return loaded[one]

    return tell


@pytest.fixture(scope="session")
def ahead(told):
    """LSTMs ahead at every size; the crossover lies outside the data."""
    return told(story.LSTM_AHEAD)


@pytest.fixture(scope="session")
def inside(told):
    """The Transformer overtakes inside the data."""
    return told(story.CROSSES_INSIDE)
