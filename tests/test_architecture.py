"""docs/architecture.md against the code: the picture, and where each kind of thing lives."""

import re
import sys
from pathlib import Path

import pytest

from isoloss.laws import FORMS
from isoloss.models import families, family

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
sys.path.insert(0, str(ROOT / "docs"))
import rooms  # noqa: E402

HOMES = dict(re.findall(r"^\| ([^|]+) \| `([^`]+)` \|", PAGE, flags=re.MULTILINE))


def folder(path):
    return Path(path).resolve().parent


def test_the_picture_is_drawn_from_the_imports_of_today():
    assert rooms.PICTURE.read_text("utf-8") == rooms.svg(), "run python docs/rooms.py"


def test_every_room_has_a_place_and_a_purpose():
    assert set(rooms.rooms()) == set(rooms.PLACES)
    assert all(len(rooms.purpose(room)) > 10 for room in rooms.rooms())


def test_an_arrow_runs_downwards_and_none_follows_from_others():
    arrows = rooms.arrows()
    assert ("figures", "analysis") in arrows
    assert ("analysis", "figures") not in arrows
    assert not any((a, c) in arrows for a, b in arrows for b2, c in arrows if b == b2)


def test_every_home_is_a_folder_with_code():
    assert len(HOMES) == 8
    for what, path in HOMES.items():
        assert list((ROOT / path).glob("*.py")), what


def test_laws_and_families_live_where_the_page_says():
    laws = {sys.modules[type(form).__module__].__file__ for form in FORMS.values()}
    assert {folder(path) for path in laws} == {ROOT / HOMES["a law"]}
    shipped = ("transformer", "lstm", "looped")
    assert set(shipped) <= set(families())
    files = {sys.modules[family(name).build.__module__].__file__ for name in shipped}
    assert {folder(path) for path in files} == {ROOT / HOMES["a model family"]}


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a finding", r"^def \w+\([^)]*\) -> (Finding|list\[Finding\]|Iterator\[Finding\])"),
        ("a figure", r"^def \w+\([^)]*\) -> (Figure|list\[Figure\])"),
        ("a command", r"^@app\.command"),
    ],
)
def test_each_kind_is_made_in_its_folder(what, pattern):
    """And in no other, but that a demo draws and tells what it measured itself."""
    counts = {}
    for path in (ROOT / "src" / "isoloss").rglob("*.py"):
        room = path.relative_to(ROOT / "src" / "isoloss").parts[0]
        counts[room] = counts.get(room, 0) + len(re.findall(pattern, path.read_text("utf-8"), re.MULTILINE))
    home = HOMES[what].split("/")[2]
    assert counts[home] > 0
    assert not {room for room, count in counts.items() if count} - {home, "teach"}
