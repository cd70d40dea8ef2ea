"""Results in words, for the terminal: what was found, how sure it is, what it rests on."""

from collections.abc import Iterator, Sequence

from isoloss import text
from isoloss.laws import OURO_BETA, Fit, Interval, entropy_share
from isoloss.plans.backtest import Backtest
from isoloss.plans.compare import Comparison
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
            (name, number(value), _held(fit, name) or number(fit.standard_errors[name]), _between(fit, name))
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


def _held(fit: Fit, name: str) -> str:
    return "held" if name in fit.fixed else ""


def _between(fit: Fit, name: str) -> str:
    ends = fit.intervals[name]
    return "" if name in fit.fixed else "none" if ends is None else interval(ends)


def interval(ends: Interval | Sequence[float | None] | None, write=None) -> str:
    """'1.2 to 3.4'; an end that the data leave open is said to be open."""
    if ends is None:
        return "no interval"
    write = write or number
    low, high = ("open" if end is None else write(end) for end in ends)
    return f"{low} to {high}"


def number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in plain text: the first column left, the others right."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  " + "   ".join([row[0].ljust(widths[0]), *cells[1:]])


def plan_lines(plan: Plan) -> Iterator[str]:
    ends = plan.intervals
    yield f"plan by {plan.law}, {plan.level:.0%} intervals"
    for name, value in (("params", plan.params), ("tokens", plan.tokens), ("flops", plan.flops)):
        yield f"  {name:<17}{text.count(value):>9}{_after(ends.get(name), text.count)}"
    yield f"  {'tokens per param':<17}{plan.tokens_per_param:>9.3g}{_after(ends.get('tokens_per_param'))}"
    yield f"  {'loss':<17}{plan.loss:>9.4f}{_after(ends.get('loss'), lambda end: f'{end:.4f}')}"
    if plan.epochs is not None:
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


def _after(ends: Interval | None, write=None) -> str:
    return "" if ends is None else f"   {interval(ends, write)}"


def _factor(value: float | None) -> str:
    return "beyond an eighth or eight" if value is None else f"{value:.2g}"


def comparison_lines(found: Comparison) -> Iterator[str]:
    yield found.verdict()
    yield f"held out: {found.rule}; {found.fold_count} folds over {found.groups} groups; {found.objective}"
    yield ""
    yield from columns(
        ("law", "hidden", "folds", f"behind in {found.criterion}", "behind the best, hidden"),
        [
            (
                one.law, text.percent(one.largest), text.percent(one.folds), number(one.behind_criterion),
                "" if one.behind_largest is None else _gap(one.behind_largest),
            )
            for one in found.entries
        ],
    )  # fmt: skip
    for law, reason in found.refused:
        yield f"  {law}: refused: {reason}"


def _gap(gap) -> str:
    ends = "" if gap.interval is None else f" ({text.interval(gap.interval, text.percent)})"
    return f"{text.percent(gap.value)}{ends}{'' if gap.told_apart else ', not told apart'}"


def backtest_lines(found: Backtest) -> Iterator[str]:
    yield found.verdict()
    yield f"{found.rule}; the law fitted to the rest: {found.fit.formula()}"
    yield ""
    yield from columns(
        ("what", "mean |error|", "mean error", "root mean square"),
        [
            (score.name, text.percent(score.mean_abs_error), text.percent(score.bias), f"{score.rmse:.4f}")
            for score in (found.score, *found.baselines)
        ],
    )
    yield ""
    yield from columns(
        ("hidden run", "observed", "predicted", "error", f"{found.level:.0%} interval", "held"),
        [
            (
                ", ".join(f"{name} {text.count(value)}" for name, value in run.inputs.items()),
                f"{run.observed:.4f}",
                f"{run.predicted:.4f}",
                f"{100 * run.relative_error:+.2f}%",
                "none" if run.interval is None else f"{run.interval[0]:.4f} to {run.interval[1]:.4f}",
                {True: "yes", False: "no", None: ""}[run.inside],
            )
            for run in found.runs
        ],
    )
    if found.rmse_in_noise is not None:
        yield f"root mean square error: {found.rmse_in_noise:.3g} times the noise of a seed"


def design_lines(found: Design) -> Iterator[str]:
    target = ", ".join(f"{name} {text.count(value)}" for name, value in found.target.items())
    yield (
        f"to narrow the prediction {found.loss:.4f} at {target} from ±{found.half_width_now:.4f} to "
        f"±{found.half_width_after:.4f} ({found.level:.0%}), buy for {text.count(found.spent_flops)} of "
        f"{text.count(found.budget_flops)} FLOPs:"
    )
    names = list(found.target)
    yield from columns(
        ("run", *names, "FLOPs", "half-width after"),
        [
            (
                str(number_),
                *(text.count(run.inputs[name]) for name in names),
                text.count(run.flops),
                f"±{run.half_width:.4f}",
            )
            for number_, run in enumerate(found.runs, start=1)
        ],
    )
    yield (
        f"for the same budget: D-optimal ±{found.half_width_d_optimal:.4f}, random choices "
        f"±{found.half_width_random:.4f} on average; {found.candidates} candidates"
    )


def _opinions(opinions: ExponentsByMethod) -> Iterator[str]:
    yield from columns(
        ("opinion on a, N* ~ C^a", "a", f"{opinions.level:.0%} interval", "its grid's bias"),
        [
            (
                one.method,
                "none" if one.exponent is None else f"{one.exponent:.3f}",
                "no interval" if one.interval is None else f"{one.interval[0]:.3f} to {one.interval[1]:.3f}",
                "" if one.bias is None else f"{one.bias:+.3f}",
            )
            for one in opinions.each
        ],
    )
    for one in opinions.each:
        if one.refused is not None:
            yield f"  {one.method}: refused: {one.refused}"


def isoflop_lines(opinions: ExponentsByMethod) -> Iterator[str]:
    yield from _opinions(opinions)
    if (found := opinions.isoflop) is None:
        return
    yield ""
    for name, line in (("N", found.params), ("D", found.tokens)):
        low, high = line.interval
        yield (
            f"{name}* = {line.coefficient:.4g} C^{line.exponent:.3f}  ({low:.3f} to {high:.3f}, "
            f"{line.level:.0%} t over {line.df + 2} budgets)"
        )
    if found.params_weighted is not None:
        line = found.params_weighted
        low, high = line.interval
        yield f"N* weighted by noise: C^{line.exponent:.3f} ({low:.3f} to {high:.3f})"
    yield f"a + b = {found.exponent_sum:.3f}; D: {found.token_rule.value}; noise: {found.noise}"
    if found.thirds:
        slopes = ", ".join(f"{third.exponent:.3f} ± {third.standard_error:.3f}" for third in found.thirds)
        yield f"slope of N* on the first, middle and last third: {slopes}"
    yield ""
    yield from columns(
        ("budget", "N*", "D*", "loss", "sizes", "used"),
        [
            (
                text.count(one.flops), text.count(one.params), text.count(one.tokens), f"{one.loss:.4f}",
                str(len(one.sizes)), "yes" if one.used else "no",
            )
            for one in found.budgets
        ],
    )  # fmt: skip
    for one in found.budgets:
        for flag in one.flags:
            yield f"  {text.count(one.flops)}: {flag.value}"
