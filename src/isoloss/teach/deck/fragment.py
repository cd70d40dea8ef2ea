"""What a panel's output shows: sentences, pictures, tables, and what stands behind them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures import render
from isoloss.figures.figure import Figure
from isoloss.report.templates import fill, inline
from isoloss.table import Table, table_of
from isoloss.teach.panel import Panel
from isoloss.teach.result import Badge, Result, Tables
from isoloss.teach.settings import Settings

SHOWN_SENTENCES = 2
"""The rest are one key away: a slide is read from afar."""

SHOWN_ROWS = 200
"""Rows of a table on a slide; all of them are in results.json."""


@dataclass(frozen=True)
class SlidePicture:
    """A figure on a slide: its drawing, the paragraph beside it, the numbers behind it."""

    name: str
    svg: Markup
    title: str
    shows: str
    table: Table
    folded: bool


def output(panel: Panel, result: Result, badge: Badge) -> Markup:
    """A finished measurement. Raises InputError for a recording whose settings the panel no longer takes."""
    settings = panel.settings_from(result.settings)
    return fill(
        "teach/deck/fragment.html",
        title=panel.title,
        sentences=result.sentences,
        shown=SHOWN_SENTENCES,
        pictures=pictures(panel, settings, result.tables, "recorded-" if badge == "RECORDED" else ""),
        extra=_extra(panel, settings, result.tables),
        blind=hasattr(panel.tell, "blind_lines"),
        badge=badge,
        result=result,
        stale=result.experiment != panel.experiment(),
        settings=_settings_line(result.settings),
    )


def partial_output(panel: Panel, settings: Settings, tables: Tables) -> Markup:
    """A measurement under way: pictures only, since sentences need all of it."""
    blind = hasattr(panel.tell, "blind_lines")
    return fill(
        "teach/deck/so_far.html",
        title=panel.title,
        pictures=[] if blind else pictures(panel, settings, tables),
        extra=_extra(panel, settings, tables),
    )


def pictures(panel: Panel, settings: Settings, tables: Tables, prefix: str = "") -> list[SlidePicture]:
    """``prefix`` of their names: a recording may stand on one page with what is measured live."""
    figures: Sequence[Figure] = panel.tell.figures(settings, tables)
    folded = getattr(panel.tell, "FOLDED", ())
    return [picture(figure, prefix + panel.name, folded=figure.name in folded) for figure in figures]


def picture(figure: Figure, owner: str, *, folded: bool = False) -> SlidePicture:
    """``owner`` keeps the ids of one page's pictures apart."""
    figure = replace(figure, name=f"{owner}-{figure.name}")
    rows: pl.DataFrame = figure.table
    cut = f" (the first {SHOWN_ROWS} of {len(rows):,} rows)" if len(rows) > SHOWN_ROWS else ""
    table = table_of(f"Numbers behind: {figure.title}{cut}", rows.head(SHOWN_ROWS))
    svg = inline(figure, render.svg(figure))
    return SlidePicture(figure.name, svg, figure.title, figure.shows, table, folded)


def _extra(panel: Panel, settings: Settings, tables: Tables) -> Markup:
    """Markup that only this panel has, escaped by its module."""
    html = getattr(panel.tell, "html", None)
    return html(settings, tables) if html is not None else Markup("")


def _settings_line(settings: dict[str, Any]) -> str:
    words = {
        key: " ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in settings.items()
    }
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in words.items())
