"""The deck as one HTML page: thirteen slides, everything inline, nothing fetched.

The page that the server shows and the file that ``--build`` writes differ in one thing: on a live page the
panels have forms, and the script may talk to the server that it came from.
"""

import base64
import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from isoloss.errors import InputError, IsolossError
from isoloss.report.templates import environment, fill, text
from isoloss.teach import result
from isoloss.teach.deck import forms, fragment, study
from isoloss.teach.panel import Panel
from isoloss.teach.panels import PANELS
from isoloss.teach.panels import panel as panel_named
from isoloss.teach.result import Result

TITLE = "The Great Shift"
SCRIPTS = ("vendor/reveal/reveal.js", "interactive.js", "deck.js")

_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


@dataclass(frozen=True)
class Slide:
    number: int
    title: str
    html: Markup


def build(
    results: Path | None = None,
    study: Path | None = None,
    *,
    live: bool = False,
    panels: Sequence[Panel] = PANELS,
    sources: Sequence[str] | None = None,
) -> str:
    """The whole page. ``results``: a folder of PANEL.json; by default those that ship.

    ``study``: a folder of a study for the last slide; by default the one that ships. ``sources``: templates
    of slides. Raises InputError for results or a study that cannot be read.
    """
    parts = Parts(panels, recordings(panels, results), study, live)
    slides = [_slide(number, source, parts) for number, source in enumerate(sources or shipped_slides(), 1)]
    scripts = [text(f"teach/deck/{name}") for name in SCRIPTS]
    html = fill(
        "teach/deck/deck.html",
        title=TITLE,
        slides=slides,
        live=live,
        style=Markup(text("teach/deck/deck.css")),  # noqa: S704 - our own file
        paper=Markup(text("teach/deck/print.css")),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files and reveal.js
        policy=policy(scripts, live),
    )
    return str(html)


def shipped_slides() -> list[str]:
    """The slides that ship, in the order of their names."""
    folder = resources.files("isoloss.teach.deck").joinpath("slides")
    names = sorted(part.name for part in folder.iterdir() if part.name.endswith(".html"))
    return [folder.joinpath(name).read_text("utf-8") for name in names]


def policy(scripts: Sequence[str], live: bool) -> str:
    """Content-Security-Policy: these very scripts, our own styles, and the server only on a live page."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    connect = "; connect-src 'self'" if live else ""
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"base-uri 'none'; form-action 'none'{connect}"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def recordings(panels: Sequence[Panel], folder: Path | None) -> dict[str, Result]:
    """What was measured before, by panel: from a folder of the user's, else what ships."""
    if folder is None:
        with resources.as_file(resources.files("isoloss.teach").joinpath("recorded")) as shipped:
            return recordings(panels, shipped)
    if not folder.is_dir():
        raise InputError("is not a folder", where=str(folder), mend="isoloss demo all -o FOLDER makes one")
    paths = [(panel, folder / f"{panel.name}.json") for panel in panels]
    return {panel.name: _recording(panel, path) for panel, path in paths if path.is_file()}


def _recording(panel: Panel, path: Path) -> Result:
    """A recording whose sentences follow from its tables, whatever sentences the file brings.

    Raises InputError for a file that is not this panel's.
    """
    recording = result.read(path)
    if recording.panel != panel.name:
        mend = f"name it {recording.panel}.json"
        raise InputError(f"it holds panel {recording.panel!r}", where=str(path), mend=mend)
    settings = panel.settings_from(recording.settings)
    with _readable(panel):
        sentences = list(panel.tell.sentences(settings, recording.tables))
        basis = panel.tell.basis(settings, recording.tables)
    return recording.model_copy(update={"sentences": sentences, "basis": basis})


@contextmanager
def _readable(panel: Panel) -> Generator[None]:
    """Raises InputError where recorded tables have no sense for the panel: anything may stand in a file."""
    try:
        yield
    except IsolossError:
        raise
    except Exception as error:
        raise InputError(
            f"its tables cannot be told ({type(error).__name__}: {str(error)[:100]})",
            where=f"{panel.name}.json",
            mend=f"record it again: isoloss demo {panel.demo} --panel {panel.name} -o FOLDER",
        ) from error


@dataclass(frozen=True)
class Parts:
    """What a slide's template may call: ``panel``, ``verdict``, ``study_findings``."""

    panels: Sequence[Panel]
    results: Mapping[str, Result]
    study: Path | None
    live: bool

    def panel(self, name: str) -> Markup:
        """A panel with its form (live) and its recorded output."""
        panel, recording = panel_named(name, self.panels, where="a slide"), self.results.get(name)
        with _readable(panel):
            output = fragment.output(panel, recording, "RECORDED") if recording else None
        fields = forms.fields(panel) if self.live else []
        return fill("teach/deck/panel.html", panel=panel, live=self.live, fields=fields, recorded=output)

    def verdict(self, name: str, key: str) -> Markup:
        """One sentence of a panel, wherever it is quoted: grey until measured, live once it has run."""
        panel, recording = panel_named(name, self.panels, where="a slide"), self.results.get(name)
        sentences = recording.sentences if recording else []
        sentence = next((sentence for sentence in sentences if sentence.key == key), None)
        badge = sentence.badge("RECORDED") if sentence else "RECORDED"
        return fill(
            "teach/deck/verdict.html", panel=panel, key=key, sentence=sentence, badge=badge, result=recording
        )

    def study_findings(self) -> Markup:
        """What a scaling study found, with its figures: the user's, else the one that ships."""
        return study.section(self.study)


def _slide(number: int, source: str, parts: Parts) -> Slide:
    """A slide begins with a bare <h2>, which gets the id and the focus of its slide."""
    calls = {"panel": parts.panel, "verdict": parts.verdict, "study_findings": parts.study_findings}
    html = environment().from_string(source).render(calls).strip()
    heading = _HEADING.match(html)
    if heading is None:
        raise InputError("a slide must begin with <h2>", where=f"slide {number}")
    opening = f'<h2 id="slide-{number}" tabindex="-1">{heading.group(1)}</h2>'
    title = Markup(heading.group(1)).striptags()  # noqa: S704 - escaped by the template already
    return Slide(number, title, Markup(opening + html[heading.end() :]))  # noqa: S704
