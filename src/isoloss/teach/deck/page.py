"""The deck as one HTML page: thirteen slides and an appendix, everything inline, nothing fetched.

The page that the server shows and the file that ``--build`` writes differ in one thing: on a live page the
panels have forms, and the script may talk to the server that it came from.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from isoloss.analysis.study import StudyAnalysis
from isoloss.errors import InputError, IsolossError
from isoloss.report.templates import environment, fill, policy, text
from isoloss.teach import result
from isoloss.teach.amnesia.reach import tell as reach
from isoloss.teach.attention.right_slot import tell as right_slot
from isoloss.teach.attention.trained import tell as trained
from isoloss.teach.deck import fragment, study
from isoloss.teach.panel import Panel
from isoloss.teach.panels import PANELS
from isoloss.teach.panels import panel as panel_named
from isoloss.teach.result import Result, Sentence

TITLE = "The Great Shift"
MACHINES = ("drawing.js", "cell.js", "web.js", "dictionary.js", "blame.js", "race.js")
STAGE = ("stage.js", "tally.js", "presenter.js", "panels.js", "deck.js")
SCRIPTS = ("vendor/reveal/reveal.js", *(f"machines/{name}" for name in MACHINES), *STAGE)
APPENDIX = "A"
CALLS = ("panel", "machine", "scoreboard", "verdict", "aloud", "study_findings", "study_evidence")
"""What a slide's template may call of ``Parts``."""

ARRAYS = {"reach": reach.arrays, "trained": trained.arrays, "right-slot": right_slot.arrays}
"""What a drawing takes of a panel's recorded tables."""

_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


@dataclass(frozen=True)
class Slide:
    """``number``: its place in the file, from 1; ``label``: what people see, A1 and on in the appendix."""

    number: int
    label: str
    title: str
    html: Markup


def build(
    results: Path | None = None,
    study: Path | None = None,
    *,
    live: bool = False,
    panels: Sequence[Panel] = PANELS,
    sources: Mapping[str, str] | None = None,
    measured: Sequence[Result] = (),
) -> str:
    """The whole page. ``results``: a folder of PANEL.json, or the deck's export, over those that ship.

    ``study``: a folder of a study for the last slide; by default the one that ships. ``sources``: templates
    of slides by label. ``measured``: results over all others. Raises InputError for results or a study that
    cannot be read.
    """
    recorded = recordings(panels, results) | {one.panel: one for one in measured}
    parts = Parts(panels, recorded, study, live)
    with debug_mode(False):  # Altair would check every part of every picture, as the tests of each have done
        slides = [
            _slide(number, label, source, parts)
            for number, (label, source) in enumerate((sources or shipped_slides()).items(), 1)
        ]
    scripts = [text(f"teach/deck/{name}") for name in SCRIPTS]
    html = fill(
        "teach/deck/deck.html",
        title=TITLE,
        slides=slides,
        last=sum(not slide.label.startswith(APPENDIX) for slide in slides),
        live=live,
        style=Markup(text("teach/deck/deck.css")),  # noqa: S704 - our own file
        paper=Markup(text("teach/deck/print.css")),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files and reveal.js
        policy=policy(*scripts, server=live),
    )
    return str(html)


def shipped_slides() -> dict[str, str]:
    """The slides that ship, by label, in the order of their names: 01-title.html, A1-machine.html."""
    folder = resources.files("isoloss.teach.deck").joinpath("slides")
    names = sorted(part.name for part in folder.iterdir() if part.name.endswith(".html"))
    return {name.split("-")[0].lstrip("0"): folder.joinpath(name).read_text("utf-8") for name in names}


def recordings(panels: Sequence[Panel], own: Path | None) -> dict[str, Result]:
    """What was measured before, by panel: what ships, and over it what the user brings.

    ``own``: a folder of PANEL.json, or the file that the deck exports. Raises InputError where it holds no
    result of these panels.
    """
    with resources.as_file(resources.files("isoloss.teach").joinpath("recorded")) as shipped:
        results = _of_folder(panels, shipped)
    if own is None:
        return results
    if not own.exists():
        raise InputError("is not a folder", where=str(own), mend="isoloss demo all -o FOLDER makes one")
    brought = _of_folder(panels, own) if own.is_dir() else _of_export(panels, own)
    if not brought:
        mend = "isoloss demo all -o FOLDER makes one, and the deck's button Export a file"
        raise InputError("holds no result of a panel", where=str(own), mend=mend)
    return results | brought


def _of_folder(panels: Sequence[Panel], folder: Path) -> dict[str, Result]:
    paths = [(panel, folder / f"{panel.name}.json") for panel in panels]
    return {panel.name: _recording(panel, result.read(path), path) for panel, path in paths if path.is_file()}


def _of_export(panels: Sequence[Panel], path: Path) -> dict[str, Result]:
    """The results of the deck's own export: {"results": [...]}."""
    by_name = {panel.name: panel for panel in panels}
    held = result.read_export(path)
    return {one.panel: _recording(by_name[one.panel], one, path) for one in held if one.panel in by_name}


def _recording(panel: Panel, recording: Result, path: Path) -> Result:
    """A recording whose sentences follow from its tables, whatever sentences the file brings.

    Raises InputError for a file that is not this panel's.
    """
    if recording.panel != panel.name:
        mend = f"name it {recording.panel}.json"
        raise InputError(f"it holds panel {recording.panel!r}", where=str(path), mend=mend)
    settings = panel.settings_from(recording.settings)
    with _readable(panel):
        sentences = panel.sentences(settings, recording.tables)
        basis = panel.basis(settings, recording.tables)
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
    """What a slide's template may call."""

    panels: Sequence[Panel]
    results: Mapping[str, Result]
    study: Path | None
    live: bool

    def panel(
        self,
        name: str,
        at: int = 1,
        since: int | None = None,
        until: int | None = None,
        caller: Callable[[], Markup] | None = None,
    ) -> Markup:
        """A panel with its form (live) and its recorded output.

        Its picture comes ``at`` a step of the slide; until then ``caller`` gives an example and the room
        guesses; verdict and doubt follow. The panel is there ``since`` one step and ``until`` another.
        """
        panel, recording = panel_named(name, self.panels, where="a slide"), self.results.get(name)
        with _readable(panel):
            output = fragment.output(panel, recording, "RECORDED") if recording else None
            example = fragment.example(panel, recording) if recording else ""
        fields = panel.settings.model_json_schema()["properties"] if self.live else {}
        steps = {"at": at, "since": since, "until": until, "example": example or (caller() if caller else "")}
        return fill(
            "teach/deck/panel.html", panel=panel, live=self.live, fields=fields, recorded=output, **steps
        )

    def machine(self, kind: str, otherwise: str, of: str = "", **options: object) -> Markup:
        """A drawing by a script, ``of`` a panel's recorded arrays; ``otherwise``: what to read without."""
        recording = self.results.get(of)
        arrays = ARRAYS[of](recording.tables) if recording else None
        values = {"otherwise": otherwise, "of": of, "arrays": arrays, "options": options}
        return fill("teach/deck/machine.html", kind=kind, **values)

    def verdict(self, name: str, key: str) -> Markup:
        """One sentence of a panel, wherever it is quoted: grey until measured, live once it has run."""
        panel, sentence = panel_named(name, self.panels, where="a slide"), self._sentence(name, key)
        values = {"panel": panel, "key": key, "sentence": sentence, "result": self.results.get(name)}
        return fill("teach/deck/verdict.html", **values)

    def aloud(self, name: str, key: str) -> Markup:
        """The short form of a sentence of a panel, wherever it is quoted; nothing until it is measured."""
        values = {"panel": name, "key": key, "sentence": self._sentence(name, key)}
        return fill("teach/deck/aloud.html", **values)

    def scoreboard(self, rows: Sequence[tuple[str, str, str]]) -> Markup:
        """Who is ahead where: a topic a row, with the panel and the key of the sentence that decides it."""
        sentences = [(topic, name, key, self._sentence(name, key)) for topic, name, key in rows]
        return fill("teach/deck/scoreboard.html", rows=sentences)

    def _sentence(self, name: str, key: str) -> Sentence | None:
        """None where it was not measured. Raises InputError for a panel that there is not."""
        panel_named(name, self.panels, where="a slide")
        sentences = self.results[name].sentences if name in self.results else []
        return next((sentence for sentence in sentences if sentence.key == key), None)

    @cached_property
    def analysis(self) -> StudyAnalysis:
        """Of the user's study, else of the one that ships."""
        return study.analysis_of(self.study)

    def study_findings(self) -> Markup:
        """What a scaling study found, with its figures."""
        return study.section(self.analysis, shipped=self.study is None)

    def study_evidence(self, key: str, at: int, gone: int | None = None) -> Markup:
        """One of its findings, there from step ``at`` of the slide to step ``gone``."""
        return study.evidence(self.analysis, key, {"at": at, "gone": gone})


def _slide(number: int, label: str, source: str, parts: Parts) -> Slide:
    """A slide begins with a bare <h2>, which gets the id and the focus of its slide."""
    calls = {name: getattr(parts, name) for name in CALLS}
    html = environment().from_string(source).render(calls).strip()
    heading = _HEADING.match(html)
    if heading is None:
        raise InputError("a slide must begin with <h2>", where=f"slide {number}")
    opening = f'<h2 id="slide-{number}" tabindex="-1">{heading.group(1)}</h2>'
    title = Markup(heading.group(1)).striptags()  # noqa: S704 - escaped by the template already
    return Slide(number, label, title, Markup(opening + html[heading.end() :]))  # noqa: S704
