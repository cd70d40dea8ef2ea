"""The page of one study: its findings, figures and laws, its runs and where they come from."""

from pathlib import Path

from isoloss.analysis.conditions import basis, condition
from isoloss.analysis.findings import findings_of
from isoloss.analysis.study import StudyAnalysis, analyse
from isoloss.errors import Refusal, attempt
from isoloss.figures import render
from isoloss.records import load, reference
from isoloss.report import cache, interactive
from isoloss.report.publish import Notify, Page, ReportResult, publish, quiet
from isoloss.report.sections import sections
from isoloss.report.tables import (
    command,
    fits_table,
    last_evaluations,
    provenance_tables,
    recipe_table,
    runs_table,
    sweep_tables,
)

RUNS = "runs.csv"


def write(folder: str | Path, out: str | Path | None = None, *, notify: Notify = quiet) -> ReportResult:
    """Report on the study in ``folder``: OUT/index.html and OUT/figures/NAME.svg, .png, .pdf, .csv.

    Beside it lie OUT/runs.csv and OUT/interactive.html, the runs to explore; it alone has scripts.

    ``out`` is FOLDER/report by default. ``notify`` is called with what is done next. A report of the same
    records there is left as it is. The same records give the same bytes, but for the order of fonts in the
    PDFs. Raises InputError for a folder that holds no study or records that cannot be trusted.
    """
    folder = Path(folder)
    out = Path(out) if out is not None else folder / "report"
    shipped = folder.resolve().is_relative_to(reference.FOLDER.resolve())
    made_of = cache.fingerprint(folder)
    return publish(out, made_of, lambda: page(analyse(load(folder)), shipped=shipped), notify)


def page(analysis: StudyAnalysis, *, shipped: bool = False) -> Page:
    """What the page of an analysed study says; of one ``shipped`` with the package, that it is recorded."""
    study = analysis.study
    last = last_evaluations(study)
    values = {
        "study": study.plan["study"],
        "title": study.plan["title"],
        "scale": study.plan["scale"],
        "condition": condition(study),
        "recorded": basis(study) if shipped else "",
        "fits": fits_table(analysis),
        "runs": runs_table(last),
        "runs_file": RUNS,
        "recipe": [recipe_table(study), *sweep_tables(study)],
        "provenance": provenance_tables(study),
        "command": command(study.plan),
    }
    explored = attempt(interactive.page, study)
    attachments = {RUNS: render.csv(last).decode()}
    if not isinstance(explored, Refusal):
        attachments[interactive.NAME] = explored
    values["interactive"] = interactive.NAME if interactive.NAME in attachments else None
    return Page("study.html", tuple(findings_of(analysis)), tuple(sections(analysis)), values, attachments)
