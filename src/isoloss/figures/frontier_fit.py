"""The compute frontier of a fit: loss, N and D over compute, planned at the largest run's budget.

Of a forecast too, and which runs to buy next for the budget of the largest one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from isoloss import text
from isoloss.analysis.fit_rows import middle, ranges_of
from isoloss.errors import Refusal, refuse_rows
from isoloss.figures import design as design_figure
from isoloss.figures import iso_loss
from isoloss.figures import plan as plan_figures
from isoloss.figures.figure import Figure
from isoloss.figures.plan import Source
from isoloss.laws import Fit
from isoloss.plans import Plan, plan
from isoloss.plans.design import Design, design
from isoloss.plans.fixed_inputs import SPLIT, run_sizes
from isoloss.plans.forecast import Forecaster

DRAWS = 400
FARTHER = 10.0
"""Times the compute of the largest run: where the next runs shall tell the loss."""


def figures(fit: Fit, others: Sequence[Fit] = ()) -> list[Figure]:
    """Frontier and allocation, planned at the compute of the largest run, and lines of equal loss.

    The first of ``others`` has lines there too. Raises as ``largest_plan``.
    """
    largest, held = largest_plan(fit), _held_inputs(fit)
    drawn = [refuse_rows(draw, fit, largest) for draw in (plan_figures.frontier, plan_figures.allocation)]
    if not held:  # passes through a loop cost compute that no N of the axis shows
        drawn.insert(0, refuse_rows(iso_loss.figure, fit, largest, *others[:1]))
    where = "Planned at the compute of the largest run"
    if held:
        where += f", {', '.join(f'{name} {text.power(value)}' for name, value in held.items())}"
    return [replace(figure, shows=f"{where}. {figure.shows}") for figure in drawn]


def largest_plan(source: Source) -> Plan:
    """The plan for the compute of the largest run.

    A looped law is planned at the middle of its loops and of the share of parameters inside them. Raises
    Refusal for a law without N and D, and where no optimum exists.
    """
    return _law_plan(source) if isinstance(source, Fit) else _forecast_plan(source)


def bought_figure(source: Source) -> Figure:
    """``next_runs`` in the plane of N and D. Raises Refusal as it does."""
    return design_figure.figure(source, next_runs(source))


def next_runs(source: Source) -> Design:
    """The runs to buy for the compute of the largest one, to know the best model of ten times as much.

    Raises Refusal as ``largest_plan`` does, and where the source knows no uncertainty.
    """
    flops = largest_plan(source).flops
    target = plan(source, flops=FARTHER * flops, draws=DRAWS)
    sizes = {"params": target.params, "tokens": target.tokens}
    return refuse_rows(design, source, budget_flops=flops, target=sizes)


def _forecast_plan(known: Forecaster) -> Plan:
    sizes = known.data.inputs
    if set(sizes) != {"params", "tokens"}:
        raise Refusal("a forecast of other sizes has no compute frontier", mend="forecast params and tokens")
    return plan(known, flops=6 * float(np.max(np.multiply(sizes["params"], sizes["tokens"]))), draws=DRAWS)


def _law_plan(fit: Fit) -> Plan:
    law = fit.form
    sized = set(SPLIT) <= set(law.inputs) or "params" in law.inputs
    if not sized or "tokens" not in law.inputs or law.gives != "loss":
        raise Refusal(
            f"a law of {', '.join(law.inputs)} has no compute frontier",
            mend="fit a law of parameters and tokens, such as chinchilla",
        )
    held = _held_inputs(fit)
    ask = partial(plan, fit, flops=_largest(fit, held), draws=DRAWS, level=fit.level)
    return refuse_rows(ask, recurrence=held.get("recurrence"), recurrent_share=held.get("recurrent_share"))


def _held_inputs(fit: Fit) -> dict[str, float]:
    """Loops and the share of parameters inside them at their middle, where the law takes them."""
    law, ranges = fit.form, ranges_of(fit)
    out: dict[str, float] = {}
    if "recurrence" in law.inputs:
        out["recurrence"] = middle(*ranges["recurrence"])
    if set(SPLIT) <= set(law.inputs):
        once, inside = (middle(*ranges[name]) for name in SPLIT)
        out["recurrent_share"] = inside / (once + inside)
    return out


def _largest(fit: Fit, held: dict[str, float]) -> float:
    """FLOPs of the largest run by 6 N D, N counting each pass through a loop."""
    sizes = run_sizes(fit)
    if sizes is not None:
        _, tokens, executed = sizes
        return float(np.max(6 * executed * tokens))
    ranges = fit.ranges
    params = sum(ranges[name][1] for name in (SPLIT if SPLIT[1] in ranges else ("params",)))
    return 6 * params * held.get("recurrence", 1.0) * ranges["tokens"][1]
