"""For all tests: generated examples without a clock, a home of their own, a text small enough to train on."""

import io
import os
import random
import sys
from pathlib import Path

import pytest
import story
import telling
import user_family
from brevity import wordy
from filelock import FileLock
from hypothesis import settings

from isoloss.figures import paper, render
from isoloss.figures.render import Picture

SVG = '<svg viewBox="0 0 9 9"></svg>'

# Time limits on single examples fail on a busy machine and say nothing about the code.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# Tests share the cores with each other's subprocesses; losses compared to the bit need a fixed thread count.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def denormal_numbers():
    """What trains in this process counts denormal numbers as 0, which hypothesis refuses to draw under."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


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
def once(tmp_path_factory):
    """once(name, write) -> a file of this name, written once for the tests of all workers. Read it only."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def made(name, write):
        path = folder / name
        with FileLock(folder / f"{name}.lock"):
            if not path.exists():
                part = folder / f"part-{name}"
                part.write_text(write(), "utf-8")
                part.rename(path)
        return path

    return made


@pytest.fixture
def undrawn(monkeypatch):
    """Reports without pictures, for what they say: drawing is tested elsewhere and takes most of the time."""
    monkeypatch.setattr(render, "render", lambda _: Picture(SVG, b"png", b"pdf"))
    monkeypatch.setattr(paper, "svg", lambda *_, **__: SVG)


@pytest.fixture(scope="session")
def run_tables():
    """The folder of public run tables, which are no part of the repository.

    Where it is absent a test that asks for it is skipped by name; in CI it must be there.
    """
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        message = f"no public run tables in {folder}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture(scope="session")
def tiny(isoloss_home, tmp_path_factory):
    """The name of a corpus of some 40 kB of made-up sentences; a vocabulary of 300 fits it."""
    from isoloss.corpus import library

    folder = tmp_path_factory.mktemp("tiny")
    draw = random.Random(5)
    words = [
        first + last for first in ("ba", "do", "ki", "lu", "me") for last in ("ran", "to", "vi", "sh", "")
    ]
    for number in range(16):
        sentences = [" ".join(draw.choices(words, k=draw.randint(4, 9))) + "." for _ in range(90)]
        (folder / f"{number:02}.txt").write_text("\n".join(sentences), "utf-8")
    return library.add("tiny", [folder]).name


@pytest.fixture(scope="session")
def told(tmp_path_factory):
    """A function from a Story (tests/report/story.py) to its StudyData, written once per session."""
    from isoloss.records import load

    loaded = {}

    def tell(one):
        if one not in loaded:
            loaded[one] = load(telling.on_disk(tmp_path_factory.getbasetemp(), one))
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


FAMILIES = (
    user_family.PLAIN
    + """

class Broken(Bigram):
    def forward(self, x_BT):
        if Path(__file__).with_name("mended").exists():
            return super().forward(x_BT)
        raise RuntimeError("broken on purpose")


class Killed(Bigram):
    def forward(self, x_BT):
        os.kill(os.getpid(), signal.SIGKILL)


class Unsteady(Bigram):
    updates = 0

    def forward(self, x_BT):
        self.updates += self.training
        return super().forward(x_BT) * (float("nan") if self.updates > 5 else 1.0)


def count(shape, vocab, context):
    d = shape.d_model
    return Count(d * d + d, d * d + d, 2 * vocab * d + vocab, 2.0 * d * d, 0.0, 2.0 * d * vocab)


register(Family("my-bigram", WidthShape, Bigram))
register(Family("my-broken", WidthShape, Broken, count))
register(Family("my-killed", WidthShape, Killed, count))
register(Family("my-unsteady", WidthShape, Unsteady, count))
"""
)

STUDY = """
name = "tiny-study"
title = "Everything once, in seconds"

[scale.mini]
corpus = "tiny"
vocabulary = 300
context = 16
batch_size = 4
tokens = [640, 1280]
evaluation = { windows = 4, final_windows = 8, trace_windows = 2 }

[[scale.mini.models]]
family = "transformer"
shapes = [{ n_layer = 1, d_model = 8, n_head = 2 }]
seeds = [0, 1]
learning_rates = [0.01]

[[scale.mini.models]]
family = "lstm"
shapes = [{ n_layer = 1, d_model = 8 }]
learning_rates = [0.01]

[[scale.mini.models]]
family = "looped"
shapes = [{ n_layer = 1, d_model = 8, n_head = 2, recurrence = 2 }]
learning_rates = [0.01]
"""

USER_MODELS = "".join(
    f'\n[[scale.mini.models]]\nfamily = "{family}"\nshapes = [{{ d_model = 8 }}]\nlearning_rates = [0.01]\n'
    for family in ("my-bigram", "my-broken", "my-killed", "my-unsteady")
)


@pytest.fixture(scope="session")
def study_text():
    """A study of the three shipped families on the corpus ``tiny``, a second's work."""
    return STUDY


@pytest.fixture
def study_file(tmp_path, study_text):
    """study_file(old, new) -> the path of that study's file, with one change; ``text``: of another study."""

    def write(old="", new="", text=study_text):
        assert old in text
        path = tmp_path / "my.toml"
        path.write_text(text.replace(old, new), "utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def family_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("family") / "my_families.py"
    path.write_text(FAMILIES, "utf-8")
    return path


@pytest.fixture
def glr_file(tmp_path):
    """The gated linear recurrence of docs/models.md, as the user's file that the page tells to write."""
    page = (Path(__file__).parents[1] / "docs" / "models.md").read_text("utf-8")
    path = tmp_path / "glr.py"
    path.write_text(page.partition("```python\n")[2].partition("```")[0], "utf-8")
    return path


@pytest.fixture(scope="session")
def ran(tiny, family_file, tmp_path_factory):
    """A study that was run once: 4 finished runs of shipped families, one of a user's, one that diverged, one
    that raised and one that was killed. Read it, or ``copy`` it; do not write into it."""
    from types import SimpleNamespace

    from rich.console import Console
    from train_planned import train

    from isoloss.models import load_file, registry
    from isoloss.studies import plan, spec

    folder = tmp_path_factory.mktemp("ran")
    file = folder / "tiny.toml"
    file.write_text(STUDY + USER_MODELS, "utf-8")
    study = spec.read(str(file))
    scale = spec.scale_of(study, "mini")
    before = dict(registry._families)
    load_file(family_file)
    runs = plan.plan(scale, gpu=False)
    registry._families.clear()
    registry._families.update(before)
    text = io.StringIO()

    def run(place, family_files=(family_file,)):
        console = Console(file=text, width=200)
        return train(study, scale, runs, place, console=console, family_files=family_files)

    place = folder / "out"
    outcome = run(place)
    ids = {run.settings.family: run.run_id for run in runs}
    line = FAMILIES[: FAMILIES.index("raise RuntimeError")].count("\n") + 1
    return SimpleNamespace(
        folder=place,
        file=file,
        outcome=outcome,
        runs=runs,
        ids=ids,
        run=run,
        progress=text.getvalue(),
        broken=f"{family_file}, line {line}",
    )


@pytest.fixture
def isoloss(monkeypatch, capsys):
    """isoloss('run', ...) -> (exit code, stdout, stderr), through the entry point.

    Each warning is short; those of `run` are about a machine, and the rest about numbers.
    """
    from isoloss import cli

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["isoloss", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        out, err = capsys.readouterr()
        said = [line.removeprefix("warning: ") for line in out.splitlines() if line.startswith("warning: ")]
        assert arguments[:1] == ("run",) or [warning for warning in said if wordy(warning)] == []
        return code, out, err

    return call
