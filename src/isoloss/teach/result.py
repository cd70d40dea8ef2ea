"""What a measurement leaves: tables, sentences, the machine, its age. Plain JSON, checked when read."""

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from isoloss import cpu, files
from isoloss.errors import InputError, RunError
from isoloss.stats import Row
from isoloss.strict import Strict, validate
from isoloss.teach import words
from isoloss.text import plural
from isoloss.version import __version__

Tables = dict[str, list[Row]]
"""Long tables by name; every measured column has ``low`` and ``high`` beside it, and ``n``."""

MEND = "record it again: isoloss demo NAME -o FOLDER"

Badge = Literal["LIVE", "RECORDED", "EXACT"]
Family = Literal["", "LSTM", "Transformer"]


class Sentence(Strict):
    """One statement made from the tables, in two layers.

    ``short``: what is said in the room, if anything; ``text``: what stands behind it, with n and interval;
    ``ahead``: which family it finds ahead, if it compares the two and finds one; ``lead``: by how much.
    ``exact``: a count or a closed form, true on every machine. ``recorded``: about what was measured
    elsewhere and ships, such as trained models' losses, whenever the panel runs.
    """

    key: str
    text: str
    short: str = ""
    ahead: Family = ""
    lead: str = ""
    exact: bool = False
    recorded: bool = False

    @field_validator("text", "lead")
    @classmethod
    def _check_text(cls, text: str) -> str:
        return words.check(text)

    @field_validator("short")
    @classmethod
    def _check_short(cls, text: str) -> str:
        return words.check_short(text)

    def badge(self, otherwise: Badge) -> Badge:
        return "EXACT" if self.exact else "RECORDED" if self.recorded else otherwise


def sentence(
    key: str,
    text: str,
    short: str = "",
    ahead: Family = "",
    lead: str = "",
    *,
    exact: bool = False,
    recorded: bool = False,
) -> Sentence:
    """Raises RunError for one that must not be said."""
    lead = lead if ahead else ""
    return Sentence(key=key, text=text, short=short, ahead=ahead, lead=lead, exact=exact, recorded=recorded)


class Basis(Strict):
    """What stands behind the numbers: ``n`` ``units`` each, over ``seeds`` seeds, with which interval."""

    n: int = Field(gt=0)
    units: str
    seeds: int | None = None
    interval: str

    def line(self) -> str:
        seeds = "" if self.seeds is None else f" · {plural(self.seeds, 'seed')}"
        return f"n = {self.n:,} {self.units}{seeds} · {self.interval}"


class Machine(Strict):
    """Where it was measured."""

    cpu: str
    cores: int
    threads: int
    device: str = "cpu"
    platform: str
    python: str
    numpy: str
    torch: str | None
    isoloss: str

    def line(self) -> str:
        torch = f", torch {self.torch}" if self.torch else ""
        return f"{self.cpu}, {plural(self.threads, 'thread')} on {self.device}{torch}"


class Result(Strict):
    """One panel measured once. ``experiment``: hash of the code that measured; another hash means stale."""

    version: Literal[1] = 1
    panel: str
    settings: dict[str, Any]
    tables: Tables
    sentences: list[Sentence]
    basis: Basis
    machine: Machine
    made: str
    cpu_seconds: float
    wall_seconds: float
    experiment: str


def frame(tables: Tables, name: str, **only: Any) -> pl.DataFrame:
    """A table as a frame, or its rows that have these values; empty where there is none."""
    whole = pl.DataFrame(tables.get(name, []), infer_schema_length=None)
    return whole.filter(**only) if only and len(whole) else whole


def machine(threads: int) -> Machine:
    return Machine(
        cpu=cpu.name(),
        cores=os.cpu_count() or 1,
        threads=threads,
        device="cpu",
        platform=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        numpy=metadata.version("numpy"),
        torch=torch_version(),
        isoloss=__version__,
    )


def torch_version() -> str | None:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write(result: Result, folder: Path) -> Path:
    path = files.safe_child(folder, f"{result.panel}.json")
    files.write_json(path, result.model_dump(mode="json"))
    return path


class Export(Strict):
    """What the deck's button writes: the results of one session."""

    title: str
    made: str
    results: list[Result]


def read_export(path: Path) -> list[Result]:
    """Raises InputError naming the file and the key that is wrong."""
    try:
        return validate(Export, files.read_json(path), where=str(path), mend=MEND).results
    except RunError as error:
        raise InputError(f"{error.what}, {error.where}", where=str(path), mend=MEND) from None


def read(path: Path) -> Result:
    """A recorded result. Raises InputError naming the file and the key that is wrong."""
    try:
        return validate(Result, files.read_json(path), where=str(path), mend=MEND)
    except RunError as error:  # a sentence that must not be said: in a file it is the file's fault
        raise InputError(f"{error.what}, {error.where}", where=str(path), mend=MEND) from None
