"""Who may import whom: reading, fitting and drawing need no deep-learning framework; layers go one way."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isoloss.teach.panels import panel

ROOT = Path(__file__).parents[1]

# A finder that knows of no torch, as if it were not installed. (None in sys.modules trips SciPy's look-up.)
BLOCKED = """
import importlib, sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed.append(f"{name}: {error}")
sys.exit("\\n".join(failed) or 0)
"""


def imported_without_torch(*modules: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "error", "-c", BLOCKED, *modules]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "module",
    [
        "isoloss",
        "isoloss.records",
        "isoloss.laws",
        "isoloss.figures",
        "isoloss.report",
        "isoloss.corpus.library",
        "isoloss.training.settings",
        "isoloss.cli",
    ],
)
def test_imports_without_torch(module):
    result = imported_without_torch(module)
    assert result.returncode == 0, result.stderr


READING = ("records", "laws", "sources", "plans", "analysis", "figures", "report", "serve", "cli")


def test_every_module_of_the_rooms_that_read_imports_without_torch():
    package = ROOT / "src" / "isoloss"
    names = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for room in READING
        for path in sorted((package / room).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    result = imported_without_torch(*names)
    assert result.returncode == 0, result.stderr


def test_the_deck_starts_without_the_writers_of_reports():
    """They import plans and forecasts, which would make its start a tenth longer."""
    code = (
        "import sys, isoloss.teach.deck.cache, isoloss.teach.deck.server\n"
        "print('isoloss.plans' in sys.modules)\n"
        "from isoloss.report import write, write_fit\n"
        "print('isoloss.plans' in sys.modules, write.__module__, write_fit.__module__)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "True", "isoloss.report.page", "isoloss.report.fit_page"]


def test_what_shows_a_recorded_demo_imports_without_torch():
    """The list of panels imports all that tells them."""
    result = imported_without_torch(
        "isoloss.teach.panels", "isoloss.teach.deck.page", "isoloss.teach.deck.server"
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "module", ["isoloss.models", "isoloss.training.loop", panel("binding").measuring_module]
)
def test_control_what_trains_does_not(module):
    result = imported_without_torch(module)
    assert result.returncode != 0
    assert "No module named 'torch'" in result.stderr


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    """The import contracts of pyproject.toml, on the package in ``folder``/src."""
    code = (
        "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command as go; go()"
    )
    command = [sys.executable, "-c", code, "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The code and its contracts, without the data that ship beside it."""
    place = tmp_path_factory.mktemp("copied")
    for path in (ROOT / "src").rglob("*.py"):
        target = place / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


@pytest.fixture
def smuggle(copied):
    """smuggle(module, text) -> a copy of the code in which that file ends so, until the test is over."""
    before = {}

    def add(module, text):
        path = copied / "src" / "isoloss" / module
        before[path] = path.read_text("utf-8") if path.exists() else None
        path.write_text((before[path] or "") + text, "utf-8")
        return copied

    yield add
    for path, text in before.items():
        path.unlink() if text is None else path.write_text(text, "utf-8")


def test_imports_go_one_way():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Contracts: 2 kept, 0 broken." in result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("laws/smuggled.py", "from isoloss.studies import spec"),
        ("report/smuggled.py", "import torch"),
        ("records/smuggled.py", "from isoloss.models import shape"),
        ("corpus/smuggled.py", "from isoloss import cli"),
        ("newcomer.py", "x = 1"),
    ],
)
def test_control_an_import_the_other_way_breaks_a_contract(smuggle, module, line):
    result = lint_imports(smuggle(module, line + "\n"))
    assert result.returncode != 0
    assert (
        "1 kept, 1 broken" in result.stdout
        or "0 kept, 2 broken" in result.stdout
        or "newcomer" in result.stdout
    )


def room_of(module: str) -> str:
    """'laws' for 'isoloss.laws.forms'; a file of the ground floor is its own room."""
    return ".".join(module.split(".")[1:2])


def circles_between_rooms(folder: Path) -> list[list[str]]:
    """Files of different rooms that import each other, directly or on a way round; lazy imports count."""
    code = """
import json, sys
sys.path.insert(0, "src")
import grimp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
graph = grimp.build_graph("isoloss", cache_dir=None)
names = sorted(graph.modules)
edges = [(names.index(a), names.index(b)) for a in names for b in graph.find_modules_directly_imported_by(a)]
rows, columns = zip(*edges)
arrows = coo_array(([1] * len(edges), (rows, columns)), shape=(len(names), len(names)))
count, part = connected_components(arrows, connection="strong")
print(json.dumps([[n for n, p in zip(names, part) if p == k] for k in range(count)]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=True
    )
    return [part for part in json.loads(result.stdout) if len({room_of(module) for module in part}) > 1]


def test_no_files_of_different_rooms_import_each_other():
    assert circles_between_rooms(ROOT) == []


def test_control_a_lazy_import_the_other_way_makes_a_circle(smuggle):
    place = smuggle("laws/_result.py", "\n\ndef draw():\n    from isoloss.figures import fit\n")
    (circle,) = circles_between_rooms(place)
    assert {"isoloss.laws._result", "isoloss.figures.fit"} <= set(circle)


def test_importing_isoloss_loads_neither_arrays_nor_drawing():
    heavy = {"numpy", "scipy", "polars", "altair", "torch"}
    code = f"import sys, isoloss; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "[]"


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a command loads."""
    code = "import atexit, sys; atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr)); "
    code += f"sys.argv = {['isoloss', *arguments]}; from isoloss.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


def test_help_loads_what_prints_it_alone():
    loaded = loaded_by("data", "list", "--help")
    assert not loaded & {"numpy", "scipy", "polars", "pydantic", "altair", "torch"}
    assert "rich.console" in loaded


def test_a_fit_loads_what_it_uses_alone(tmp_path):
    sizes = [(n, d) for n in (1e7, 3e7, 1e8, 1e9) for d in (1e9, 1e10, 3e10, 1e11)]
    rows = [f"{n},{d},{1.8 + 480 * n**-0.35 + 2000 * d**-0.37}" for n, d in sizes]
    (tmp_path / "runs.csv").write_text("\n".join(["params,tokens,loss", *rows]), "utf-8")
    loaded = loaded_by("fit", str(tmp_path / "runs.csv"), "--law", "chinchilla")
    unused = {"rich.console", "narwhals", "filelock", "isoloss.records.schema", "isoloss.plans.compare"}
    # Forecasts, plans and what defines models of pydantic, which looks up plugins in all that is installed.
    unused |= {"isoloss.plans.forecast.forecasting", "isoloss.plans.planning", "isoloss.strict"}
    assert not loaded & (unused | {"scipy.special", "scipy.optimize", "scipy.stats", "altair", "torch"})
    assert {"polars", "numpy", "isoloss.distributions"} <= loaded


def test_a_command_that_needs_torch_says_so():
    code = (
        "import sys; sys.modules['torch'] = None; "
        "sys.argv = ['isoloss', 'run', 'architectures', '--dry-run']; from isoloss.cli import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "training needs PyTorch" in result.stderr
    assert "Traceback" not in result.stderr
