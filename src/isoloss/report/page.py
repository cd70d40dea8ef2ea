"""One self-contained HTML file: static pictures, tables, no script, nothing fetched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isoloss import files
from isoloss.analysis.findings import Finding, findings_of
from isoloss.analysis.study import StudyAnalysis, analyse
from isoloss.errors import InputError
from isoloss.figures import render
from isoloss.figures.render import Picture
from isoloss.records import load
from isoloss.report import fresh
from isoloss.report.sections import Section, sections
from isoloss.report.tables import (
    command,
    fits_table,
    provenance_tables,
    recipe_table,
    runs_table,
    sweep_tables,
    table_of,
)
from isoloss.report.templates import filled, inline


@dataclass(frozen=True)
class ReportResult:
    """``path`` of the page, its findings, its figures; ``written`` is False if the page was true already."""

    path: Path
    findings: tuple[Finding, ...]
    figures: tuple[str, ...]
    written: bool = True


def write(folder: str | Path, out: str | Path | None = None) -> ReportResult:
    """Report on the study in ``folder``: OUT/index.html and OUT/figures/NAME.svg, .png, .pdf, .csv.

    ``out`` is FOLDER/report by default. A report of the same records there is left as it is. The same records
    give the same bytes, but for the order of fonts in the PDFs. Raises InputError for a folder that holds no
    study or records that cannot be trusted.
    """
    folder = Path(folder)
    out = Path(out) if out is not None else folder / "report"
    if out.exists() and not out.is_dir():
        raise InputError("is not a folder", where=str(out), mend="move it away: the report goes there")
    made_of = fresh.fingerprint(folder)
    if there := fresh.kept(out, made_of):
        return ReportResult(out / "index.html", *there, written=False)
    analysis = analyse(load(folder))
    parts = sections(analysis)
    figures = [figure for part in parts for figure in part.figures]
    pictures = {figure.name: render.render(figure) for figure in figures}
    for figure in figures:
        render.write(figure, pictures[figure.name], out / "figures")
    remove_stale(out / "figures", [figure.name for figure in figures])
    found = findings_of(analysis)
    path = out / "index.html"
    files.write_text(path, page(analysis, found, parts, pictures))
    fresh.keep(out, made_of, list(found), [figure.name for figure in figures])
    return ReportResult(path, tuple(found), tuple(figure.name for figure in figures))


def remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Pictures of an earlier report that this one does not make would contradict it."""
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if path.suffix in fresh.SUFFIXES and path.stem not in names:
            files.remove_file(path)


def page(
    analysis: StudyAnalysis,
    found: Sequence[Finding],
    parts: Sequence[Section],
    pictures: Mapping[str, Picture],
) -> str:
    """The HTML. Every text is escaped by the template; only our own pictures go in as they are."""
    study = analysis.study
    return filled(
        "study.html",
        study=study.plan["study"],
        title=study.plan["title"],
        scale=study.plan["scale"],
        findings=found,
        sections=parts,
        inline={
            figure.name: inline(figure, pictures[figure.name].svg)
            for part in parts
            for figure in part.figures
        },
        numbers={
            figure.name: table_of(f"Numbers behind: {figure.title}", figure.table)
            for part in parts
            for figure in part.figures
        },
        fits=fits_table(analysis),
        runs=runs_table(study),
        recipe=[recipe_table(study), *sweep_tables(study)],
        provenance=provenance_tables(study),
        command=command(study),
    )
