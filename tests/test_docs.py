"""What the documents say is what the package does: examples run, every command and option stands there."""

import doctest
import html
import re
import sys
from pathlib import Path

import pytest
import typer

import isoloss
from isoloss.analysis import gap_by_tokens
from isoloss.analysis.findings import findings
from isoloss.cli import app
from isoloss.figures import gallery
from isoloss.laws import FORMS
from isoloss.records import reference
from isoloss.records.table import COLUMNS
from isoloss.studies.spec import Models, Scale, read, shipped
from isoloss.training.settings import Recipe

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import pictures  # noqa: E402

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page):
    assert (
        doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8").failed == 0
    )


def test_there_are_examples_and_a_wrong_one_fails(tmp_path):
    assert sum(page.read_text("utf-8").count(">>> ") for page in PAGES) > 10
    wrong = tmp_path / "wrong.md"
    wrong.write_text(">>> 1 + 1\n3\n")
    assert doctest.testfile(str(wrong), module_relative=False, optionflags=OPTIONS, report=False).failed == 1


def commands(group=None, name="isoloss"):
    group = group or typer.main.get_command(app)
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda value: str(value))
def test_every_command_and_option_is_documented(name, command):
    sections = re.split(r"^## ", (ROOT / "docs" / "commands.md").read_text("utf-8"), flags=re.MULTILINE)
    section = next((s for s in sections if s.startswith(name + "\n")), "")
    assert section, f"docs/commands.md has no section {name!r}"
    for parameter in command.params:
        for option in parameter.opts:
            if option.startswith("--"):
                assert f"`{option}`" in section, f"{name} {option} is not documented"
    assert name in command.help, "the help shows no example"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("laws.md", FORMS),
        ("studies.md", [*Scale.model_fields, *Models.model_fields, *COLUMNS]),
        ("training.md", Recipe.model_fields),
        ("figures.md", [*gallery.STUDY, *gallery.FIT]),
    ],
)
def test_every_name_is_documented(page, names):
    text = (ROOT / "docs" / page).read_text("utf-8")
    missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert not missing


def test_keys_of_an_entry_stand_where_they_are_listed():
    text = (ROOT / "docs" / "studies.md").read_text("utf-8")
    listed = text.partition("an entry of `models`:")[2].partition("Unknown keys")[0]
    assert not [key for key in Models.model_fields if f"`{key}`" not in listed]


def test_every_shipped_study_has_the_scales_that_the_page_says():
    text = (ROOT / "docs" / "studies.md").read_text("utf-8")
    named = re.findall(r"`([a-z]+)`", text.partition("Shipped, each at the scales")[2].partition(":")[0])
    have = {name: list(read(name).scale) for name in shipped()}
    (alone,) = have.pop("learning-rates")
    assert f"has `{alone}` alone" in text
    assert all(scales == named for scales in have.values())


def test_pages_link_to_pages_that_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_brackets_that_a_shell_would_expand_are_quoted():
    """zsh takes a bare [0,1,2] for the pattern of a file name, and refuses."""
    pages = [*PAGES, *(ROOT / "src" / "isoloss").rglob("*.py")]
    bare = [line for page in pages for line in re.findall(r"--set [a-z.-]+=\[.*", page.read_text("utf-8"))]
    assert not bare


def test_public_names():
    expected = [
        *["InputError", "IsolossError", "Refusal", "RunError", "__version__"],
        *["fit", "forecast", "load", "predict", "published", "run"],
    ]
    assert sorted(isoloss.__all__) == expected
    for name in expected:
        assert getattr(isoloss, name) is not None
        assert name == "__version__" or getattr(isoloss, name).__doc__


def test_version_is_the_packages():
    assert f'version = "{isoloss.__version__}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_readmes_figure_is_the_one_that_its_command_draws():
    drawn = (ROOT / "docs/images/gap-by-tokens.svg").read_text("utf-8")
    words = " ".join(html.unescape(" ".join(re.findall(r">([^<>]+)</t", drawn))).split())
    (figure,) = gallery.of_sources("gap-by-tokens", ["reference"])
    assert figure.title in words
    assert figure.subtitle in words
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"*{figure.title}.*" in readme


def test_the_readme_says_how_far_off_their_lines_the_held_out_points_lie():
    (pair,) = gap_by_tokens.measure(isoloss.load(reference.folder("reference"))).pairs.values()
    off = [check for size in pair.sizes for check in size.checks.values()]
    assert [check.sign for check in off] == [0, 0], "none missed"
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert {tokens for size in pair.sizes for tokens in size.checks} == {8_388_608}
    assert "Two points at 8.39M tokens, one seed each, were held out of the lines. None missed" in readme
    assert f"one lies {max(check.value for check in off):.3f} nats above its line" in readme


def test_the_readmes_picture_of_a_report_holds_its_findings():
    shown = findings(isoloss.load(reference.folder("reference")))
    assert pictures.words(tuple(shown)) in pictures.PICTURE.read_bytes(), "run python docs/pictures.py"
    assert pictures.words(tuple(shown[1:])) not in pictures.PICTURE.read_bytes(), "negative control"
