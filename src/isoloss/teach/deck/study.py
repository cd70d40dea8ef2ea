"""A scaling study in the deck: the evidence of the last slide, and all that it found in the appendix."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from isoloss import text
from isoloss.analysis import by_position
from isoloss.analysis import gap_by_tokens as gaps_of
from isoloss.analysis.conditions import basis
from isoloss.analysis.families import name_of
from isoloss.analysis.findings import findings_of
from isoloss.analysis.study import StudyAnalysis, analyse, of_pair
from isoloss.errors import Refusal
from isoloss.figures import gap_by_tokens, looped_grid, loss_by_params, loss_by_position, shape
from isoloss.figures.figure import Figure
from isoloss.records import load, reference
from isoloss.report.sections import attempt_with
from isoloss.report.templates import fill
from isoloss.teach import provenance
from isoloss.teach.deck.fragment import picture

WHOLE, WITH_TEXT = (340, 240), (330, 205)
"""A picture's width and height for letters that the last row can read; with words beside and below it."""
CHANGE = "Difference in loss of the two largest models against token index on a log axis, 0 at its start."


def experiment() -> str:
    """Hash of the code that decides a run's numbers, given its settings."""
    return provenance.experiment("isoloss.training.loop")


def analysis_of(folder: Path | None) -> StudyAnalysis:
    """Of the study in ``folder``, else of the one that ships.

    Raises InputError for a folder that holds no study or records that cannot be trusted.
    """
    return analyse(load(reference.folder(reference.PREFIX) if folder is None else folder))


def section(analysis: StudyAnalysis, *, shipped: bool) -> Markup:
    """All findings, each with its figure."""
    values = {"questions": questions(analysis), "basis": basis(analysis.study), "shipped": shipped}
    return fill("teach/deck/study.html", **values)


def evidence(analysis: StudyAnalysis, key: str, steps: Mapping[str, int | None]) -> Markup:
    """One finding on the two families that the study compares first: a picture and a sentence for the room.

    ``key``: "gap", against training tokens, or "positions", against the place in the context.
    """
    pair = next(iter(analysis.pairs), None)
    result = None if pair is None else of_pair(analysis.gaps if key == "gap" else analysis.by_position, pair)
    if isinstance(result, gaps_of.PairByTokens):
        sentence, shown = gap_sentence(result), gap_by_tokens.figure(result, WITH_TEXT)
    elif isinstance(result, by_position.FamilyPositions):
        sentence, shown = positions_sentence(result), largest_pair(result)
    else:
        sentence, shown = "This study does not compare two families so.", None
    behind = [finding for finding in findings_of(analysis) if finding.key == key]
    values = {"sentence": sentence, "behind": behind, "basis": basis(analysis.study), **steps}
    return fill("teach/deck/evidence.html", picture=shown and picture(shown, "why", phone=True), **values)


def gap_sentence(pair: gaps_of.PairByTokens) -> str:
    """What longer training does to the lead, and whether that ends it at some size."""
    ahead = name_of(pair.versus.rival if pair.lead > 0 else pair.versus.reference)
    if pair.change is None:
        return "One seed is too few to tell."
    if not pair.change:
        return "Trained longer, the gap shows no clear change."
    if not pair.lead:
        gains = pair.versus.reference if pair.change < 0 else pair.versus.rival
        return f"Training longer helps the {name_of(gains)} more."
    if pair.change == pair.lead:
        return f"Trained longer, the {ahead}'s lead grows."
    gone = [size.params for size in pair.sizes if size.zero and size.zero.value <= max(size.gaps)]
    ending = f": gone at {text.count(gone[0])} parameters" if gone else ""
    return f"Trained longer, the {ahead}'s lead shrinks{ending}."


def positions_sentence(data: by_position.FamilyPositions) -> str:
    """Of the largest pair: who gains more from the words before, and who is ahead at the end of them."""
    pair, of_sign = data.pairs[-1], {-1: data.versus.reference, 1: data.versus.rival}
    if pair.change.sign is None:
        return "One text is too few to tell."
    more, ahead = of_sign.get(pair.change.sign), of_sign.get(pair.ends[-1].sign or 0)
    if more is None:
        return f"After token {by_position.START} neither clearly gains more."
    gains = f"After token {by_position.START} the {name_of(more)} gains more"
    if ahead is None:
        return f"{gains}."
    return f"{gains} and leads." if more == ahead else f"{gains}; the {name_of(ahead)} still leads."


def largest_pair(data: by_position.FamilyPositions) -> Figure:
    """How the two largest models' difference moves after START, which is what the sentence is about."""
    two = replace(data, pairs=data.pairs[-1:])
    chart = loss_by_position.changes(two, WITH_TEXT)
    return replace(loss_by_position.figure(two), chart=chart, description=CHANGE)


def questions(analysis: StudyAnalysis) -> list[dict[str, Any]]:
    """Each ``finding`` of a study with the ``picture`` that shows it; without one a Refusal says why."""
    by_params = attempt_with(analysis.by_params, partial(loss_by_params.figure, plane=WHOLE))
    figures: dict[str, Figure | Refusal] = {"loops": attempt_with(analysis.loops, looped_grid.grid_figure)}
    for pair in analysis.pairs:
        gaps, positions = of_pair(analysis.gaps, pair), of_pair(analysis.by_position, pair)
        figures |= {
            f"gap{pair.suffix}": attempt_with(gaps, partial(gap_by_tokens.figure, plane=WHOLE)),
            f"positions{pair.suffix}": attempt_with(positions, loss_by_position.figure),
            f"families{pair.suffix}": by_params,
        }
    if analysis.shape is not None:
        figures["shape"] = attempt_with(analysis.shape, shape.figure)
    pairs = [(finding, figures.get(finding.key)) for finding in findings_of(analysis)]
    return [
        {"finding": finding, "missing": figure}
        | {"picture": picture(figure, "study", phone=n == 0) if isinstance(figure, Figure) else None}
        for n, (finding, figure) in enumerate(pairs)
    ]
