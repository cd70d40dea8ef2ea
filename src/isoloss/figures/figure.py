"""What a figure is before anyone draws it: a chart, its finding in words, and the numbers behind it."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import altair as alt
import polars as pl

from isoloss import text
from isoloss.captions import Captions
from isoloss.figures.style import TITLE_CHARACTERS, configured, title_of
from isoloss.strict import Strict


@dataclass(frozen=True)
class Figure:
    """``name`` is the file's stem. ``chart`` is an altair chart, whose specification is plain data.

    ``title`` states the finding and ``subtitle`` how it was counted; both are laid on the chart when it is
    rendered, in lines of ``characters``. ``description`` says in words what is drawn, for whoever does not
    see it. ``shows`` (what the title leaves out, or nothing) and ``would_change`` are the paragraphs beside
    it; ``table`` holds every number drawn.
    """

    name: str
    chart: Any
    title: str
    description: str
    shows: str
    would_change: str
    table: pl.DataFrame
    subtitle: str = ""
    characters: int = TITLE_CHARACTERS

    @cached_property
    def specification(self) -> dict[str, Any]:
        """The chart as Vega-Lite with the figure's title and the theme laid on; to be read, not changed.

        Altair checks each part as it is built; checking the whole again takes as long as drawing it, and so
        does laying the theme over the chart, which copies it once a part of the theme.
        """
        laid_on: dict[str, Any] = {"config": _theme()}
        if self.subtitle:
            title = title_of(self.title, self.subtitle, self.characters)
            laid_on["title"] = title.to_dict(validate=False)
        return self.chart.to_dict(validate=False) | laid_on


@cache
def _theme() -> dict[str, Any]:
    return configured(alt.Chart(alt.InlineData(values=[])).mark_point()).to_dict(validate=False)["config"]


class FigureCaption(Strict):
    """The texts of a figure in captions.toml."""

    subtitle: str
    description: str
    shows: str
    would_change: str
    characters: int = TITLE_CHARACTERS


CAPTIONS = Captions("isoloss.figures", FigureCaption)


def captioned(name: str, chart: Any, title: str, table: pl.DataFrame, **values: object) -> Figure:
    """A figure with the texts of its name in captions.toml, ``values`` at their {names}.

    Raises LookupError where the texts and the values do not have the same names.
    """
    texts = CAPTIONS.fill(name, **values)
    texts |= {"subtitle": text.capital(texts["subtitle"]), "shows": texts["shows"].strip()}
    return Figure(name=name, chart=chart, title=title, table=table, **texts)
