"""The compute frontier of a fit: loss, N and D over compute, planned at the largest run's budget.

Of a forecast too, and which runs to buy next for the budget of the largest one.
"""

from collections.abc import Sequence
from dataclasses import replace

from isoloss import text
from isoloss.analysis.frontier import Source, largest_plan, middle_loops, next_runs
from isoloss.errors import refuse_rows
from isoloss.figures import design as design_figure
from isoloss.figures import iso_loss
from isoloss.figures import plan as plan_figures
from isoloss.figures.figure import Figure
from isoloss.laws import Fit


def figures(fit: Fit, others: Sequence[Fit] = ()) -> list[Figure]:
    """Frontier and allocation, planned at the compute of the largest run, and lines of equal loss.

    The first of ``others`` has lines there too. Raises as ``largest_plan``.
    """
    largest, held = largest_plan(fit), middle_loops(fit)
    drawn = [refuse_rows(draw, fit, largest) for draw in (plan_figures.frontier, plan_figures.allocation)]
    if not held:  # passes through a loop cost compute that no N of the axis shows
        drawn.insert(0, refuse_rows(iso_loss.figure, fit, largest, *others[:1]))
    where = "Planned at the compute of the largest run"
    if held:
        where += f", {', '.join(f'{name} {text.power(value)}' for name, value in held.items())}"
    return [replace(figure, shows=f"{where}. {figure.shows}") for figure in drawn]


def bought_figure(source: Source) -> Figure:
    """``next_runs`` in the plane of N and D. Raises Refusal as it does."""
    return design_figure.figure(source, next_runs(source))
