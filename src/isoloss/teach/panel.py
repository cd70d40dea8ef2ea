"""A panel: one measurement of a demo, from its settings to sentences and figures.

    measure(settings, report) -> tables           needs torch; runs in a process of its own
    count(settings, tables) -> n of the basis     these need no torch and are pure
    sentences(settings, tables) -> [Sentence]
    figures(settings, tables) -> [Figure]
    lines(settings, tables) -> [str]              what a terminal shows beside them, if anything

A demo's folder has one module a panel that measures and one that tells, and the words of all its panels in
``panels.toml``; ``isoloss.teach.panels`` lists them all.
"""

import pkgutil
import time
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from pydantic import ConfigDict, Field, ValidationError

from isoloss.errors import InputError
from isoloss.figures.figure import Figure
from isoloss.teach import provenance, result, textplot
from isoloss.teach.prose import PanelWords, Plot, read
from isoloss.teach.result import Basis, Result, Sentence, Tables
from isoloss.teach.settings import Settings


class Report(Protocol):
    """``done``: share of the work, 0 to 1; ``text``: what is happening; ``tables``: what there is so far."""

    def __call__(self, done: float, text: str, tables: Tables | None = None) -> None: ...


class Stopped(Exception):
    """Raised by a report: enough. ``tables``: what there is."""

    def __init__(self, tables: Tables):
        self.tables = tables


@runtime_checkable
class Telling(Protocol):
    """The module that tells a panel's tables."""

    def count(self, settings: Any, tables: Tables) -> int: ...
    def sentences(self, settings: Any, tables: Tables) -> Sequence[Sentence]: ...
    def figures(self, settings: Any, tables: Tables) -> Sequence[Figure]: ...


class Panel(PanelWords):
    """Its words, and the code behind it.

    ``plots``: which columns of a figure's table a terminal draws, by the figure's name.

    ``measured_by``: the function that measures, as "race.bill.measure:measure" in ``isoloss.teach``. It needs
    torch, and is imported when it is called.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    demo: str
    settings: type[Settings]
    measured_by: str
    tell: Telling
    plots: dict[str, Plot] = Field(default_factory=dict)

    def measure(self, settings: Settings, report: Report) -> Tables:
        return pkgutil.resolve_name(f"isoloss.teach.{self.measured_by}")(settings, report)

    def sentences(self, settings: Settings, tables: Tables) -> list[Sentence]:
        return list(self.tell.sentences(settings, tables))

    def basis(self, settings: Settings, tables: Tables) -> Basis:
        values = settings.model_dump()
        return Basis(
            n=self.tell.count(settings, tables),
            units=self.units.format(**values),
            seeds=values.get("seeds", self.replicas),
            interval=self.interval,
        )

    def lines(self, settings: Settings, tables: Tables) -> list[str]:
        """What a terminal shows: curves with the key to their names, and what the panel's telling adds."""
        drawn: list[str] = []
        for figure in self.tell.figures(settings, tables):
            if figure.name in self.plots:
                drawn += textplot.lines(figure.title, figure.table, self.plots[figure.name])
        more = getattr(self.tell, "lines", None)
        key = [self.key, ""] if drawn and self.key else []
        return [*drawn, *key, *(more(settings, tables) if more else [])]

    def settings_from(self, values: dict[str, Any]) -> Settings:
        """Validated settings. Raises InputError naming the key, in the words of its form."""
        where = f"panel {self.name}"
        if unknown := sorted(values.keys() - self.settings.model_fields.keys()):
            mend = f"it takes {', '.join(self.settings.model_fields)}"
            raise InputError(f"there is no setting {unknown[0]!r}", where=where, mend=mend)
        try:
            return self.settings.model_validate(values)
        except ValidationError as error:
            raise InputError(
                complaint(self.settings, error), where=where, mend="change it and run again"
            ) from None

    def experiment(self) -> str:
        """Hash of the code that decides the numbers."""
        return provenance.experiment(self.measuring_module)

    @property
    def measuring_module(self) -> str:
        return f"isoloss.teach.{self.measured_by}".split(":")[0]


LIMITS = {
    "less_than_equal": "at most {le:,}",
    "less_than": "less than {lt:,}",
    "greater_than_equal": "at least {ge:,}",
    "greater_than": "more than {gt:,}",
    "multiple_of": "multiples of {multiple_of}",
    "string_too_long": "at most {max_length:,} characters",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
}
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "string": "text",
    "tuple": "a list",
    "finite": "a number that is not infinite",
}
OTHER_KIND = ("_type", "_parsing", "_from_float", "_number")


def complaint(settings: type[Settings], error: ValidationError) -> str:
    """The first thing that is wrong, by the setting's label and name, for people who know no types."""
    first = error.errors()[0]
    kind, context = first["type"], first.get("ctx", {})
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    name = str(first["loc"][0])
    label = f"{settings.model_fields[name].description} ({name})"
    given = repr(first["input"])
    got = f", got {given}" if len(given) < 60 else ""
    if kind in LIMITS:
        return f"{label} takes {LIMITS[kind].format(**context)}{got}"
    expected = next((words for part, words in KINDS.items() if kind.startswith(part)), None)
    if expected and kind.endswith(OTHER_KIND):
        return f"{label} takes {expected}{got}"
    return f"{label}: {first['msg'].removeprefix('Value error, ')}{got}"


def panel_of(folder: str, name: str, settings: type[Settings], measured_by: str, tell: Telling) -> Panel:
    """The panel that ``panels.toml`` in a folder describes; ``measured_by``: MODULE:FUNCTION in it."""
    prose = read(folder)
    return Panel(
        name=name,
        demo=prose.demo,
        settings=settings,
        measured_by=f"{folder}.{measured_by}",
        tell=tell,
        plots={name: caption.plot for name, caption in prose.figures.items() if caption.plot},
        **dict(prose.panels[name]),
    )


def run(panel: Panel, settings: Settings, report: Report) -> Result:
    """Run a panel here and now, in this process: its tables, with the sentences that they carry.

    A report that raises Stopped ends it with the tables of that moment.
    """
    wall, cpu = time.monotonic(), time.process_time()
    try:
        tables = panel.measure(settings, report)
    except Stopped as stopped:
        tables = stopped.tables
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    report(1.0, "putting it into words")
    return Result(
        panel=panel.name,
        settings=settings.model_dump(mode="json"),
        tables=tables,
        sentences=panel.sentences(settings, tables),
        basis=panel.basis(settings, tables),
        machine=result.machine(panel.threads),
        made=result.now(),
        cpu_seconds=cpu,
        wall_seconds=wall,
        experiment=panel.experiment(),
    )
