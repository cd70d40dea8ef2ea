"""The best model of each budget, by a law, a forecast or what papers print; what to buy at the largest."""

from functools import partial

import numpy as np
import polars as pl

from isoloss.analysis.fit_rows import middle, ranges_of
from isoloss.errors import InputError, Refusal, attempt, refuse_rows
from isoloss.laws import Array, Fit
from isoloss.plans import Optima, Plan, optima, plan
from isoloss.plans.design import Design, design
from isoloss.plans.fixed_inputs import SPLIT, held_inputs, run_sizes
from isoloss.plans.forecast import Forecaster
from isoloss.plans.heuristics import kaplan, twenty_tokens
from isoloss.sources.published import published

Source = Fit | Forecaster
"""What a plan rests on: a law, or the forecast of a table."""

POINTS, DRAWS = 49, 400
KRIGED_POINTS, KRIGED_DRAWS = 25, 100
"""Of a forecast, whose draws take a hundred times as long as a law's."""
DECADES = 2.0
"""How far the best sizes go below the plan's budget where there are no data."""
FARTHER = 10.0
"""Times the compute of the largest run: where the next runs shall tell the loss."""
RULES = {"Kaplan et al. 2020, Table 6": kaplan, "20 tokens a parameter": twenty_tokens}
PRINTED = {"Hoffmann et al. 2022, eq. 10": "chinchilla", "Besiroglu et al. 2024": "chinchilla-epoch"}
"""Laws by the names under which papers printed them."""
SIZES = ("params", "tokens", "tokens_per_param")


def largest_plan(source: Source) -> Plan:
    """The plan for the compute of the largest run.

    A looped law is planned at the middle of its loops and of the share of parameters inside them. Raises
    Refusal for a law without N and D, and where no optimum exists.
    """
    return _law_plan(source) if isinstance(source, Fit) else _forecast_plan(source)


def next_runs(source: Source) -> Design:
    """The runs to buy for the compute of the largest one, to know the best model of ten times as much.

    Raises Refusal as ``largest_plan`` does, and where the source knows no uncertainty.
    """
    flops = largest_plan(source).flops
    target = plan(source, flops=FARTHER * flops, draws=DRAWS, with_forecast=False)
    sizes = {"params": target.params, "tokens": target.tokens}
    return refuse_rows(design, source, budget_flops=flops, target=sizes)


def optimal_sizes(source: Source, planned: Plan) -> Optima:
    """The best models from the smallest run, or two decades below the plan, to a little above the plan."""
    runs = runs_of(source, planned)
    low, high = planned.flops / 10**DECADES, planned.flops
    if runs is not None:
        flops_n = runs["flops"].to_numpy()
        low, high = min(flops_n.min(), high / 10), max(flops_n.max(), high)
    points, draws = (POINTS, DRAWS) if isinstance(source, Fit) else (KRIGED_POINTS, KRIGED_DRAWS)
    return optima(
        source,
        np.geomspace(low, 3 * high, points),
        setting=held_inputs(planned.given),
        flops_per_token=planned.flops_per_token,
        level=planned.level,
        draws=draws,
    )


def runs_of(source: Source, planned: Plan) -> pl.DataFrame | None:
    """N, D, training FLOPs and loss of the runs behind it, counted as the plan counts."""
    sizes = run_sizes(source)
    if sizes is None or source.data is None:
        return None
    params, tokens, executed = sizes
    return pl.DataFrame(
        {
            "params": params,
            "tokens": tokens,
            "flops": planned.flops_per_token * executed * tokens,
            "loss": np.array(source.data.loss),
        }
    )


def printed_sizes(flops_F: Array, flops_per_token: float = 6.0) -> pl.DataFrame:
    """What printed rules and laws say: size (of ``SIZES``), flops, value, rule."""
    sizes = {name: np.array([rule(flops) for flops in flops_F]).T for name, rule in RULES.items()}
    for name, law in PRINTED.items():
        printed = optima(published(law), flops_F, flops_per_token=flops_per_token, draws=DRAWS)
        sizes[name] = np.array([printed.params_F, printed.tokens_F])
    return pl.concat(
        pl.DataFrame({"flops": flops_F, "value": value_F}).with_columns(size=pl.lit(size), rule=pl.lit(name))
        for name, size_2F in sizes.items()
        for size, value_F in zip(SIZES, [*size_2F, size_2F[1] / size_2F[0]], strict=True)
    )


def tokens_per_param(law: Fit, flops_F: Array) -> pl.DataFrame:
    """flops, ratio, low, high of the best models; without ends where the law knows none.

    D / N = C / (6 N^2), so its ends are those of N, turned round. Raises InputError for a law without them.
    """
    best = attempt(optima, law, flops_F, level=law.level, draws=DRAWS)
    if isinstance(best, Refusal):
        where = str(law.source.get("published", law.law))
        raise InputError(f"has no best model: {best.what}", where=where, mend="leave it out")
    low_F, high_F = best.params_ends or (best.params_F, best.params_F)
    columns = {"ratio": best.params_F, "low": high_F, "high": low_F}
    rows = pl.DataFrame({name: flops_F / 6 / size_F**2 for name, size_F in columns.items()})
    return rows.select(pl.Series("flops", flops_F), pl.all()).filter(pl.col("ratio").is_finite())


def middle_loops(fit: Fit) -> dict[str, float]:
    """Loops and the share of parameters inside them at their middle, where the law takes them."""
    law, ranges = fit.form, ranges_of(fit)
    out: dict[str, float] = {}
    if "recurrence" in law.inputs:
        out["recurrence"] = middle(*ranges["recurrence"])
    if set(SPLIT) <= set(law.inputs):
        once, inside = (middle(*ranges[name]) for name in SPLIT)
        out["recurrent_share"] = inside / (once + inside)
    return out


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
    held = middle_loops(fit)
    ask = partial(plan, fit, flops=_largest(fit, held), draws=DRAWS, level=fit.level, with_forecast=False)
    return refuse_rows(ask, recurrence=held.get("recurrence"), recurrent_share=held.get("recurrent_share"))


def _largest(fit: Fit, held: dict[str, float]) -> float:
    """FLOPs of the largest run by 6 N D, N counting each pass through a loop."""
    sizes = run_sizes(fit)
    if sizes is not None:
        _, tokens, executed = sizes
        return float(np.max(6 * executed * tokens))
    ranges = fit.ranges
    params = sum(ranges[name][1] for name in (SPLIT if SPLIT[1] in ranges else ("params",)))
    return 6 * params * held.get("recurrence", 1.0) * ranges["tokens"][1]
