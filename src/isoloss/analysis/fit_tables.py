"""Tables of a fit's page: parameters, the solution, refits, the source. Cells are plain text."""

from collections.abc import Mapping, Sequence
from typing import Any

from isoloss import text
from isoloss.analysis.fit_rows import amount, spread_words
from isoloss.analysis.refits import LeaveOneOut, LeftOut
from isoloss.errors import Refusal
from isoloss.laws import Fit, FitStatus
from isoloss.plans import allocation_exponent
from isoloss.table import Table, text_table

SHOWN = 10
"""So many of the runs that move the law most are listed."""


def run_words(run: LeftOut) -> str:
    """'N = 1.2M, D = 3B'."""
    return ", ".join(amount(name, value) for name, value in run.inputs.items())


def status_words(law: Fit) -> str:
    """'converged', 'starts disagree' or 'gradient remains'."""
    return law.status.name.lower().replace("_", " ")


def exponents(fit: Fit) -> list[str]:
    """The fitted parameters that say how the law scales: those with limits, or all but the first."""
    free = [name for name in fit.form.parameters if name not in fit.fixed]
    return [name for name in free if name in fit.form.limits] or free[1:]


def parameters(fit: Fit) -> Table:
    rows = []
    for name, value in fit.params.items():
        tied = [group for group in fit.tied if name in group]
        made = "printed" if fit.status is FitStatus.PUBLISHED else "fitted"
        how = "held" if name in fit.fixed else f"tied: {' = '.join(tied[0])}" if tied else made
        ends = NOT_FITTED if name in fit.fixed else text.interval(fit.intervals[name])
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


NOT_FITTED = "held: no interval"


def solution(fit: Fit) -> Table:
    """What was minimised, and how sure it is that this is the minimum."""
    one, starts = fit.objective, fit.starts
    delta = "" if one.delta is None else f", delta {one.delta:g}"
    known = starts.tried > 0
    rows = [
        ("Status", fit.status.value),
        *([("Reason", fit.reason)] if fit.reason != fit.status.value else []),
        ("Objective, summed over points", f"{one.name}{delta}"),
        ("Its value at the fit", None if one.value is None else f"{one.value:.10g}"),
        ("Starts", f"{starts.agreeing} of {starts.tried} agree" if known else None),
        ("Gradient left, as a cosine", f"{fit.gradient:.2g}" if known else None),
        ("Condition number", f"{fit.condition:.3g}" if known else None),
        ("Rows", str(fit.n)),
        ("Clusters that intervals count", None if fit.clusters is None else str(fit.clusters)),
        ("Degrees of freedom", str(fit.df) if known else None),
        ("Standard deviation of one run", None if fit.sigma is None else spread_words(fit, fit.sigma)),
        *_seeds(fit),
        *_bootstrap(fit),
    ]
    return text_table("The solution", ("What", "Value"), rows)


def _seeds(fit: Fit) -> list[tuple[str, str]]:
    if fit.seeds is None:
        return [("Noise of seeds", "not known: no two runs share their inputs, or too few do")]
    one = fit.seeds
    own = "none seen" if one.form_sd == 0 else spread_words(fit, one.form_sd)
    return [
        (
            "Noise of seeds",
            f"{spread_words(fit, one.sd)}, {one.df} degrees of freedom, {one.designs} designs",
        ),
        ("The law's own error", own),
        ("Lack of fit, p of the F test", f"{one.p:.2g}"),
    ]


def _bootstrap(fit: Fit) -> list[tuple[str, str]]:
    if fit.bootstrap is None:
        return [("Bootstrap", "none was asked for")]
    one = fit.bootstrap
    return [
        ("Bootstrap", f"{one.count} resamples of {one.unit}, seed {one.seed}, {one.failed} failed"),
        ("Cold-start check of refits", f"{one.agreeing} of {one.checked} found nothing better"),
    ]


def left_out(fit: Fit, found: LeaveOneOut) -> Table:
    names = exponents(fit)
    rows: list[tuple[Any, ...]] = [
        (
            run_words(one),
            one.rows,
            text.number(one.loss),
            "the rest does not determine the law" if one.moved is None else f"{one.moved:.3f}",
            *(None if one.params is None else text.number(one.params[name]) for name in names),
        )
        for one in found.each[:SHOWN]
    ]
    rows.append(("all rows", fit.n, None, None, *(text.number(fit.params[name]) for name in names)))
    tried = f"each of {found.of}" if len(found.each) == found.of else f"{len(found.each)} of {found.of}"
    caption = (
        f"Runs that move the law most, of {tried} left out in turn; the move is the root mean square change "
        f"of the law over all runs, in standard deviations of a run ({spread_words(fit, fit.sigma or 0.0)})"
    )
    return text_table(caption, ("Left out", "Rows", "Loss", "Law moves", *names), rows)


def sensitivity(fit: Fit, refits: list[tuple[str, float | None, Fit | Refusal]]) -> Table:
    names = [name for name in fit.form.parameters if name not in fit.fixed]
    with_a = fit.allocation() is not None
    rows: list[tuple[Any, ...]] = []
    for place, (objective, delta, one) in enumerate(refits):
        what = (
            objective + ("" if delta is None else f", delta {delta:g}") + (" (this fit)" if not place else "")
        )
        if isinstance(one, Refusal):
            rows.append((what, f"refused: {one.what}", *[None] * (len(names) + with_a)))
            continue
        values = [text.number(one.params[name]) for name in names]
        if allocation := one.allocation():
            values.append(f"{allocation['a']:.4f}")
        rows.append((what, status_words(one), *values))
    caption = "The same rows under other objectives"
    return text_table(caption, ("Objective", "Status", *names, *(["a"] if with_a else [])), rows)


def source(fit: Fit) -> list[Table]:
    """Where the rows came from, which were left out with the reason of each, and what the checks found."""
    known = dict(fit.source)
    excluded, findings = known.pop("excluded", None), known.pop("findings", None)
    rows = [row for name, value in known.items() for row in _flat(name.replace("_", " "), value)]
    for name, (low, high) in fit.ranges.items():
        rows.append((f"range of {name}", f"{text.number(low)} to {text.number(high)}"))
    out = [text_table("Source", ("What", "Value"), rows or [("Source", "not told: fitted from arrays")])]
    if excluded is not None:
        out.append(
            text_table(
                f"Rows left out: {len(excluded)}",
                ("Row", "Reason", "Left out by its outcome"),
                [(str(one["row"]), one["reason"], one["by_outcome"]) for one in excluded],
            )
        )
    if findings is not None:
        out.append(
            text_table(
                f"What the checks of the table found: {len(findings)}",
                ("Finding", "Rows", "What it means", "To mend it"),
                [
                    (one["kind"], ", ".join(map(str, one["rows"])) or "all", one["message"], one["mend"])
                    for one in findings
                ],
            )
        )
    return out


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"{name}: {key}", str(inner)) for key, inner in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [(name, "; ".join(map(str, value)) or None)]
    return [(name, value)]
