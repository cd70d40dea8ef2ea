"""The page's sections: figures and tables of each question, or what is missing to answer it."""

from collections.abc import Callable
from dataclasses import dataclass
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


Data = TypeVar("Data")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Section:
    """``missing``: refusals in words, for the parts that could not be made."""

    anchor: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    missing: tuple[Refusal, ...]


def sections(analysis: StudyAnalysis) -> list[Section]:
    """One for each question that a study answers."""
    grid = looped_grid.grid_figure
    by_size = parts_of(analysis.by_params, loss_by_params.figure, gaps_by_params, crossings, ratios)
    by_tokens = attempt_with(analysis.by_tokens, loss_by_tokens.figure)
    by_position = parts_of(analysis.by_position, loss_by_position.figure, gaps_by_position)
    context = parts_of(analysis.contexts, context_laws.laws_figure, context_laws.steps_figure, context_means)
    looped = parts_of(
        analysis.loops,
        looped_grid.exits_figure,
        grid,
        partial(grid, log=True),
        looped_grid.residual_figure,
        partial(grid, part="expected"),
        partial(grid, part="last_exit"),
        gains,
        held_out,
    )
    return [
        section("params", "Loss against parameters", *by_size, by_tokens),
        section("position", "Loss along the context", *by_position),
        section("context", "How Transformers use context", *context),
        section("looped", "Looped models", *looped),
    ]


def section(anchor: str, title: str, *parts: Figure | Table | Refusal) -> Section:
    """Figures and tables in their order, and each reason why a part is missing, once."""
    missing = {(part.what, part.mend): part for part in parts if isinstance(part, Refusal)}
    return Section(
        anchor,
        title,
        tuple(part for part in parts if isinstance(part, Figure)),
        tuple(part for part in parts if isinstance(part, Table)),
        tuple(missing.values()),
    )


def attempt_with(data: Data | Refusal, make: Callable[[Data], Result]) -> Result | Refusal:
    """``make(data)``, or the refusal of either."""
    return data if isinstance(data, Refusal) else attempt(make, data)


def parts_of(
    data: Data | Refusal, *makes: Callable[[Data], Figure] | Callable[[Data], Table]
) -> list[Figure | Table | Refusal]:
    """What each of ``makes`` gives of the data."""
    return [attempt_with(data, make) for make in makes]


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
        sizes = attempt(size_ratio.size_ratios, data, curve)
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


def gaps_by_position(data: positions.ByPosition) -> Table:
    return table_of(
        f"Transformer minus LSTM at single positions, nats per token, {INTERVALS}",
        positions.gaps_table(data),
        ["Transformer N", "LSTM", "LSTM N", "Token index", "Transformer minus LSTM", "From", "To"],
    )


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
