"""The page's sections: figures and tables of each question, or what is missing to answer it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from isoloss import text
from isoloss.analysis import by_params as params
from isoloss.analysis import by_position as positions
from isoloss.analysis import families, loop_laws, size_ratio
from isoloss.analysis import gap_by_tokens as tokens
from isoloss.analysis import loops as looped
from isoloss.analysis.conditions import conditions
from isoloss.analysis.contexts import Contexts, half_error
from isoloss.analysis.params_words import crossover
from isoloss.analysis.shape import Shapes, fold
from isoloss.analysis.study import StudyAnalysis, of_pair
from isoloss.errors import Refusal, attempt
from isoloss.figures import (
    context_laws,
    gap_by_tokens,
    loop_worth,
    looped_grid,
    loss_by_params,
    loss_by_position,
)
from isoloss.figures import shape as shape_figures
from isoloss.figures.figure import Figure
from isoloss.stats import LEVEL
from isoloss.table import Table, table_of, text_table

INTERVALS = f"{text.level(LEVEL)} t intervals"


Data = TypeVar("Data")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Section:
    """``missing``: refusals in words, for the parts that could not be made. ``notes``: on the runs shown."""

    anchor: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    missing: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()


def sections(analysis: StudyAnalysis) -> list[Section]:
    """One for each question that the study planned to answer."""
    grid = looped_grid.grid_figure
    by_tokens: list[Figure | Table | Refusal] = []
    by_position: list[Figure | Table | Refusal] = []
    by_size = parts_of(analysis.by_params, loss_by_params.figure)
    for pair in analysis.pairs:
        gaps, sizes = of_pair(analysis.gaps, pair), of_pair(analysis.by_params, pair)
        by_tokens += parts_of(gaps, gap_by_tokens.figure, gap_ends, level_sizes)
        by_size += parts_of(sizes, gaps_by_params, gaps_by_total, crossings, ratios)
        of_this = of_pair(analysis.by_position, pair)
        by_position += parts_of(of_this, loss_by_position.figure, gaps_by_position, context_uses)
    draw = context_laws.laws_figure, context_laws.steps_figure, context_laws.sizes_figure, half_errors
    contexts = {family: parts_of(data, *draw) for family, data in analysis.contexts.items()}
    looped = parts_of(
        analysis.loops, grid, looped_grid.exits_figure, loop_worth.study_figure, gains, held_out
    )
    more = parts_of(
        analysis.loops,
        looped_grid.residual_figure,
        partial(grid, log=False),
        partial(grid, part="expected"),
        partial(grid, part="last_exit"),
    )
    # What is missing there is missing above, and said there.
    appendix = [part for part in more if isinstance(part, Figure)]
    plain = analysis.shape is None
    shapes = [] if analysis.shape is None else parts_of(analysis.shape, shape_figures.figure, best_shapes)
    compared, several = families.compared(analysis.study), bool(analysis.pairs)
    loops = ("looped",)
    chapters = [
        (several, "gap", "The gap between families against training tokens", by_tokens, compared),
        (not plain, "shape", "Shape at fixed size", shapes, ("transformer",)),
        (several or plain, "params", "Loss against parameters", by_size, compared),
        (several, "position", "Loss along the context", by_position, compared),
        *(
            (plain, anchor, f"How {families.plural_of(family)} use context", parts, (family,))
            for anchor, (family, parts) in zip(context_anchors(contexts), contexts.items(), strict=True)
        ),
        (loops[0] in analysis.planned, "looped", "Looped models", looped, loops),
        (bool(appendix), "looped-more", "Looped models: appendix", appendix, loops),
    ]
    return [
        section(anchor, title, *parts, notes=conditions(analysis.study, whose))
        for planned, anchor, title, parts, whose in chapters
        if planned
    ]


def context_anchors(families: Iterable[str]) -> list[str]:
    """The first family's chapter has the plain name."""
    return [f"context-{family}" if n else "context" for n, family in enumerate(families)]


def section(
    anchor: str, title: str, *parts: Figure | Table | Refusal, notes: tuple[str, ...] = ()
) -> Section:
    """Figures and tables in their order, each missing part's reason once; notes only with a figure."""
    missing = {(part.what, part.mend): part for part in parts if isinstance(part, Refusal)}
    figures = tuple(part for part in parts if isinstance(part, Figure))
    return Section(
        anchor,
        title,
        figures,
        tuple(part for part in parts if isinstance(part, Table) and part.rows),
        tuple(missing.values()),
        notes if figures else (),
    )


def attempt_with(data: Data | Refusal, make: Callable[[Data], Result]) -> Result | Refusal:
    """``make(data)``, or the refusal of either."""
    return data if isinstance(data, Refusal) else attempt(make, data)


def parts_of(
    data: Data | Refusal, *makes: Callable[[Data], Figure] | Callable[[Data], Table]
) -> list[Figure | Table | Refusal]:
    """What each of ``makes`` gives of the data."""
    return [attempt_with(data, make) for make in makes]


def gap_ends(data: tokens.PairByTokens) -> Table:
    return table_of(
        f"{data.versus.words}: nats {data.doubling}, and the D at which the line is zero, {INTERVALS}",
        tokens.ends_table(data),
        ["N", "Rival", "A doubling", "From", "To", "Zero at D", "From D", "To D"],
    )


def level_sizes(data: tokens.PairByTokens) -> Table:
    rows = [
        (text.count(at), text.count(level.value), text.interval(level.ends, text.count))
        for at, level in data.level_at.items()
    ]
    title = f"{data.versus.words}: N at which the two are level, from the line of the gaps in log N"
    return text_table(title, ("D", "N*", f"{text.level(LEVEL)} interval"), rows)


def gaps_by_params(pair: params.FamilyPair) -> Table:
    return table_of(
        f"{pair.reference} minus {families.name_of(pair.versus.rival)} at equal N, nats a token, {INTERVALS}",
        params.gaps_table(pair),
        ["Against", "N", f"{pair.reference} minus it", "From", "To"],
    )


def gaps_by_total(pair: params.FamilyPair) -> Table:
    """The same with embeddings and heads counted. Raises Refusal where no size is compared so."""
    total = pair.by_total
    if total is None or not total.gaps:
        raise Refusal("no two models have like total parameters", mend="add sizes between those trained")
    minus = f"{total.reference} minus {families.name_of(pair.versus.rival)}"
    return table_of(
        f"{minus} at equal total parameters, with embeddings and heads, {INTERVALS}",
        params.gaps_table(total),
        ["Against", "Total parameters", f"{total.reference} minus it", "From", "To"],
    )


def crossings(pair: params.FamilyPair) -> Table:
    rows = [
        (curve, text.capital(crossover(crossing, pair, curve))) for curve, crossing in pair.crossings.items()
    ]
    return text_table(f"Where the law of the {pair.reference} crosses", ("The law of", "Crossover"), rows)


def ratios(pair: params.FamilyPair) -> Table:
    rows: list[tuple[Any, ...]] = []
    two = partial(text.number, digits=2)
    for curve in pair.crossings:
        sizes = attempt(size_ratio.size_ratios, pair, curve)
        if isinstance(sizes, Refusal):
            rows.append((curve, None, "refused", None, sizes.what))
            continue
        rows.extend(
            (curve, f"{size.loss:.3f}", two(size.ratio), text.interval(size.interval, two), None)
            for size in sizes
        )
    return text_table(
        f"N over that of the {pair.reference} at equal loss, from the laws, inside the data of both",
        ("Curve", "Loss", "Ratio", f"{text.level(LEVEL)} interval", "Reason"),
        rows,
    )


def best_shapes(data: Shapes) -> Table:
    rows = [
        (c.panel, c.name, f"{c.best:.3g}", None if c.flat is None else fold(c.flat), text.capital(c.verdict))
        for c in data.curves
    ]
    title = (
        f"The best shape of each curve, and what lies within 1% of its loss, D = {text.count(data.tokens)}"
    )
    return text_table(title, ("Ratio", "Curve", "Best", "Within 1%", "Where the best lies"), rows)


def gaps_by_position(data: positions.FamilyPositions) -> Table:
    start = f"tokens {positions.START // 2 + 1} to {positions.START}"
    return table_of(
        f"{data.versus.words}, nats a token: change since {start} by octave of the token index, {INTERVALS}",
        positions.gaps_table(data),
        ["N", "Against", "its N", "From token", "To token", "Change", "From", "To"],
    )


def context_uses(data: positions.FamilyPositions) -> Table:
    rows = [
        (model.name, text.capital(positions.use_words(model.context_use)))
        for pair in data.pairs
        for model in (pair.reference, pair.rival)
    ]
    return text_table("Up to where each model gains from context", ("Model", "Context"), rows)


def half_errors(data: Contexts) -> Table:
    errors = [(size, attempt(half_error, size)) for size in data.sizes]
    rows = [
        (text.count(size.params), f"refused: {error.what}" if isinstance(error, Refusal) else f"{error:.4f}")
        for size, error in errors
    ]
    return text_table(
        f"a + b T^-p fitted to T up to {data.context // 2}: mean error in nats on the rest",
        ("N", "Error"),
        rows,
    )


def gains(data: looped.LoopedStudy) -> Table:
    return table_of(
        f"Loops minus one loop at equal N, D = {text.count(data.tokens)} tokens, nats per token, "
        f"{INTERVALS}, beside the entropy bonus (beta H) and the most it can be (beta log T_m)",
        looped.gains_table(data),
        ["N", "T_m", "Loss", "Change", "From", "To", "Entropy bonus", "Bonus at most"],
    )


def held_out(data: looped.LoopedStudy) -> Table:
    columns = [
        "Which",
        "Left out",
        "Points",
        "Relative error",
        "Inside interval",
        "Error of nearest",
        "Refused",
    ]
    return table_of(
        "The law of total loss on held-out text, where it was fitted and at what was left out: mean relative "
        f"error, points inside their {text.level(LEVEL)} interval, and the error of the nearest points",
        loop_laws.judged_table(data.judged),
        columns,
    )
