"""The page's sections: figures and tables of each question, or what is missing to answer it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from isoloss import text
from isoloss.analysis import by_params as params
from isoloss.analysis import by_position as positions
from isoloss.analysis import loops as looped
from isoloss.analysis import size_ratio
from isoloss.analysis.contexts import Contexts
from isoloss.analysis.study import StudyAnalysis
from isoloss.errors import Refusal, attempt
from isoloss.figures import (
    context_laws,
    looped_grid,
    loss_by_params,
    loss_by_position,
    loss_by_tokens,
)
from isoloss.figures.figure import Figure
from isoloss.stats import LEVEL
from isoloss.table import Table, table_of, text_table

INTERVALS = f"{text.level(LEVEL)} t intervals"


@dataclass(frozen=True)
class Section:
    """``missing``: refusals in words, for the parts that could not be made."""

    anchor: str
    title: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    missing: tuple[Refusal, ...] = field(default=())


def sections(analysis: StudyAnalysis) -> list[Section]:
    return [
        section("params", "Loss against parameters", *by_params(analysis)),
        section("position", "Loss along the context", *by_position(analysis)),
        section("context", "How Transformers use context", *contexts(analysis)),
        section("looped", "Looped models", *loops(analysis)),
    ]


def section(
    anchor: str, title: str, figures: Sequence[Figure | Refusal], tables: Sequence[Table | Refusal]
) -> Section:
    missing = [part for part in [*figures, *tables] if isinstance(part, Refusal)]
    reasons = {(refusal.what, refusal.mend): refusal for refusal in missing}
    return Section(
        anchor,
        title,
        tuple(part for part in figures if isinstance(part, Figure)),
        tuple(part for part in tables if isinstance(part, Table)),
        tuple(reasons.values()),
    )


Parts = tuple[list[Figure | Refusal], list[Table | Refusal]]
Data = TypeVar("Data")
Result = TypeVar("Result")


def attempt_with(data: Data | Refusal, make: Callable[[Data], Result]) -> Result | Refusal:
    """``make(data)``, or the refusal of either."""
    return data if isinstance(data, Refusal) else attempt(lambda: make(data))


def by_params(analysis: StudyAnalysis) -> Parts:
    data = analysis.by_params
    figures = [
        attempt_with(data, loss_by_params.figure),
        attempt_with(analysis.by_tokens, loss_by_tokens.figure),
    ]
    return figures, [
        attempt_with(data, gaps_by_params),
        attempt_with(data, crossings),
        attempt_with(data, ratios),
    ]


def gaps_by_params(data: params.ByParams) -> Table:
    return table_of(
        f"Transformer minus LSTM at equal N, D = {text.count(data.tokens)} tokens, nats a token, {INTERVALS}",
        params.gaps_table(data),
        ["LSTM", "N", "Transformer minus LSTM", "From", "To"],
    )


def crossings(data: params.ByParams) -> Table:
    rows = [
        (curve, text.capital(params.crossover(crossing, curve))) for curve, crossing in data.crossings.items()
    ]
    return text_table("Where the Transformer's law crosses each LSTM's", ("LSTM", "Crossover"), rows)


def ratios(data: params.ByParams) -> Table:
    rows: list[tuple[Any, ...]] = []
    for curve in data.crossings:
        sizes = attempt(partial(size_ratio.size_ratios, data, curve))
        if isinstance(sizes, Refusal):
            rows.append((curve, None, "refused", None, sizes.what))
            continue
        rows.extend(
            (curve, f"{size.loss:.3f}", f"{size.ratio:.2f}", text.interval(size.interval), None)
            for size in sizes
        )
    return text_table(
        "N(LSTM) / N(Transformer) at equal loss, from the fitted laws, inside the data of both",
        ("LSTM", "Loss", "Ratio", f"{text.level(LEVEL)} interval", "Reason"),
        rows,
    )


def by_position(analysis: StudyAnalysis) -> Parts:
    data = analysis.by_position
    return [attempt_with(data, loss_by_position.figure)], [attempt_with(data, gaps_by_position)]


def gaps_by_position(data: positions.ByPosition) -> Table:
    return table_of(
        f"Transformer minus LSTM at single positions, nats per token, {INTERVALS}",
        positions.gaps_table(data),
        ["Transformer N", "LSTM", "LSTM N", "Token index", "Transformer minus LSTM", "From", "To"],
    )


def contexts(analysis: StudyAnalysis) -> Parts:
    data = analysis.contexts
    return [attempt_with(data, context_laws.laws_figure), attempt_with(data, context_laws.steps_figure)], [
        attempt_with(data, context_means)
    ]


def context_means(data: Contexts) -> Table:
    rows = [
        (
            text.count(s.profile.params),
            f"{s.measured_mean:.4f}",
            None if s.implied_mean is None else f"{s.implied_mean:.4f}",
        )
        for s in data.sizes
    ]
    return text_table(
        f"Mean loss over the {data.context} positions: measured, and implied by the fitted a + b T^-p",
        ("N", "Measured", "Implied by the law"),
        rows,
    )


def loops(analysis: StudyAnalysis) -> Parts:
    data = analysis.loops
    figures = [
        attempt_with(data, looped_grid.exits_figure),
        attempt_with(data, looped_grid.grid_figure),
        attempt_with(data, lambda d: looped_grid.grid_figure(d, log=True)),
        attempt_with(data, looped_grid.residual_figure),
        attempt_with(data, lambda d: looped_grid.grid_figure(d, "expected")),
        attempt_with(data, lambda d: looped_grid.grid_figure(d, "last_exit")),
    ]
    return figures, [attempt_with(data, gains), attempt_with(data, held_out)]


def gains(data: looped.LoopedStudy) -> Table:
    return table_of(
        f"Most loops minus one loop at equal N, D = {text.count(data.tokens)} tokens, nats per token, "
        f"{INTERVALS}, beside the entropy bonus (beta H) and the most it can be (beta log T_m)",
        looped.gains_table(data),
        ["N", "T_m", "Loss", "Change", "From", "To", "Entropy bonus", "Bonus at most"],
    )


def held_out(data: looped.LoopedStudy) -> Table:
    return table_of(
        "The loop law on points left out of the fit: mean relative error of total loss, beside that of the "
        "nearest panel",
        looped.held_out_table(data),
        ["Left out", "Points", "Relative error", "R²", "Error of nearest panel", "Refused because"],
    )
