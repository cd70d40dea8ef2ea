"""The standing words of a demo: the ``panels.toml`` in its folder, read strictly.

demo             its name in commands
[panels.NAME]    title, question, doubt; the full recording's settings; bounds that are not the usual ones
[figures.NAME]   title, subtitle, description, shows, would_change: each may hold {names}
[settings.NAME]  label, default and bounds of each setting
[says]           sentences about what was measured, with {names}
"""

import tomllib
from functools import cache
from importlib import resources
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, Field

from isoloss.figures.figure import Figure
from isoloss.figures.style import TITLE_CHARACTERS
from isoloss.strict import Strict, validate

Text = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""Line breaks are spaces."""


class PanelWords(Strict):
    """What is said of a panel beside its numbers, and how it is run.

    ``units`` and ``interval``: what stands behind the numbers, with settings' {names}; ``replicas``: how many
    seeds that is, where no setting says so.

    ``doubt``: what this does not show; ``beware``: the same in one breath. ``guess``: what the room is asked
    before it sees the answer, and ``guesses`` the buttons; ``key``: what names in the picture stand for;
    ``front``: settings that stand on the slide itself; ``fresh``: a seed is drawn for each run, unless
    somebody chose one; ``stops``: a run may be stopped and told as far as it came. ``full``: settings of the
    recording that ships, larger than the defaults, which are the deck's live sizes. ``cap_seconds``: wall
    time after which a live run is ended.
    """

    title: Text
    question: Text
    doubt: Text
    beware: Text
    units: Text
    interval: Text
    replicas: int | None = None
    key: Text = ""
    guess: Text = ""
    guesses: tuple[str, ...] = Field(default=(), strict=False)
    front: tuple[str, ...] = Field(default=(), strict=False)
    fresh: bool = False
    stops: bool = False
    full: dict[str, Any] = Field(default_factory=dict)
    cap_seconds: float = 180.0
    threads: int = 1


class SettingWords(Strict):
    """A setting's label, default and bounds; ``most``: values of a list, characters of a text."""

    label: Text = ""
    default: Any = None
    ge: int | float | None = None
    le: int | float | None = None
    multiple_of: int | None = None
    most: int | None = None


class Plot(Strict):
    """Which columns a terminal draws: ``y`` against ``x``, a mark ``by`` value; ``log``: axes, as "xy"."""

    x: str
    y: str = "value"
    by: str
    log: str = ""


class Caption(Strict):
    """What is said of a figure; lines of its title have so many ``characters``."""

    title: Text
    subtitle: Text = ""
    characters: int = TITLE_CHARACTERS
    description: Text
    shows: Text
    would_change: Text
    plot: Plot | None = None


class Prose(Strict):
    demo: str
    panels: dict[str, PanelWords]
    figures: dict[str, Caption] = Field(default_factory=dict)
    settings: dict[str, dict[str, SettingWords]] = Field(default_factory=dict)
    says: dict[str, Text] = Field(default_factory=dict)


@cache
def read(folder: str) -> Prose:
    """The words of the demo in this folder of ``isoloss.teach``."""
    return parse(resources.files("isoloss.teach").joinpath(folder, "panels.toml").read_text("utf-8"), folder)


def parse(text: str, folder: str) -> Prose:
    """Raises InputError naming a key that is missing, unknown or of another type."""
    return validate(Prose, tomllib.loads(text), where=f"teach/{folder}/panels.toml")


def figure(folder: str, name: str, chart: Any, table: pl.DataFrame, **words: object) -> Figure:
    """A figure with its caption; ``words`` stand where its texts have their names."""
    caption = read(folder).figures[name]
    texts = {key: text.format(**words) for key, text in caption if isinstance(text, str)}
    return Figure(name=name, chart=chart, table=table, characters=caption.characters, **texts)


def say(folder: str, name: str, /, **words: object) -> str:
    """A sentence of the demo, ``words`` at their names."""
    return read(folder).says[name].format(**words)
