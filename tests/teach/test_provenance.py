"""What makes a recording stale: code that decides its numbers, found from the imports, and nothing else."""

import ast
import shutil
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from isoloss.teach import panels, provenance

PACKAGE = Path(str(resources.files("isoloss")))
CONTESTS = {"first-letter", "random-place", "binding"}
LEARNED = CONTESTS | {"right-slot", "training"}
ALL = {panel.name for panel in panels.PANELS}


@pytest.fixture
def copy(tmp_path):
    """The package's Python files and the few data files that panels read."""
    folder = tmp_path / "isoloss"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "recorded", "deck"))
    return folder


@cache
def experiments():
    return {panel.name: panel.experiment() for panel in panels.PANELS}


def stale(copy):
    """The panels whose numbers another code would decide if ``copy`` were the package."""
    return {
        panel.name
        for panel in panels.PANELS
        if provenance.experiment(panel.measuring_module, package=copy) != experiments()[panel.name]
    }


def edit(path, before, after):
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")


def test_the_same_code_elsewhere_is_the_same_experiment(copy):
    assert stale(copy) == set()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("training/optimizer.py", LEARNED),
        ("training/objective.py", LEARNED),
        ("training/settings.py", LEARNED),
        ("teach/amnesia/value_set.py", CONTESTS | {"right-slot"}),
        ("teach/amnesia/contest/sides.py", CONTESTS),
        ("teach/settings.py", ALL),
        ("units.py", ALL - {"machine"}),
    ],
)
def test_another_number_or_name_in_what_decides_makes_stale(copy, file, expected):
    path = copy / file
    tree = ast.parse(path.read_text("utf-8"))
    numbers = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1)
    ]
    (numbers[0] if numbers else next(n for n in ast.walk(tree) if isinstance(n, ast.Constant))).value = 17
    path.write_text(ast.unparse(tree), "utf-8")
    assert stale(copy) == expected


def test_data_that_a_module_reads_makes_stale(copy):
    edit(copy / "teach" / "progression" / "sentences.txt", "a", "b")
    assert stale(copy) == {"training"}
    edit(copy / "teach" / "showdown" / "checkpoints" / "card.json", "1", "2")
    assert stale(copy) == {"training", "showdown", "trained"}


def test_an_import_inside_a_function_counts(copy):
    assert "race" not in LEARNED
    line = "def measure(settings: RaceSettings, report: Report) -> Tables:\n"
    edit(copy / "teach" / "race" / "measure.py", line, line + "    from isoloss.teach import learner\n")
    names = [name for name, *_ in provenance.closure("isoloss.teach.race.measure", package=copy)]
    assert {"isoloss.teach.learner", "isoloss.training.optimizer"} <= set(names)


def test_words_make_nothing_stale(copy):
    """Docstrings, comments, line breaks, what describes a setting, what a panel says of itself."""
    for path in copy.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = "Mended." if isinstance(node.value.value, str) else node.value.value
        path.write_text(f"# A comment.\n{ast.unparse(tree)}\n", "utf-8")
    edit(copy / "teach" / "settings.py", "How many random seeds", "Seeds, each drawn afresh")
    edit(copy / "teach" / "amnesia" / "panels.toml", "Amnesia test I: the first letter", "The first letter")
    assert stale(copy) == set()


def test_what_stands_behind_a_border_makes_nothing_stale(copy):
    for border in provenance.BORDERS - {"isoloss"}:
        place = copy.joinpath(*border.split(".")[1:])
        files = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        assert files, f"{border} is no more: take it out"
        for path in files:
            path.write_text(path.read_text("utf-8") + "\nSEVENTEEN = 17\n", "utf-8")
    assert stale(copy) == set()


def test_control_what_is_reached_is_more_than_the_measuring_module():
    names = [name for name, *_ in provenance.closure("isoloss.teach.amnesia.contest.measure")]
    assert {"isoloss.training.optimizer", "isoloss.models.lstm", "isoloss.teach.shares"} <= set(names)
    assert not any(name.startswith(("isoloss.figures", "isoloss.files")) for name in names)


def test_a_module_that_is_not_there_is_an_error():
    with pytest.raises(ModuleNotFoundError, match=r"no module isoloss\.teach\.nowhere"):
        provenance.experiment("isoloss.teach.nowhere")
