"""A scaling study on the last slide: loss against N, loss by position, the looped grid, and what they say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
from markupsafe import Markup

from isoloss.analysis.findings import findings_of
from isoloss.analysis.study import StudyAnalysis, analyse, of_pair
from isoloss.errors import Refusal
from isoloss.figures import gap_by_tokens, looped_grid, loss_by_params, loss_by_position, shape
from isoloss.figures.figure import Figure
from isoloss.records import StudyData, load, reference
from isoloss.report.sections import attempt_with
from isoloss.report.templates import fill
from isoloss.teach import provenance
from isoloss.teach.deck.fragment import picture

WIDTH, HEIGHT = 340, 240


def experiment() -> str:
    """Hash of the code that decides a run's numbers, given its settings."""
    return provenance.experiment("isoloss.training.loop")


def section(folder: Path | None) -> Markup:
    """The findings of the study in ``folder``, or of the one that ships, each with its figure.

    Raises InputError for a folder that holds no study or records that cannot be trusted.
    """
    if folder is not None:
        return _findings(folder, shipped=False)
    return _findings(reference.folder(reference.PREFIX), shipped=True)


def _findings(folder: Path, *, shipped: bool) -> Markup:
    analysis = analyse(load(folder))
    return fill(
        "teach/deck/study.html", questions=questions(analysis), basis=basis(analysis.study), shipped=shipped
    )


def questions(analysis: StudyAnalysis) -> list[dict[str, Any]]:
    """Each ``finding`` of a study with the ``picture`` that shows it; without one a Refusal says why."""
    figures: dict[str, Figure | Refusal] = {}
    for pair in analysis.pairs:
        gaps = of_pair(analysis.gaps, pair)
        figures[f"gap{pair.suffix}"] = attempt_with(gaps, gap_by_tokens.figure)
        of_this = of_pair(analysis.by_position, pair)
        figures[f"positions{pair.suffix}"] = attempt_with(of_this, loss_by_position.figure)
    by_params = attempt_with(analysis.by_params, loss_by_params.figure)
    figures |= {f"families{pair.suffix}": by_params for pair in analysis.pairs}
    figures |= {
        "loops": attempt_with(analysis.loops, looped_grid.grid_figure),
    }
    if analysis.shape is not None:
        figures["shape"] = attempt_with(analysis.shape, shape.figure)
    answers: list[dict[str, Any]] = []
    for finding in findings_of(analysis):
        figure = figures.get(finding.key)
        shown = picture(smaller(figure), "study") if isinstance(figure, Figure) else None
        answers.append({"finding": finding, "picture": shown, "missing": figure})
    return answers


def smaller(figure: Figure) -> Figure:
    """A report's picture of one panel at the size whose letters the last row of a room can read."""
    if not isinstance(figure.chart, alt.LayerChart):
        return figure
    return replace(figure, chart=figure.chart.properties(width=WIDTH, height=HEIGHT))


def basis(study: StudyData) -> str:
    """Runs, scale, machines and days: where these numbers come from."""
    records = [record for record in study.records if record.status == "finished"]
    machines = sorted({record.environment.device_name for record in records})
    days = sorted({event.time[:10] for record in records for event in record.events})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"n = {len(records)} runs of {study.plan['study']}, scale {study.plan['scale']}, "
        f"{', '.join(machines)}, {when}"
    )
