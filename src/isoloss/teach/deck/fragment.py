"""What a panel's output shows: sentences, pictures, tables, and what stands behind them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures import render
from isoloss.figures.figure import Figure
from isoloss.report.publish import phone_pictures
from isoloss.report.templates import fill, inline
from isoloss.table import Table, table_of
from isoloss.teach.panel import Panel
from isoloss.teach.result import Badge, Result, Tables
from isoloss.teach.settings import Settings

SHOWN_ROWS = 200
"""Rows of a table on a slide; all of them are in results.json."""


@dataclass(frozen=True)
class SlidePicture:
    """A figure on a slide: its drawing, what stands under it, the numbers behind it.

    ``narrow``: the same as wide as a phone, where it was asked for and fits. ``badge``: the figure's own,
    since one panel may draw what it counted beside what it measured.
    """

    name: str
    svg: Markup
    narrow: Markup
    title: str
    subtitle: str
    shows: str
    table: Table
    folded: bool
    badge: Badge


def output(panel: Panel, result: Result, badge: Badge) -> Markup:
    """A finished measurement. Raises InputError for a recording whose settings the panel no longer takes."""
    settings = panel.settings_from(result.settings)
    return fill(
        "teach/deck/fragment.html",
        finished=True,
        title=panel.title,
        pictures=pictures(panel, settings, result.tables, badge, phone=True),
        **_shown(panel, settings, result.tables),
        badge=badge,
        result=result,
        stale=result.experiment != panel.experiment(),
        settings=_settings_line(result.settings),
    )


def example(panel: Panel, result: Result) -> Markup:
    """What stands on the slide before anything else, where the panel has such."""
    tell = getattr(panel.tell, "example", None)
    return tell(panel.settings_from(result.settings), result.tables) if tell else Markup("")


def partial_output(panel: Panel, settings: Settings, tables: Tables) -> Markup:
    """A measurement under way: pictures only, since sentences need all of it."""
    shown = _shown(panel, settings, tables)
    drawn: list[SlidePicture] = [] if shown["hidden"] else pictures(panel, settings, tables, "LIVE")
    return fill("teach/deck/fragment.html", finished=False, title=panel.title, pictures=drawn, **shown)


def _shown(panel: Panel, settings: Settings, tables: Tables) -> dict[str, Any]:
    """``hero``: the panel's own markup is what the slide shows; ``hidden``: until a vote, all else is not."""
    html = getattr(panel.tell, "html", None)
    return {
        "extra": html(settings, tables) if html is not None else Markup(""),
        "hero": getattr(panel.tell, "HERO", False),
        "hidden": hasattr(panel.tell, "blind_lines"),
    }


def pictures(
    panel: Panel, settings: Settings, tables: Tables, badge: Badge, *, phone: bool = False
) -> list[SlidePicture]:
    """Names begin with "recorded" where what is measured live may stand on the same page.

    ``phone``: the one on the slide is drawn for a phone too; those behind it scroll.
    """
    figures: Sequence[Figure] = panel.tell.figures(settings, tables)
    owner = "recorded-" * (badge == "RECORDED") + panel.name
    folded, badges = getattr(panel.tell, "FOLDED", ()), getattr(panel.tell, "BADGES", {})
    first = next((figure for figure in figures if figure.name not in folded), None)
    return [
        picture(
            figure,
            owner,
            folded=figure.name in folded,
            badge=badges.get(figure.name, badge),
            phone=phone and figure is first,
        )
        for figure in figures
    ]


def picture(
    figure: Figure, owner: str, *, folded: bool = False, badge: Badge = "RECORDED", phone: bool = False
) -> SlidePicture:
    """``owner`` keeps the ids of one page's pictures apart. The title stands below, in the page's letters."""
    subtitle = figure.subtitle
    figure = replace(figure, name=f"{owner}-{figure.name}", subtitle="")
    rows: pl.DataFrame = figure.table
    cut = f" (the first {SHOWN_ROWS} of {len(rows):,} rows)" if len(rows) > SHOWN_ROWS else ""
    table = table_of(f"Numbers behind: {figure.title}{cut}", rows.head(SHOWN_ROWS))
    svg = inline(figure, render.svg(figure))
    narrow = dict(phone_pictures([figure])).get(figure.name, Markup("")) if phone else Markup("")
    return SlidePicture(figure.name, svg, narrow, figure.title, subtitle, figure.shows, table, folded, badge)


def _settings_line(settings: dict[str, Any]) -> str:
    words = {
        key: " ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in settings.items()
    }
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in words.items())
