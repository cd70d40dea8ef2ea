"""A page on disk: one self-contained HTML file, its figures beside it, static, nothing fetched."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from isoloss import files, text
from isoloss.analysis.findings import Finding
from isoloss.errors import InputError
from isoloss.figures import paper, render
from isoloss.figures.figure import Figure
from isoloss.report import cache
from isoloss.report.compact import compact
from isoloss.report.sections import Section
from isoloss.report.templates import fill, inline
from isoloss.table import Table, table_of

LISTED = 30
"""Rows of the numbers behind a figure that the page lists."""

TITLED = 2_000
"""Marks of a page that name themselves under a pointer, in the first pictures: a mark with its name takes 100
bytes, one without 10, and hundreds of runs stand in ten pictures each."""


@dataclass(frozen=True)
class ReportResult:
    """``path`` of the page, its findings, its figures; ``written`` is False if the page was true already."""

    path: Path
    findings: tuple[Finding, ...]
    figures: tuple[str, ...]
    written: bool = True

    @property
    def summary(self) -> str:
        """The first finding."""
        return self.findings[0].sentence


@dataclass(frozen=True)
class Page:
    """What a page says. ``values``: what its template asks for besides findings, sections and figures.

    ``attachments``: files that lie beside it, by name.
    """

    template: str
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]
    values: Mapping[str, Any]
    attachments: Mapping[str, str] = field(default_factory=dict)


Notify = Callable[[str], None]
"""Called with what is done next, where that takes seconds."""


def quiet(_: str) -> None:
    """Says nothing."""


def publish(out: Path, made_of: str, compose: Callable[[], Page], notify: Notify) -> ReportResult:
    """OUT/index.html and OUT/figures/NAME.svg, .png, .pdf, .csv; a page made of the same is left as it is.

    Raises InputError where ``out`` is no folder or cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise InputError("is not a folder", where=str(out), mend="move it away: the report goes there")
    path = out / "index.html"
    if stored := cache.stored(out, made_of):
        return ReportResult(path, *stored, written=False)
    notify("Asking the runs ...")
    page = compose()
    figures = [figure for section in page.sections for figure in section.figures]
    notify(f"Drawing {text.plural(len(figures), 'figure')} ...")
    pictures = {figure.name: render.render(figure) for figure in figures}
    for figure in figures:
        render.write(figure, pictures[figure.name], out / "figures")
    names = tuple(pictures)
    remove_stale(out / "figures", names)
    html = fill(
        f"report/{page.template}",
        findings=page.findings,
        sections=page.sections,
        inline=dict(wide_pictures(figures, pictures)),
        narrow=dict(phone_pictures(figures)),
        numbers=dict(map(numbers_of, figures)),
        **page.values,
    )
    for name, other in page.attachments.items():
        files.write_text(files.safe_child(out, name), other)
    files.write_text(path, html)
    cache.store(out, made_of, page.findings, names)
    return ReportResult(path, page.findings, names)


def numbers_of(figure: Figure) -> tuple[str, tuple[Table, str]]:
    """A figure's name, the numbers behind it as far as a page lists them, and how many there are."""
    rows = figure.table.height
    count = f"{rows:,} rows" if rows <= LISTED else f"the first {LISTED} of {rows:,} rows, all of them as CSV"
    return figure.name, (table_of(f"Numbers behind: {figure.title}", figure.table.head(LISTED)), count)


def wide_pictures(
    figures: Sequence[Figure], pictures: Mapping[str, render.Picture]
) -> Iterator[tuple[str, Markup]]:
    """Of each figure its picture, with marks that name themselves under a pointer until ``TITLED`` do."""
    room = TITLED
    for figure in figures:
        drawn = pictures[figure.name].svg
        titles = drawn.count("<title>")
        named = titles <= room
        room -= titles if named else 0
        yield figure.name, inline(figure, compact(drawn, figure.name, titles=named))


def phone_pictures(figures: Sequence[Figure]) -> Iterator[tuple[str, Markup]]:
    """Of each figure that fits a phone its picture as wide as one: names at its lines are on the screen."""
    for figure in figures:
        with suppress(InputError):
            name = f"{figure.name}-narrow"
            drawn = compact(paper.svg(figure, name=name), name, titles=False)  # no pointer rests on a phone
            yield figure.name, inline(figure, drawn, name)


def remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Pictures of an earlier report that this one does not make would contradict it."""
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if path.suffix in cache.SUFFIXES and path.stem not in names:
            files.remove_file(path)
