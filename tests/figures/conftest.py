"""Studies that ship, made-up ones and the gallery of the docs: each analysed and drawn once for all tests."""

import importlib.util
from functools import cache
from pathlib import Path

import pytest
import story

from isoloss.analysis.study import analyse
from isoloss.errors import Refusal, attempt
from isoloss.figures import gallery
from isoloss.records import load, reference


@pytest.fixture(scope="session")
def analysed(told):
    """A function from the name of a study that ships, or of a made-up one, to its analysis."""

    @cache
    def of(name):
        return analyse(told(getattr(story, name)) if hasattr(story, name) else load(reference.folder(name)))

    return of


@pytest.fixture(scope="session")
def figures_of(analysed):
    """A function from such a name to the figures of every kind that the study allows."""

    @cache
    def of(name):
        made = {kind: attempt(gallery.figures_of, analysed(name), kind) for kind in gallery.STUDY}
        return {kind: figures for kind, figures in made.items() if not isinstance(figures, Refusal)}

    return of


@pytest.fixture(scope="session")
def page():
    """The script that makes the gallery page."""
    script = Path(__file__).parents[2] / "docs" / "gallery.py"
    spec = importlib.util.spec_from_file_location("docs_gallery", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def examples(page, analysed):
    """Of every kind of figure the example on that page: its source, and the figure or why there is none."""
    return page.examples({name: analysed(name) for name in reference.names()[1:]})
