"""All checks of a table, and what to do about their findings."""

from collections.abc import Iterable
from dataclasses import replace

from isoloss.errors import InputError
from isoloss.sources import endings, mixed, repeats, row_checks, unit_checks
from isoloss.sources.table import Excluded, Runs, TableIssue

CHECKS = (
    unit_checks.counts,
    unit_checks.tokens_per_param,
    unit_checks.loss,
    unit_checks.batch,
    unit_checks.flops,
    row_checks.numbers,
    row_checks.warmup,
    repeats.duplicates,
    endings.unknown_states,
    row_checks.mixtures,
)


def check(runs: Runs) -> tuple[TableIssue, ...]:
    """What every check finds, what refuses first."""
    issues = [issue for check_of_table in (endings.endings, *CHECKS) for issue in check_of_table(runs)]
    return _sorted(issues, runs)


def _sorted(issues: Iterable[TableIssue], runs: Runs) -> tuple[TableIssue, ...]:
    issues = [replace(issue, severity="warn") if issue.kind in runs.accepted else issue for issue in issues]
    return tuple(sorted(issues, key=lambda issue: issue.severity != "refuse"))


def accept(runs: Runs) -> Runs:
    """``runs`` if nothing in it must be refused. Raises InputError with every such finding."""
    refused = [issue for issue in runs.findings if issue.severity == "refuse"]
    if refused:
        raise InputError(
            "; ".join(issue.message for issue in refused),
            where=runs.source["path"] or "table",
            mend="; ".join(dict.fromkeys(issue.mend for issue in refused)),
        )
    return runs


def usable(runs: Runs) -> Runs:
    """``runs`` without rows that lack a needed value, did not finish or diverged; ``excluded`` names each.

    The rest is checked anew. Raises InputError if no row is left.
    """
    unfinished = endings.unfinished_rows(runs)
    diverged = {row: why for row, why in endings.diverged_rows(runs).items() if row not in unfinished}
    out = [Excluded(row, f"unfinished: {why}", False) for row, why in unfinished.items()]
    out += [Excluded(row, f"diverged: {why}", True) for row, why in diverged.items()]
    gone = unfinished | diverged
    for row, *values in runs.frame.select("row", *runs.needed).iter_rows():
        missing = [name for name, value in zip(runs.needed, values, strict=True) if value is None]
        if missing and row not in gone:
            out.append(Excluded(row, f"no {' and no '.join(missing)}", False))
    if not out:  # what was found of all rows stands
        return runs
    dropped = {excluded.row for excluded in out}
    frame = runs.frame.filter(~runs.frame["row"].is_in(list(dropped)))
    if not frame.height:
        raise InputError(
            "no row is usable: all lack a value, did not finish or diverged",
            where=runs.source["path"] or "table",
            mend="check the columns that were mapped",
        )
    rest = replace(
        runs,
        frame=frame,
        source={**runs.source, "rows_kept": frame.height},
        excluded=(*runs.excluded, *sorted(out, key=lambda excluded: excluded.row)),
    )
    # Whoever is left was not accused, and has fewer accusers now: how runs ended is not asked again.
    left = [issue for check_of_table in CHECKS for issue in check_of_table(rest)]
    return replace(rest, findings=_sorted([*mixed.many_diverged(runs, diverged), *left], rest))
