"""What a notebook shows of a fit, forecast, plan or study: the terminal's lines and tables, as HTML."""

from collections.abc import Callable, Iterator
from typing import Any

from markupsafe import Markup

from isoloss.analysis import results
from isoloss.analysis.conditions import condition
from isoloss.analysis.findings import findings
from isoloss.records import StudyData
from isoloss.report.templates import environment
from isoloss.table import Table, lines


def study_parts(study: StudyData) -> Iterator[str | Table]:
    """What was trained, and the findings."""
    yield f"{study.plan['title']}. {condition(study)}"
    for finding in findings(study):
        yield f"{finding.title}: {finding.sentence}"


PARTS: dict[str, Callable[[Any], Iterator[str | Table]]] = {
    "Fit": results.fit_parts,
    "Forecast": results.forecast_parts,
    "Plan": lambda plan: results.plan_parts(plan, "in the unit of the fit"),
    "StudyData": study_parts,
}


def bundle(shown: Any) -> dict[str, str]:
    """As text and as HTML. Every word of a table is escaped; warnings come last."""
    parts = list(PARTS[type(shown).__name__](shown))
    parts += [f"warning: {warning}" for warning in dict.fromkeys(getattr(shown, "warnings", ()))]
    plain = "\n".join(line for part in parts for line in (lines(part) if isinstance(part, Table) else [part]))
    return {"text/plain": plain, "text/html": "".join(map(_html, parts))}


def _html(part: str | Table) -> Markup:
    if not isinstance(part, Table):
        return Markup("<p>{}</p>").format(part)
    macros = environment().get_template("report/macros.html").module
    return Markup(vars(macros)["table"](part))  # noqa: S704 - autoescaped by its template
