"""What a panel's output shows: sentences, pictures, tables, and what stands behind them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures import render
from isoloss.figures.figure import Figure
from isoloss.report.tables import Table, table_of
from isoloss.report.templates import inline
from isoloss.teach.deck.templates import filled
from isoloss.teach.panel import Panel
from isoloss.teach.result import Badge, Result, Tables
from isoloss.teach.settings import Settings

SHOWN_SENTENCES = 2
"""The rest are one key away: a slide is read from afar."""

SHOWN_ROWS = 200
"""Rows of a table on a slide; all of them are in results.json."""


@dataclass(frozen=True)
class Drawn:
    """A figure on a slide: its picture, the paragraph beside it, the numbers behind it."""

    name: str
    svg: Markup
    title: str
    shows: str
    table: Table
    folded: bool


def whole(panel: Panel, result: Result, badge: Badge) -> Markup:
    """A finished measurement. Raises InputError for a recording whose settings the panel no longer takes."""
    settings = panel.settings_from(result.settings)
    return filled(
        "fragment.html",
        title=panel.title,
        sentences=result.sentences,
        shown=SHOWN_SENTENCES,
        drawn=drawn(panel, settings, result.tables, "recorded-" if badge == "RECORDED" else ""),
        own=_own(panel, settings, result.tables),
        blind=hasattr(panel.tell, "blind_lines"),
        badge=badge,
        result=result,
        stale=result.experiment != panel.experiment(),
        settings=_said(result.settings),
    )


def so_far(panel: Panel, settings: Settings, tables: Tables) -> Markup:
    """A measurement under way: pictures only, since sentences need all of it."""
    blind = hasattr(panel.tell, "blind_lines")
    return filled(
        "so_far.html",
        title=panel.title,
        drawn=[] if blind else drawn(panel, settings, tables),
        own=_own(panel, settings, tables),
    )


def drawn(panel: Panel, settings: Settings, tables: Tables, before: str = "") -> list[Drawn]:
    """``before`` begins their names: a recording may stand on one page with what is measured live."""
    found: Sequence[Figure] = panel.tell.figures(settings, tables)
    folded = getattr(panel.tell, "FOLDED", ())
    return [picture(figure, before + panel.name, folded=figure.name in folded) for figure in found]


def picture(figure: Figure, owner: str, *, folded: bool = False) -> Drawn:
    """``owner`` keeps the ids of one page's pictures apart."""
    figure = replace(figure, name=f"{owner}-{figure.name}")
    svg = inline(figure, render.svg(figure))
    return Drawn(figure.name, svg, figure.title, figure.shows, _table(figure), folded)


def _table(figure: Figure) -> Table:
    rows: pl.DataFrame = figure.table
    some = f" (the first {SHOWN_ROWS} of {len(rows):,} rows)" if len(rows) > SHOWN_ROWS else ""
    return table_of(f"Numbers behind: {figure.title}{some}", rows.head(SHOWN_ROWS))


def _own(panel: Panel, settings: Settings, tables: Tables) -> Markup:
    """Markup that only this panel has, escaped by its module."""
    html = getattr(panel.tell, "html", None)
    return html(settings, tables) if html is not None else Markup("")


def _said(settings: dict[str, Any]) -> str:
    def value(given: Any) -> str:
        return " ".join(str(part) for part in given) if isinstance(given, list) else str(given)

    return ", ".join(f"{key.replace('_', ' ')} {value(given)}" for key, given in settings.items())
