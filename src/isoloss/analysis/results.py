"""Results in words, for the terminal: what was found, how sure it is, what it rests on."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from isoloss import text
from isoloss.errors import Refusal
from isoloss.laws import FORMS, OURO_BETA, Fit, Prediction, entropy_share
from isoloss.table import Table, text_table

if TYPE_CHECKING:  # a command loads what it runs alone
    from isoloss.plans import Plan
    from isoloss.plans.backtest import Backtest
    from isoloss.plans.compare import Comparison
    from isoloss.plans.design import Design
    from isoloss.plans.forecast import Forecast, Forecaster
    from isoloss.plans.methods import ExponentsByMethod
    from isoloss.plans.standing import ScoreGap

Parts = Iterator[str | Table]
"""Lines and tables, in the order in which they are shown."""


def fit_parts(fit: Fit) -> Parts:
    """The law, its parameters and how it was solved, as on the page of the fit; its data."""
    from isoloss.analysis.fit_rows import brief_formula
    from isoloss.analysis.fit_tables import parameters, solution

    yield f"{fit.law}: {brief_formula(fit)}"
    yield parameters(fit)
    yield solution(fit)
    if fit.law == "loop-total":
        yield entropy_share(fit, OURO_BETA).sentence
    yield "data: " + ", ".join(f"{name} {text.counts(low, high)}" for name, (low, high) in fit.ranges.items())
    if fit.form.gives == "loss" and fit.loss_unit != "nats per token":
        yield f"losses are in {fit.loss_unit}"
    if rows := fit.source.get("outliers"):
        yield f"outliers: rows {', '.join(map(str, rows))}"
    yield from source_parts(fit.source)


def source_parts(source: Mapping[str, Any]) -> Iterator[str]:
    """Which columns follow from others, and how others were read."""
    for name, rule in source.get("derived", {}).items():
        yield f"{name} is derived: {rule}"
    for note in source.get("notes", ()):
        yield f"note: {note}"


def read_parts(known: "Fit | Forecaster") -> Iterator[str]:
    """Of runs that a forecast has just read, how; of a fit it was said when it was made."""
    return iter(()) if isinstance(known, Fit) else source_parts(known.source)


def prediction_parts(fit: Fit, prediction: Prediction, forecast: "Forecast | Refusal | None") -> Parts:
    """``prediction`` is of one point; ``forecast`` is of it, where the fit carries its runs.

    Why it is refused stands among the warnings of the prediction.
    """
    value = float(prediction.loss)
    if fit.form.gives != "loss":
        yield f"{fit.form.gives} {text.count(value)}, by {fit.formula()}"
    else:
        yield f"loss {_loss(value)} {fit.loss_unit}, by {fit.formula()}"
    if prediction.interval is not None and prediction.band is not None:
        (low, high), (least, most) = prediction.interval, prediction.band
        yield f"a new run: {_loss(low)} to {_loss(high)} ({text.level(prediction.level)})"
        yield f"the law's mean: {_loss(least)} to {_loss(most)}"
    if forecast is not None and not isinstance(forecast, Refusal):
        (low, high), level = forecast.interval[0], text.level(forecast.level)
        ends = text.interval((low, high), _loss)
        yield f"forecast from the same runs: {_loss(forecast.loss[0])}, {ends} ({level})"
        if any(factor[0] > 1 for factor in forecast.extrapolation.values()):
            yield "outside the runs: trust the forecast, since the law's interval assumes the law"
        elif forecast.disagrees(prediction)[0]:
            yield "inside the runs, where they disagree: trust the forecast, which follows the runs nearby"
        else:
            yield "inside the runs: the law and the forecast agree"
        yield from source_parts(forecast.source)


def forecast_parts(forecast: "Forecast") -> Parts:
    """The losses with their intervals, each law's own, and the table's record of misses."""
    laws = [
        *((name, law.loss, law.interval, f"{law.share:.0%}") for name, law in forecast.laws.items()),
        ("forecast", forecast.loss, forecast.interval, ""),
    ]
    level = text.level(forecast.level)
    for index in range(len(forecast.loss)):
        low, high = forecast.interval[index]
        yield f"loss {_loss(forecast.loss[index])} {forecast.loss_unit} at {forecast.sizes(index)}"
        yield f"a new run: {_loss(low)} to {_loss(high)} ({level})"
        far = {name: factors[index] for name, factors in forecast.extrapolation.items() if factors[index] > 1}
        yield "outside the runs: " + (
            ", ".join(f"{name} {text.number(factor, 3)} times" for name, factor in far.items()) or "no"
        )
        rows = [
            (name, _loss(loss[index]), text.interval(interval[index], _loss), share)
            for name, loss, interval, share in laws
        ]
        yield text_table("", ("law, kriged", "loss", f"{level} interval", "share"), rows, numeric=True)
    rate = text.percent(forecast.error_rate)
    yield f"error rate {rate} for each factor e outside the runs, {forecast.rate_from}"
    yield from source_parts(forecast.source)


def laws_parts(printed: Mapping[str, Fit], unpublished: Mapping[str, str]) -> Parts:
    """Every form, and the laws that papers printed."""
    for form in FORMS.values():
        yield f"{form.name}: {form.formula}\n    of {', '.join(form.inputs)}; {form.source}"
    yield "\nPublished, for predict and plan:"
    for name, law in printed.items():
        yield f"{name}: {law.formula()}\n    {law.source['citation']}"
    yield "\nOf these, papers print the form alone:"
    yield from (f"{name}: {reason}" for name, reason in unpublished.items())


def plan_parts(plan: "Plan", loss_unit: str) -> Parts:
    """The sizes, the loss and the cost of a plan."""
    counts = {"params": plan.params, "tokens": plan.tokens, "flops": plan.flops}
    rows = [
        (name, text.count(value), _ends(plan.intervals.get(name), text.count))
        for name, value in counts.items()
    ]
    ratio, loss = (plan.intervals.get(name) for name in ("tokens_per_param", "loss"))
    rows.append(("tokens per param", text.number(plan.tokens_per_param), _ends(ratio, text.number)))
    rows.append((f"loss ({loss_unit})", _loss(plan.loss), _ends(loss, _loss)))
    if plan.epochs is not None and plan.effective_tokens is not None:
        worth = f"worth {text.count(plan.effective_tokens)} new tokens"
        rows.append(("epochs", text.number(plan.epochs), worth))
    if plan.serve_flops:
        rows.append(("serving", text.count(plan.serve_flops), f"{text.count(plan.total_flops)} FLOPs in all"))
    columns = ("what", "value", f"{text.level(plan.level)} interval")
    yield text_table(f"plan by {plan.law}", columns, rows, numeric=True)
    money = "" if plan.money is None else f", {plan.money:,.0f} in the currency of the price"
    yield (
        f"{plan.gpu_hours:,.3g} {plan.hardware.gpu}-hours at {text.percent(plan.hardware.mfu)} of "
        f"{text.count(plan.hardware.peak_flops)} FLOP/s{money}"
    )
    if plan.penalty is not None and any(end for end in plan.penalty.within_10_percent):
        low, high = plan.penalty.within_10_percent
        yield f"N from {_factor(low)} to {_factor(high)} times this costs at most 10% more compute"


def _loss(value: Any) -> str:
    """Four decimals; four digits of a loss that is small in its unit."""
    return f"{value:.4f}" if abs(value) >= 0.1 else f"{value:.4g}"


def _ends(ends: text.Ends | None, write: Callable[[float], str]) -> str:
    return "" if ends is None else text.interval(ends, write)


def _factor(value: float | None) -> str:
    return "beyond an eighth or eight" if value is None else f"{value:.2g}"


def comparison_parts(comparison: "Comparison") -> Parts:
    """Which law predicts hidden runs best, and by how much."""
    yield comparison.verdict()
    rows = [
        (
            each.law,
            text.percent(each.largest),
            text.percent(each.folds),
            text.number(each.behind_criterion),
            "" if each.behind_largest is None else _gap(each.behind_largest),
        )
        for each in comparison.entries
    ]
    caption = (
        f"held out: {comparison.rule}; {comparison.fold_count} folds over {comparison.groups} groups; "
        f"{comparison.objective}; {comparison.criterion}"
    )
    columns = ("law", "hidden", "folds", "AICc gap", "behind the best, hidden")
    yield text_table(caption, columns, rows, numeric=True)
    for law, reason in comparison.refused:
        yield f"{law}: refused: {reason}"


def _gap(gap: "ScoreGap") -> str:
    ends = "" if gap.times is None else f" ({text.interval(gap.times, text.brief)} times)"
    return f"{text.percent(gap.value)}{ends}{'' if gap.told_apart else ', not told apart'}"


def backtest_parts(outcome: "Backtest") -> Parts:
    """How far the law misses hidden runs, beside the baselines, run by run."""
    yield outcome.headline()
    yield from outcome.sentences()
    ours = [(outcome.score, outcome.intervals)]
    if outcome.forecast is not None:
        ours.append((outcome.forecast.score, outcome.forecast.intervals))
    scores = [
        (
            score.words,
            text.percent(score.mean_abs_error),
            text.percent(score.bias),
            _loss(score.rmse),
            *(
                ("", "", "")
                if held is None
                else (
                    text.percent(held.coverage.share, 0),
                    text.percent(held.half_width),
                    _loss(held.winkler),
                )
            ),
        )
        for score, held in (*ours, *((score, None) for score in outcome.baselines))
    ]
    caption = f"{outcome.rule}; the law fitted to the rest: {outcome.fit.formula()}"
    columns = ("what", "mean |error|", "mean error", "root mean square", "held", "half-width", "Winkler")
    yield text_table(caption, columns, scores, numeric=True)
    rows = [
        (
            ", ".join(f"{name} {text.count(value)}" for name, value in run.inputs.items()),
            _loss(run.observed),
            _loss(run.predicted),
            f"{100 * run.relative_error:+.2f}%".replace("-", "−"),
            text.interval(run.interval, _loss),
            "" if run.inside is None else run.inside,
        )
        for run in outcome.runs
    ]
    columns = (
        "hidden run",
        "observed",
        "predicted",
        "error",
        f"{text.level(outcome.level)} interval",
        "held",
    )
    yield text_table("", columns, rows, numeric=True)
    if outcome.rmse_in_noise is not None:
        yield f"root mean square error: {text.number(outcome.rmse_in_noise)} times the noise of a seed"


def design_parts(design: "Design") -> Parts:
    """The runs to buy, and what each does to the prediction."""
    target = ", ".join(f"{name} {text.count(value)}" for name, value in design.target.items())
    caption = (
        f"to narrow the prediction {_loss(design.loss)} at {target} from ±{_loss(design.half_width_now)} to "
        f"±{_loss(design.half_width_after)} ({text.level(design.level)}), buy for "
        f"{text.count(design.spent_flops)} of {text.count(design.budget_flops)} FLOPs"
    )
    rows = [
        (
            str(index),
            *(text.count(run.inputs[name]) for name in design.target),
            text.count(run.flops),
            f"±{_loss(run.half_width)}",
        )
        for index, run in enumerate(design.runs, start=1)
    ]
    yield text_table(caption, ("run", *design.target, "FLOPs", "half-width after"), rows, numeric=True)
    yield (
        f"for the same budget: D-optimal ±{_loss(design.half_width_d_optimal)}, random choices "
        f"±{_loss(design.half_width_random)} on average; {design.candidates} candidates"
    )


def isoflop_parts(estimates: "ExponentsByMethod", rows_of: Callable[[float, float], str]) -> Parts:
    """The exponent of the best size by every method, and what was read off each budget."""
    rows = [
        (
            each.method,
            "none" if each.exponent is None else text.loss(each.exponent),
            text.interval(each.interval, text.loss),
            "" if each.bias is None else text.signed(each.bias),
        )
        for each in estimates.each
    ]
    columns = ("opinion on a, N* ~ C^a", "a", f"{text.level(estimates.level)} interval", "its grid's bias")
    yield text_table("", columns, rows, numeric=True)
    for each in estimates.each:
        if each.refused is not None:
            yield f"{each.method}: refused: {each.refused}"
    if (isoflop := estimates.isoflop) is None:
        return
    for name, line in (("N", isoflop.params), ("D", isoflop.tokens)):
        ends = f"{text.interval(line.interval, text.loss)}, {text.level(line.level)} t"
        law = f"{text.number(line.coefficient)} C^{text.loss(line.exponent)}"
        yield f"{name}* = {law}  ({ends} over {line.df + 2} budgets)"
    if (weighted := isoflop.params_weighted) is not None:
        ends = text.interval(weighted.interval, text.loss)
        yield f"N* weighted by noise: C^{text.loss(weighted.exponent)} ({ends})"
    yield f"a + b = {isoflop.exponent_sum:.3f}; D: {isoflop.token_rule.value}; noise: {isoflop.noise}"
    if isoflop.thirds:
        slopes = ", ".join(f"{third.exponent:.3f} ± {third.standard_error:.3f}" for third in isoflop.thirds)
        yield f"slope of N* on the first, middle and last third: {slopes}"
    budgets = [
        (
            *(text.count(value) for value in (budget.flops, budget.params, budget.tokens)),
            _loss(budget.loss),
            len(budget.sizes),
            budget.used,
        )
        for budget in isoflop.budgets
    ]
    yield text_table("", ("budget", "N*", "D*", "loss", "sizes", "used"), budgets, numeric=True)
    for budget in isoflop.budgets:
        for flag in budget.flags:
            yield f"{text.count(budget.flops)}: {flag.value}"
        for size in budget.left_out:
            rows = rows_of(budget.flops, size)
            yield f"{text.count(budget.flops)}: {rows} left out, its loss far off the curve of the others"
