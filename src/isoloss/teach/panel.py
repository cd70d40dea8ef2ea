"""A panel: one measurement of a demo, from its settings to sentences and figures.

    measure(settings, report) -> tables           needs torch; runs in a process of its own
    basis(settings, tables) -> Basis              these four need no torch and are pure
    sentences(settings, tables) -> [Sentence]
    figures(settings, tables) -> [Figure]
    lines(settings, tables) -> [str]              the terminal's view, pictures included

A demo's folder has one module a panel that measures and one that tells; ``panels.py`` lists them all.
"""

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import ValidationError

from isoloss.errors import InputError
from isoloss.figures.figure import Figure
from isoloss.strict import first_complaint
from isoloss.teach import provenance, result
from isoloss.teach.result import Basis, Result, Sentence, Tables
from isoloss.teach.settings import Settings


class Report(Protocol):
    """``done``: share of the work, 0 to 1; ``text``: what is happening; ``tables``: what there is so far."""

    def __call__(self, done: float, text: str, tables: Tables | None = None) -> None: ...


class Telling(Protocol):
    """The module that tells a panel's tables."""

    def basis(self, settings: Any, tables: Tables) -> Basis: ...
    def sentences(self, settings: Any, tables: Tables) -> Sequence[Sentence]: ...
    def figures(self, settings: Any, tables: Tables) -> Sequence[Figure]: ...
    def lines(self, settings: Any, tables: Tables) -> Sequence[str]: ...


@dataclass(frozen=True)
class Panel:
    """``measured_by``, ``told_by``: names of modules under ``isoloss.teach``, imported when needed.

    ``full``: settings of the recording that ships, larger than the defaults, which are the deck's live sizes.
    ``cap_seconds``: wall time after which a live run is ended.
    ``alone``: it measures time, so nothing else may run beside it. ``doubt``: what this does not show.
    """

    name: str
    demo: str
    title: str
    question: str
    doubt: str
    settings: type[Settings]
    measured_by: str
    told_by: str
    full: dict[str, Any] = field(default_factory=dict)
    cap_seconds: float = 180.0
    threads: int = 1
    alone: bool = False

    @property
    def telling(self) -> Telling:
        return importlib.import_module(f"isoloss.teach.{self.told_by}")

    @property
    def measure(self) -> Callable[[Any, Report], Tables]:
        return importlib.import_module(f"isoloss.teach.{self.measured_by}").measure

    def settings_from(self, values: dict[str, Any]) -> Settings:
        """Validated settings. Raises InputError naming the key."""
        try:
            return self.settings.model_validate(values)
        except ValidationError as error:
            known = ", ".join(self.settings.model_fields)
            raise InputError(
                first_complaint(error, "settings"), where=f"panel {self.name}", mend=f"it takes {known}"
            ) from None

    def experiment(self) -> str:
        """Hash of the code that decides the numbers: the measuring module and what it imports."""
        return provenance.experiment(f"isoloss.teach.{self.measured_by}")


def measured(panel: Panel, settings: Settings, report: Report) -> Result:
    """Run a panel here and now, in this process."""
    wall, cpu = time.monotonic(), time.process_time()
    tables = panel.measure(settings, report)
    return told(
        panel,
        settings,
        tables,
        wall_seconds=time.monotonic() - wall,
        cpu_seconds=time.process_time() - cpu,
    )


def told(
    panel: Panel, settings: Settings, tables: Tables, *, wall_seconds: float, cpu_seconds: float
) -> Result:
    """Tables with the sentences that they carry."""
    return Result(
        panel=panel.name,
        settings=settings.model_dump(mode="json"),
        tables=tables,
        sentences=list(panel.telling.sentences(settings, tables)),
        basis=panel.telling.basis(settings, tables),
        machine=result.machine(panel.threads),
        made=result.now(),
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
        experiment=panel.experiment(),
    )
