"""Results in words, for the terminal: what was found, how sure it is, what it rests on."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from isoloss import text
from isoloss.laws import FORMS, OURO_BETA, Fit, Prediction, entropy_share
from isoloss.laws.isoflop import IsoFlop
from isoloss.plans.backtest import Backtest
from isoloss.plans.compare import Comparison, ScoreGap
from isoloss.plans.design import Design
from isoloss.plans.methods import ExponentsByMethod
from isoloss.plans.plan import Plan


def fit_lines(fit: Fit) -> Iterator[str]:
    yield f"{fit.law}: {fit.formula()}"
    yield fit.reason if fit.reason == fit.status.value else f"{fit.status.value}: {fit.reason}"
    yield ""
    yield from columns(
        ("parameter", "value", "std. error", f"{fit.level:.0%} {fit.intervals_by} interval"),
        [
            (name, number(value), "held", "")
            if name in fit.fixed
            else (name, number(value), number(fit.standard_errors[name]), _between(fit.intervals[name]))
            for name, value in fit.params.items()
        ],
    )
    yield ""
    if allocation := fit.allocation():
        yield f"compute-optimal: N ~ C^{allocation['a']:.3f}, D ~ C^{allocation['b']:.3f}"
    delta = "" if fit.objective.delta is None else f" (delta {fit.objective.delta:g})"
    yield (
        f"objective {fit.objective.name}{delta}, summed: {fit.objective.value:.9g}; {fit.starts.agreeing} of "
        f"{fit.starts.tried} starts agree; gradient {fit.gradient:.1e}; condition {fit.condition:.3g}"
    )
    counted = f"{fit.n} rows" if fit.clusters is None else f"{fit.n} rows in {fit.clusters} clusters"
    scale = "" if fit.objective.name == "squared" else " of log loss"
    noise = "" if fit.sigma is None else f"; one run scatters by {fit.sigma:.3g}{scale} about the law"
    yield f"{counted}, {fit.df} degrees of freedom{noise}"
    if fit.seeds is not None:
        yield (
            f"seeds of one design scatter by {fit.seeds.sd:.3g}{scale}; lack of fit: p = {fit.seeds.p:.2g}, "
            f"the law's own error {fit.seeds.form_sd:.3g}"
        )
    if fit.law == "loop-total":
        yield entropy_share(fit, OURO_BETA).sentence
    if fit.bootstrap is not None:
        boot = fit.bootstrap
        yield (
            f"bootstrap over {boot.unit}: {len(boot.theta)} of {boot.count} refits; a cold start finds "
            f"nothing better in {boot.agreeing} of {boot.checked} of them"
        )
    yield "data: " + ", ".join(
        f"{name} {text.count(low)} to {text.count(high)}" for name, (low, high) in fit.ranges.items()
    )
    for name, rule in fit.source.get("derived", {}).items():
        yield f"{name} is derived: {rule}"
    for note in fit.source.get("notes", ()):
        yield f"note: {note}"


def _between(ends: text.Ends | None) -> str:
    return "none" if ends is None else text.interval(ends, number)


def number(value: float | None) -> str:
    """Five digits."""
    return text.number(value, 5)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in plain text: the first column left, the others right."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  " + "   ".join([row[0].ljust(widths[0]), *cells[1:]])


def prediction_lines(fit: Fit, prediction: Prediction) -> Iterator[str]:
    """``prediction`` is of one point."""
    value = float(prediction.loss)
    if fit.form.gives != "loss":
        yield f"{fit.form.gives} {text.count(value)}, by {fit.formula()}"
    else:
        yield f"loss {value:.4f} nats a token, by {fit.formula()}"
    if prediction.interval is not None and prediction.band is not None:
        (low, high), (least, most) = prediction.interval, prediction.band
        yield f"a new run: {low:.4f} to {high:.4f} ({prediction.level:.0%})"
        yield f"the law's mean: {least:.4f} to {most:.4f}"


def laws_lines(printed: Mapping[str, Fit], unpublished: Mapping[str, str]) -> Iterator[str]:
    for form in FORMS.values():
        yield f"{form.name}: {form.formula}\n    of {', '.join(form.inputs)}; {form.source}"
    yield "\nPublished, for predict and plan:"
    for name, law in printed.items():
        yield f"{name}: {law.formula()}\n    {law.source['citation']}"
    yield "\nOf these, papers print the form alone:"
    yield from (f"{name}: {reason}" for name, reason in unpublished.items())


def plan_lines(plan: Plan) -> Iterator[str]:
    ends = plan.intervals
    yield f"plan by {plan.law}, {plan.level:.0%} intervals"
    for name, value in (("params", plan.params), ("tokens", plan.tokens), ("flops", plan.flops)):
        yield f"  {name:<17}{text.count(value):>9}{_after(ends.get(name), text.count)}"
    yield f"  {'tokens per param':<17}{plan.tokens_per_param:>9.3g}{_after(ends.get('tokens_per_param'))}"
    yield f"  {'loss':<17}{plan.loss:>9.4f}{_after(ends.get('loss'), lambda end: f'{end:.4f}')}"
    if plan.epochs is not None and plan.effective_tokens is not None:
        yield f"  {'epochs':<17}{plan.epochs:>9.3g}   worth {text.count(plan.effective_tokens)} new tokens"
    if plan.serve_flops:
        total = text.count(plan.total_flops)
        yield f"  {'serving':<17}{text.count(plan.serve_flops):>9}   {total} FLOPs in all"
    money = "" if plan.money is None else f", {plan.money:,.0f} in the currency of the price"
    yield (
        f"  {plan.gpu_hours:,.3g} {plan.hardware.gpu}-hours at {plan.hardware.mfu:.0%} of "
        f"{text.count(plan.hardware.peak_flops)} FLOP/s{money}"
    )
    if plan.penalty is not None and any(end for end in plan.penalty.within_10_percent):
        low, high = plan.penalty.within_10_percent
        yield f"  N from {_factor(low)} to {_factor(high)} times this costs at most 10% more compute"


def _after(ends: text.Ends | None, write: Callable[[float], str] = number) -> str:
    return "" if ends is None else f"   {text.interval(ends, write)}"


def _factor(value: float | None) -> str:
    return "beyond an eighth or eight" if value is None else f"{value:.2g}"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    yield comparison.verdict()
    folds = f"{comparison.fold_count} folds over {comparison.groups} groups"
    yield f"held out: {comparison.rule}; {folds}; {comparison.objective}"
    yield ""
    yield from columns(
        ("law", "hidden", "folds", f"behind in {comparison.criterion}", "behind the best, hidden"),
        [
            (
                law.law, text.percent(law.largest), text.percent(law.folds), number(law.behind_criterion),
                "" if law.behind_largest is None else _gap(law.behind_largest),
            )
            for law in comparison.entries
        ],
    )  # fmt: skip
    for name, reason in comparison.refused:
        yield f"  {name}: refused: {reason}"


def _gap(gap: ScoreGap) -> str:
    ends = "" if gap.interval is None else f" ({text.interval(gap.interval, text.percent)})"
    return f"{text.percent(gap.value)}{ends}{'' if gap.told_apart else ', not told apart'}"


def backtest_lines(result: Backtest) -> Iterator[str]:
    yield result.verdict()
    yield f"{result.rule}; the law fitted to the rest: {result.fit.formula()}"
    yield ""
    yield from columns(
        ("what", "mean |error|", "mean error", "root mean square"),
        [
            (score.name, text.percent(score.mean_abs_error), text.percent(score.bias), f"{score.rmse:.4f}")
            for score in (result.score, *result.baselines)
        ],
    )
    yield ""
    yield from columns(
        ("hidden run", "observed", "predicted", "error", f"{result.level:.0%} interval", "held"),
        [
            (
                ", ".join(f"{name} {text.count(value)}" for name, value in run.inputs.items()),
                f"{run.observed:.4f}",
                f"{run.predicted:.4f}",
                f"{100 * run.relative_error:+.2f}%",
                "none" if run.interval is None else f"{run.interval[0]:.4f} to {run.interval[1]:.4f}",
                {True: "yes", False: "no", None: ""}[run.inside],
            )
            for run in result.runs
        ],
    )
    if result.rmse_in_noise is not None:
        yield f"root mean square error: {result.rmse_in_noise:.3g} times the noise of a seed"


def design_lines(design: Design) -> Iterator[str]:
    target = ", ".join(f"{name} {text.count(value)}" for name, value in design.target.items())
    yield (
        f"to narrow the prediction {design.loss:.4f} at {target} from ±{design.half_width_now:.4f} to "
        f"±{design.half_width_after:.4f} ({design.level:.0%}), buy for {text.count(design.spent_flops)} of "
        f"{text.count(design.budget_flops)} FLOPs:"
    )
    names = list(design.target)
    yield from columns(
        ("run", *names, "FLOPs", "half-width after"),
        [
            (
                str(number_),
                *(text.count(run.inputs[name]) for name in names),
                text.count(run.flops),
                f"±{run.half_width:.4f}",
            )
            for number_, run in enumerate(design.runs, start=1)
        ],
    )
    yield (
        f"for the same budget: D-optimal ±{design.half_width_d_optimal:.4f}, random choices "
        f"±{design.half_width_random:.4f} on average; {design.candidates} candidates"
    )


def isoflop_lines(exponents: ExponentsByMethod) -> Iterator[str]:
    yield from columns(
        ("opinion on a, N* ~ C^a", "a", f"{exponents.level:.0%} interval", "its grid's bias"),
        [
            (
                estimate.method,
                "none" if estimate.exponent is None else text.loss(estimate.exponent),
                text.interval(estimate.interval, text.loss),
                "" if estimate.bias is None else f"{estimate.bias:+.3f}",
            )
            for estimate in exponents.each
        ],
    )
    for estimate in exponents.each:
        if estimate.refused is not None:
            yield f"  {estimate.method}: refused: {estimate.refused}"
    if exponents.isoflop is not None:
        yield ""
        yield from _budget_lines(exponents.isoflop)


def _budget_lines(isoflop: IsoFlop) -> Iterator[str]:
    for name, line in (("N", isoflop.params), ("D", isoflop.tokens)):
        ends = text.interval(line.interval, text.loss)
        yield (
            f"{name}* = {line.coefficient:.4g} C^{line.exponent:.3f}  ({ends}, {line.level:.0%} t over "
            f"{line.df + 2} budgets)"
        )
    if (line := isoflop.params_weighted) is not None:
        ends = text.interval(line.interval, text.loss)
        yield f"N* weighted by noise: C^{line.exponent:.3f} ({ends})"
    yield f"a + b = {isoflop.exponent_sum:.3f}; D: {isoflop.token_rule.value}; noise: {isoflop.noise}"
    if isoflop.thirds:
        slopes = ", ".join(f"{third.exponent:.3f} ± {third.standard_error:.3f}" for third in isoflop.thirds)
        yield f"slope of N* on the first, middle and last third: {slopes}"
    yield ""
    yield from columns(
        ("budget", "N*", "D*", "loss", "sizes", "used"),
        [
            (
                text.count(budget.flops), text.count(budget.params), text.count(budget.tokens),
                f"{budget.loss:.4f}", str(len(budget.sizes)), "yes" if budget.used else "no",
            )
            for budget in isoflop.budgets
        ],
    )  # fmt: skip
    for budget in isoflop.budgets:
        yield from (f"  {text.count(budget.flops)}: {flag.value}" for flag in budget.flags)
