"""The standing words of the demos: read strictly, each used."""

from importlib import resources
from pathlib import Path

import pytest

from isoloss.errors import InputError
from isoloss.teach import panels, prose

FOLDERS = sorted(
    folder.name
    for folder in resources.files("isoloss.teach").iterdir()
    if folder.joinpath("panels.toml").is_file()
)
WHOLE = """
demo = "d"
[panels.p]
title = "T"
question = "Q?"
doubt = \"\"\"
Two
lines.
\"\"\"
beware = "Two."
units = "strings"
interval = "Wilson"
[figures.f]
title = "F of {who}"
description = "D"
shows = "S"
would_change = "W"
"""


def test_line_breaks_are_spaces_and_bounds_have_defaults():
    words = prose.parse(WHOLE, "d").panels["p"]
    assert words.doubt == "Two lines."
    assert (words.cap_seconds, words.threads, words.full) == (180.0, 1, {})
    assert (words.guess, words.guesses, words.front) == ("", (), ())


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('title = "T"', "", "the key 'panels.p.title' is missing"),
        ('title = "T"', 'title = "T"\ncolour = "red"', "unknown key 'panels.p.colour'"),
        ('title = "T"', "title = 3", "panels.p.title: Input should be a valid string"),
        ('shows = "S"', "", "the key 'figures.f.shows' is missing"),
        ('shows = "S"', 'shows = "S"\nhides = "H"', "unknown key 'figures.f.hides'"),
        ('demo = "d"', "", "the key 'demo' is missing"),
    ],
)
def test_a_key_that_is_missing_or_unknown_is_an_error(before, after, complaint):
    with pytest.raises(InputError, match=complaint):
        prose.parse(WHOLE.replace(before, after), "d")


def test_every_word_belongs_to_a_panel():
    described = {name for folder in FOLDERS for name in prose.read(folder).panels}
    assert described == {panel.name for panel in panels.PANELS}


KINDS = ("-sweep", "-distance")
"""More of a test of memory's figures; some need more cells than its recording holds."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_caption_belongs_to_a_figure(folder):
    room = Path(str(resources.files("isoloss.teach").joinpath(folder)))
    source = "".join(path.read_text("utf-8") for path in room.rglob("*.py"))
    for name in prose.read(folder).figures:
        kind = next((kind for kind in KINDS if name.endswith(kind)), "")
        assert f'"{name.removesuffix(kind)}"' in source
        assert f'"{kind}"' in source or not kind
    # Control: a figure that is not drawn is not there.
    assert '"no-such-figure"' not in source


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_sentence_and_every_setting_belongs_to_some_code(folder):
    room = Path(str(resources.files("isoloss.teach").joinpath(folder)))
    source = "".join(path.read_text("utf-8") for path in room.rglob("*.py"))
    words = prose.read(folder)
    assert [name for name in (*words.says, *words.settings) if f'"{name}"' not in source] == []
