"""Texts in captions.toml: a missing or unknown entry, field or name is an error, and every entry is used."""

import ast
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import ValidationError

from isoloss import files
from isoloss.captions import Captions
from isoloss.strict import Strict

SOURCE = Path(__file__).parents[1] / "src" / "isoloss"


class Caption(Strict):
    text: str
    width: int = 3


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Captions of a made-up room, from the text of its file."""

    def write(toml):
        name = f"room_{files.hash_of(str(tmp_path))[:12]}"
        package = tmp_path / name
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "captions.toml").write_text(toml, "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return Captions(name, Caption)

    return write


def test_names_are_filled_and_other_fields_stay(room):
    captions = room('[a]\ntext = "{n} runs of {who}"\n')
    assert captions.fill("a", n=3, who="<us>") == {"text": "3 runs of <us>", "width": 3}


@pytest.mark.parametrize(
    ("entry", "values"), [("b", {"n": 1}), ("a", {}), ("a", {"n": 1, "m": 2}), ("a", {"m": 2})]
)
def test_what_does_not_fit_is_an_error(room, entry, values):
    with pytest.raises(LookupError):
        room('[a]\ntext = "{n} runs"\n').fill(entry, **values)


@pytest.mark.parametrize("toml", ["[a]\n", '[a]\ntext = "x"\nwords = "y"\n', "[a]\ntext = 3\n", 'a = "x"\n'])
def test_a_file_of_other_fields_is_refused(room, toml):
    with pytest.raises(ValidationError):
        room(toml).fill("a")


def names_given(room: str, function: str) -> set[str]:
    """The first argument of every call of ``function`` in a room."""
    calls = [
        node
        for path in (SOURCE / room).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    ]
    return {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}


@pytest.mark.parametrize(("room", "module", "function"), [("figures", "isoloss.figures.figure", "captioned")])
def test_every_caption_is_used_and_every_used_one_is_there(room, module, function):
    assert names_given(room, function) == set(import_module(module).CAPTIONS.entries)
