"""Tables of a fit's page: parameters, the solution, refits, the source. Cells are plain text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isoloss import text
from isoloss.analysis.fit_rows import amount, spread_words
from isoloss.errors import Refusal
from isoloss.laws import Fit, FitStatus
from isoloss.plans import allocation_exponent
from isoloss.table import Table, text_table

if TYPE_CHECKING:  # `isoloss fit` prints tables and refits nothing
    from isoloss.analysis.refits import LeaveOneOut, LeftOut

CONVERGED = "converged: one clear optimum. This does not say that the law is right: see where it misses"
SHOWN = 10
"""So many of the runs that move the law most are listed."""


def run_words(run: "LeftOut") -> str:
    """'N = 1.2M, D = 3B'."""
    return ", ".join(amount(name, value) for name, value in run.inputs.items())


def status_words(law: Fit) -> str:
    """'converged', 'starts disagree' or 'gradient remains'."""
    return law.status.name.lower().replace("_", " ")


def exponents(fit: Fit) -> list[str]:
    """The fitted parameters that say how the law scales: those with limits, or all but the first."""
    free = [name for name in fit.form.parameters if name not in fit.fixed]
    return [name for name in free if name in fit.form.limits] or free[1:]


def most_moved(fit: Fit, *laws: Mapping[str, float]) -> str:
    """The exponent that other parameters move most, in its standard errors, or by its share without them."""

    def move(name: str) -> float:
        unit = fit.standard_errors.get(name) or abs(fit.params[name]) or 1.0
        return max(abs(law[name] - fit.params[name]) for law in laws) / unit

    return max(exponents(fit), key=move)


def moved_words(fit: Fit, without: Mapping[str, float]) -> str:
    """'beta moves most, from 0.45 to 0.37', of the law ``without`` some runs."""
    name = most_moved(fit, without)
    before, after = text.brief(fit.params[name]), text.brief(without[name])
    if before == after:
        return "no exponent moves in three digits"
    return f"{name} moves most, from {before} to {after}"


def parameters(fit: Fit) -> Table:
    rows = []
    for name, value in fit.params.items():
        tied = [group for group in fit.tied if name in group]
        origin = "printed" if fit.status is FitStatus.PUBLISHED else "fitted"
        how = "held" if name in fit.fixed else f"tied: {' = '.join(tied[0])}" if tied else origin
        ends = "held: no interval" if name in fit.fixed else text.interval(fit.intervals[name])
        error = fit.standard_errors[name]
        rows.append((name, text.number(value), None if error is None else text.number(error), ends, how))
    allocation, exponent = fit.allocation(), allocation_exponent(fit)
    if allocation is not None and exponent is not None:
        ends = text.interval(exponent.interval)
        rows.append(("a: N_opt ~ C^a", f"{allocation['a']:.4f}", None, ends, "follows"))
        rows.append(("b: D_opt ~ C^b", f"{allocation['b']:.4f}", None, "b = 1 − a", "follows"))
    by = {"t": "t intervals", "profile": "profile-likelihood intervals", "bootstrap": "bootstrap intervals"}
    caption = f"Parameters, with {text.level(fit.level)} {by.get(fit.intervals_by, 'intervals as printed')}"
    return text_table(caption, ("Parameter", "Value", "Standard error", "Interval", "How"), rows)


def solution(fit: Fit) -> Table:
    """What was minimised, and how sure it is that this is the minimum."""
    objective, starts = fit.objective, fit.starts
    delta = "" if objective.delta is None else f", delta {objective.delta:g}"
    solved = starts.tried > 0
    rows = [
        ("Law", fit.formula()),
        ("Status", CONVERGED if fit.status is FitStatus.CONVERGED else fit.status.value),
        *([("Reason", fit.reason)] if fit.reason != fit.status.value else []),
        ("Objective, summed over points", f"{objective.name}{delta}"),
        ("Its value at the fit", None if objective.value is None else f"{objective.value:.10g}"),
        ("Starts", f"{starts.agreeing} of {starts.tried} agree" if solved else None),
        ("Gradient left, as a cosine", f"{fit.gradient:.2g}" if solved else None),
        ("Condition number", f"{fit.condition:.3g}" if solved else None),
        ("Rows", str(fit.n)),
        ("Clusters that intervals count", None if fit.clusters is None else str(fit.clusters)),
        ("Degrees of freedom", str(fit.df) if solved else None),
        ("Standard deviation of one run", None if fit.sigma is None else spread_words(fit, fit.sigma)),
        *_seeds(fit),
        *_bootstrap(fit),
    ]
    return text_table("The solution", ("What", "Value"), rows)


def _seeds(fit: Fit) -> list[tuple[str, str]]:
    if fit.seeds is None:
        return [("Noise of seeds", "not known: no two runs share their inputs, or too few do")]
    seeds, sd = fit.seeds, spread_words(fit, fit.seeds.sd)
    return [
        ("Noise of seeds", f"{sd}, {seeds.df} degrees of freedom, {seeds.designs} designs"),
        ("The law's own error", "none seen" if seeds.form_sd == 0 else spread_words(fit, seeds.form_sd)),
        ("Lack of fit, p of the F test", f"{seeds.p:.2g}"),
    ]


def _bootstrap(fit: Fit) -> list[tuple[str, str]]:
    if fit.bootstrap is None:
        return [("Bootstrap", "none was asked for")]
    b = fit.bootstrap
    return [
        ("Bootstrap", f"{b.count} resamples of {b.unit}, seed {b.seed}, {b.failed} failed"),
        ("Cold-start check of refits", f"{b.agreeing} of {b.checked} found nothing better"),
    ]


def influence(fit: Fit, without: "LeaveOneOut") -> Table:
    names = exponents(fit)
    rows: list[tuple[Any, ...]] = [
        (
            run_words(run),
            run.rows,
            text.number(run.loss),
            "the rest does not determine the law" if run.moved is None else f"{run.moved:.3f}",
            *(None if run.params is None else text.number(run.params[name]) for name in names),
        )
        for run in without.each[:SHOWN]
    ]
    rows.append(("all rows", fit.n, None, None, *(text.number(fit.params[name]) for name in names)))
    count = "each" if len(without.each) == without.of else len(without.each)
    caption = (
        f"Runs that move the law most, of {count} of {without.of} left out in turn; the move is the root "
        "mean square change of the law over all runs, in standard deviations of a run "
        f"({spread_words(fit, fit.sigma or 0.0)})"
    )
    return text_table(caption, ("Left out", "Rows", "Loss", "Law moves", *names), rows)


def sensitivity(fit: Fit, refits: list[tuple[str, float | None, Fit | Refusal]]) -> Table:
    names = [name for name in fit.form.parameters if name not in fit.fixed]
    with_a = fit.allocation() is not None
    rows: list[tuple[Any, ...]] = []
    for index, (objective, delta, law) in enumerate(refits):
        what = objective if delta is None else f"{objective}, delta {delta:g}"
        what += "" if index else " (this fit)"
        if isinstance(law, Refusal):
            rows.append((what, f"refused: {law.what}", *[None] * (len(names) + with_a)))
            continue
        values = [text.number(law.params[name]) for name in names]
        if allocation := law.allocation():
            values.append(f"{allocation['a']:.4f}")
        rows.append((what, status_words(law), *values))
    caption = "The same rows under other objectives"
    return text_table(caption, ("Objective", "Status", *names, *(["a"] if with_a else [])), rows)


def source(fit: Fit) -> list[Table]:
    """Where the rows came from, which were left out with the reason of each, and what the checks found."""
    facts = dict(fit.source)
    excluded, findings = facts.pop("excluded", None), facts.pop("findings", None)
    rows: list[tuple[Any, ...]] = [
        row for name, value in facts.items() for row in _flat(name.replace("_", " "), value)
    ]
    for name, (low, high) in fit.ranges.items():
        rows.append((f"range of {name}", f"{text.number(low)} to {text.number(high)}"))
    out = [text_table("Source", ("What", "Value"), rows or [("Source", "not told: fitted from arrays")])]
    if excluded is not None:
        rows = [(str(row["row"]), row["reason"], row["by_outcome"]) for row in excluded]
        columns = ("Row", "Reason", "Left out by its outcome")
        out.append(text_table(f"Rows left out: {len(excluded)}", columns, rows))
    if findings is not None:
        rows = [
            (row["kind"], ", ".join(map(str, row["rows"])) or "all", row["message"], row["mend"])
            for row in findings
        ]
        columns = ("Finding", "Rows", "What it means", "To mend it")
        out.append(text_table(f"What the checks of the table found: {len(findings)}", columns, rows))
    return out


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        spelt = {key: text.number(one) if isinstance(one, float) else str(one) for key, one in value.items()}
        return [(f"{name}: {key}", one) for key, one in spelt.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [(name, "; ".join(map(str, value)) or None)]
    return [(name, value)]
