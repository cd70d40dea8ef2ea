"""A panel: one measurement of a demo, from its settings to sentences and figures.

    measure(settings, report) -> tables           needs torch; runs in a process of its own
    basis(settings, tables) -> Basis              these four need no torch and are pure
    sentences(settings, tables) -> [Sentence]
    figures(settings, tables) -> [Figure]
    lines(settings, tables) -> [str]              the terminal's view, pictures included

A demo's folder has one module a panel that measures and one that tells; ``panels.py`` lists them all.
"""

import hashlib
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isoloss.errors import InputError
from isoloss.figures.figure import Figure
from isoloss.teach import result
from isoloss.teach.result import Basis, Result, Sentence, Tables


class Settings(BaseModel):
    """Base of a panel's settings: every field has a default (the deck's size), bounds and a description."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Seeded(Settings):
    seeds: int = Field(default=3, ge=1, le=20, description="How many random seeds")
    first_seed: int = Field(default=0, ge=0, le=10_000, description="The first seed; the others follow")

    @property
    def seed_numbers(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))


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

    ``depends``: what else under ``isoloss`` decides the numbers, as files or folders; its hash, with the
    measuring module's, is the experiment's. ``full``: settings of the recording that ships, larger than the
    defaults, which are the deck's live sizes. ``cap_seconds``: wall time after which a live run is ended.
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
    depends: tuple[str, ...] = ()
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
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"]) or "settings"
            known = ", ".join(self.settings.model_fields)
            raise InputError(
                f"{key}: {first['msg']}", where=f"panel {self.name}", mend=f"it takes {known}"
            ) from None

    def experiment(self) -> str:
        """Hash of the code that decides the numbers."""
        digest = hashlib.sha256()
        for name in sorted({f"teach/{self.measured_by.replace('.', '/')}.py", *self.depends}):
            for part in _files(resources.files("isoloss").joinpath(name)):
                digest.update(part)
        return digest.hexdigest()


def _files(place: Any) -> list[bytes]:
    if place.is_file():
        return [place.read_bytes()]
    inside = sorted((child for child in place.iterdir() if child.name.endswith(".py")), key=lambda c: c.name)
    return [child.read_bytes() for child in inside]


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
