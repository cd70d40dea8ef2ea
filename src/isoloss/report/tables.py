"""Tables of the page: runs, fits, recipe, provenance. Cells are plain text; the template escapes them."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isoloss import checked, text
from isoloss.analysis.contexts import JointLaw
from isoloss.analysis.families import name_of
from isoloss.analysis.fit_tables import status_words
from isoloss.analysis.loop_laws import PARTS
from isoloss.analysis.points import sweeps
from isoloss.analysis.study import StudyAnalysis
from isoloss.errors import Refusal
from isoloss.laws import Fit, FitStatus
from isoloss.records import Record, StudyData
from isoloss.stats import LEVEL
from isoloss.table import NOTHING, Table, table_of, text_table

RUN_COLUMNS = {
    "label": "Label",
    "seed": "Seed",
    "status": "Status",
    "reason": "Reason",
    "tokens": "Tokens",
    "loss": "Loss",
    "loss_se": "s.e. over text",
    "bits_per_byte": "Bits per byte",
    "params": "N",
    "params_total": "N total",
    "params_executed": "N executed",
    "learning_rate": "Learning rate",
    "family": "Family",
    "run_id": "Run",
}


LISTED = 400
"""Rows of one table on a page; of more there is the file beside it."""


def last_evaluations(study: StudyData) -> pl.DataFrame:
    """Every planned run with its last evaluation: those that failed first, those that finished last."""
    evaluations = study.table().group_by("run_id", maintain_order=True)
    last = evaluations.agg(pl.all().sort_by("tokens", "cooled", nulls_last=False).last())
    order = pl.col("status").cast(pl.Enum(["failed", "diverged", "running", "finished"]))
    return last.with_columns(pl.col("reason").replace("", None)).sort(order, maintain_order=True)


def runs_table(last: pl.DataFrame) -> Table:
    """Of ``last_evaluations`` the first."""
    counts = dict(last.group_by("status").len().sort("status").iter_rows())
    states = text.listed([f"{number} {status}" for status, number in counts.items()]) if counts else "none"
    listed = f"; the first {LISTED} are listed" if last.height > LISTED else ""
    caption = f"All {last.height:,} runs of the study ({states}), each with its last evaluation{listed}"
    return table_of(caption, last.select(*RUN_COLUMNS).head(LISTED), list(RUN_COLUMNS.values()))


FIT_COLUMNS = (
    "What was fitted",
    "Law",
    "Parameters with intervals",
    "Status",
    "Rows",
    "Clusters",
    "df",
    "Doubts",
)


def fits_table(analysis: StudyAnalysis) -> Table:
    """Every law tried: parameters, status and doubts, or the reason of its refusal."""
    rows: list[tuple[Any, ...]] = []
    if not isinstance(analysis.gaps, Refusal):
        for data in analysis.gaps.each:
            what = f"loss against N at D = {text.count(data.tokens)}"
            rows += [fit_row(f"{curve.name}: {what}", curve.fit) for curve in data.curves]
    for family, contexts in analysis.contexts.items():
        if isinstance(contexts, Refusal):
            continue
        for size in contexts.sizes:
            what = f"{name_of(family)} N = {text.count(size.params)}: loss against T"
            rows.append(fit_row(what, size.law))
        if isinstance(contexts.joint, JointLaw):
            rows.append(fit_row(f"{name_of(family)}: loss against N and T", contexts.joint.law))
    if not isinstance(analysis.loops, Refusal):
        for part, name in PARTS.items():
            rows.append(fit_row(f"looped: {name} against N, D and T_m", analysis.loops.fits[part]))
        if not isinstance(analysis.loops.worth, Refusal):
            what = "looped, equal depth: loss against N_once, N_rec, r and D"
            rows.append(fit_row(what, analysis.loops.worth.law))
    return text_table(f"Laws fitted; intervals at {text.level(LEVEL)}", FIT_COLUMNS, rows)


def fit_row(what: str, law: Fit | Refusal) -> tuple[Any, ...]:
    if isinstance(law, Refusal):
        return what, "refused", None, "refused", None, None, None, f"{law.what}; to lift it: {law.mend}"
    if law.status is FitStatus.CURVE_ONLY:
        return what, "curve only", None, status_words(law), law.n, law.clusters, law.df, law.reason
    values = [
        f"{name} = {text.number(value)} ({text.interval(law.intervals[name])})"
        for name, value in law.params.items()
    ]
    return (
        what,
        law.formula(),
        ", ".join(values),
        status_words(law),
        law.n,
        law.clusters,
        law.df,
        "; ".join(law.warnings) or "none",
    )


def recipe_table(study: StudyData) -> Table:
    """Learning rate, batch and schedule by family and size, as the runs were planned."""
    rows: dict[tuple[Any, ...], None] = {}
    recipes: set[str] = set()
    for run in study.plan["runs"]:
        settings = run["settings"]
        sizes = [settings["shape"].get(name) for name in ("n_layer", "d_model", "recurrence")]
        rate, batch_tokens = f"{settings['learning_rate']:g}", settings["batch_size"] * settings["context"]
        rows[settings["family"], *sizes, run["counts"]["params"], rate, batch_tokens] = None
        recipe = settings.get("recipe", {})
        recipes.add(", ".join(f"{name} {value}" for name, value in recipe.items()) or NOTHING)
    columns = ("Family", "Layers", "Width", "T_m", "N", "Learning rate", "Tokens a step")
    return text_table(f"The recipe of every size ({'; or '.join(sorted(recipes))})", columns, rows)


def sweep_tables(study: StudyData) -> list[Table]:
    """Loss against learning rate where sizes were trained at several; no table where none was."""
    swept = sweeps(study.table())
    if swept.is_empty():
        return []
    names = ["Curve", "N", "Learning rate", "Loss", "Seeds", "Used in figures"]
    columns = ["curve", "params", "learning_rate", "loss", "seeds", "chosen"]
    return [table_of("Sizes trained at several learning rates", swept.select(columns), names)]


def provenance_tables(study: StudyData) -> list[Table]:
    """Where the numbers come from: environments, data, times."""
    records = study.records
    return [
        distinct("Environments", [record.environment.model_dump() for record in records]),
        distinct("Data", [record.data.model_dump(exclude={"epochs"}) for record in records]),
        *family_tables(study),
        text_table("When", ("What", "Value"), times(records)),
    ]


def family_tables(study: StudyData) -> list[Table]:
    """What was checked before training of each family that came from a file; no table where none did."""
    settings = [run["settings"] for run in study.plan["runs"]]
    own = sorted({values["family"] for values in settings if values.get("family_source")})
    checks = study.plan.get("families", {})
    rows = [(name, checked.words(checks.get(name, {})) or "not checked") for name in own]
    return [text_table("Families of your own", ("Family", "Before training"), rows)] if rows else []


def distinct(caption: str, values: Sequence[dict[str, Any]]) -> Table:
    """One column for each distinct set of values, headed by how many runs had it."""
    runs = Counter(tuple(value.items()) for value in values)
    if not runs:
        return text_table(caption, ("What",), [("no run has left a record yet",)])
    columns = ["What", *(text.plural(count, "run") for count in runs.values())]
    rows = [
        (items[0][0].replace("_", " "), *(value for _, value in items)) for items in zip(*runs, strict=True)
    ]
    return text_table(caption, columns, rows)


def times(records: Sequence[Record]) -> list[tuple[str, Any]]:
    stamps = sorted(event.time for record in records for event in record.events)
    if not stamps:
        return [("Runs recorded", 0)]
    return [
        ("First event", stamps[0]),
        ("Last event", stamps[-1]),
        ("CPU seconds, all runs", round(sum(record.cpu_seconds for record in records))),
        ("Attempts, all runs", sum(record.attempt for record in records)),
    ]


def command(plan: Mapping[str, Any]) -> str:
    """The command that makes the study again, from the folder in which it was given."""
    arguments = plan.get("arguments") or [plan["study"], "--scale", plan["scale"]]
    return shlex.join(["isoloss", "run", *arguments])
