"""How runs ended: by a status in any words, by flags, by steps against those planned; and which diverged.

Trackers and queues have a hundred words for a run that was cut short and a dozen for one that was not. So a
status that is no known good end counts as none, whatever it says.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import polars as pl

from isoloss.sources.naming import plain
from isoloss.sources.table import ONE_EPOCH, Runs, TableIssue, row_words, rows_where

GOOD = frozenset({
    "finished", "finish", "complete", "completed", "done", "success", "succeeded", "successful", "ok", "okay",
    "good", "final", "passed", "terminated", "ended", "converged", "cd", "true", "yes", "early stopped",
})  # fmt: skip
"""Ray Tune's TERMINATED is its good end, Slurm's CD its COMPLETED."""
BAD = frozenset({
    "running", "pending", "queued", "failed", "fail", "crashed", "killed", "preempted", "stopped", "aborted",
    "cancelled", "canceled", "unfinished", "incomplete", "timeout", "error", "errored", "oom",
    "out of memory", "pruned", "interrupted", "evicted", "false", "no", "nan", "diverged", "exploded",
})  # fmt: skip
SURE = frozenset({
    "finished", "complete", "completed", "success", "succeeded", "successful", "terminated", "done",
})  # fmt: skip
"""Words that make a column one of states, whatever its name, where it has few others."""
DIVERGED = frozenset({"diverged", "nan", "exploded"})
WORSE = 1.5
"""A run whose loss is this many times that of two runs with no more parameters and tokens diverged."""

_STATUS = re.compile(r"(.*_)?(status|state|outcome)")
_EXIT = re.compile(r"(.*_)?(exit_?code|return_?code|exit_status)")
_MESSAGE = re.compile(r"(error|exception|failure)(_(message|reason|type))?|traceback")
_ENDED = re.compile(r"(is_|has_|run_)?(ended|finished|completed?|done|succeeded|success|successful)")
_CUT = re.compile(
    r"(is_|was_|has_|run_)?(crashed|failed|failure|diverged|pruned|killed|aborted|preempted|timed_out|timeout|oom|"
    r"cancell?ed|interrupted|running|unfinished|incomplete|truncated|exploded)"
)
_UNITS = r"(step|iter|iteration|update|epoch|token)s?"
_MADE = re.compile(
    rf"((global|current|last|completed|actual|training|train)_)*{_UNITS}(_(done|completed|seen|reached|trained))?"
)
_PLANNED = re.compile(
    rf"((max|planned|target|scheduled|expected|full)_(train_|training_)?{_UNITS}|(total|num|n)_(train_|training_)"
    rf"?(step|iteration|update|iter)s?|num_train_epochs|train_iters|(step|iteration|token)s?_(max|planned|target|budget))"
)
_SHARE = re.compile(
    r"progress|(pct|percent|fraction|share)_(done|completed?|finished)|"
    r"(done|completed?|finished|progress)_(pct|percent|fraction|share)"
)
_END_TIME = re.compile(r"(finished|ended|completed)_at|(end|finish|completion)_(time|date)")
_TALK = re.compile(r".*(note|comment|remark|description)s?")
_GROUPS = ("family", "dataset", "tokenizer", "vocab", "context", "position", "recurrence")


def cut_short(
    table: pl.DataFrame, rows: pl.Series, column_of: Mapping[str, str]
) -> tuple[dict[int, str], list[str]]:
    """Row -> why it is no finished run, by all columns that tell; and columns of states that nobody knows."""
    reasons: dict[int, str] = {}
    unclear: list[str] = []
    readable = (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
    for column in table.columns:
        if not (table[column].dtype.is_numeric() or table[column].dtype in readable):
            continue
        name = "status" if column == column_of.get("status") else plain(column)
        verdict = _verdict(name, table[column])
        if verdict is None:
            unclear += [column] if _STATUS.fullmatch(name) and _unknown(name, table[column]) else []
            continue
        value = table[column].cast(pl.String)
        bad_rows = pl.DataFrame({"row": rows, "bad": verdict, "value": value}).filter("bad")
        for row, _, value in bad_rows.iter_rows():
            reasons.setdefault(row, f"{column} is {'empty' if value is None else repr(value[:40])}")
    label = column_of.get("run_id")
    for row, why in _stopped(table, rows, column_of, None if label is None else table[label]):
        reasons.setdefault(row, why)
    return reasons, unclear


def _verdict(name: str, series: pl.Series) -> pl.Series | None:
    """Which rows a column says were cut short; None for a column that does not tell."""
    if _SHARE.fullmatch(name) and series.dtype.is_numeric():
        return (series < (99 if (series > 1).any() else 0.99)).fill_null(True)
    if _EXIT.fullmatch(name):
        return ~_words(series).is_in(["", "0", "0:0", "0.0"])
    if _MESSAGE.fullmatch(name) and series.dtype == pl.String:
        return ~_words(series).is_in(["", "none", "nan", "no", "false", "ok"])
    cut = _CUT.fullmatch(name)
    ended = _ENDED.fullmatch(name) or _STATUS.fullmatch(name)
    if (cut or ended) and (flags := _flags(series)) is not None:
        return flags.fill_null(False) if cut else ~flags.fill_null(False)
    if _END_TIME.fullmatch(name) and series.null_count() < len(series):
        return series.is_null()
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return None
    words = _phrases(series)
    if not _STATUS.fullmatch(name):
        few = 1 < words.n_unique() <= 8 and not _TALK.fullmatch(name)
        if not few or not words.is_in(sorted(SURE)).any():
            return None
    good = words.is_in(sorted(GOOD))
    if not (good | words.is_in(sorted(BAD))).any():
        return None
    # Where only what went wrong is written down, an empty field is a good end.
    return ~good if good.any() else ~words.is_in(["", *sorted(GOOD)])


def _unknown(name: str, series: pl.Series) -> bool:
    """Whether a column of this name holds several words, none of which is known."""
    return name != "state" and series.dtype == pl.String and series.n_unique() > 1


def _words(series: pl.Series) -> pl.Series:
    return series.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")


def _phrases(series: pl.Series) -> pl.Series:
    """'TrialState.COMPLETE' -> 'complete', 'EARLY_STOPPED' -> 'early stopped'."""
    tail = _words(series).str.replace(r"^\w*(state|status)\.", "")
    return tail.str.replace_all(r"[^\p{L}]+", " ").str.strip_chars()


def _flags(series: pl.Series) -> pl.Series | None:
    """Yes and no, as true/false, 1/0, yes/no; None for a column of anything else."""
    if series.dtype == pl.Boolean:
        return series
    words = _words(series).str.replace(r"^([01])\.0$", "${1}")
    yes, no = words.is_in(["true", "1", "yes", "y"]), words.is_in(["false", "0", "no", "n"])
    empty = words == ""
    if not (yes | no | empty).all() or empty.all():
        return None
    return pl.select(pl.when(empty).then(None).otherwise(yes)).to_series()


def _stopped(
    table: pl.DataFrame, rows: pl.Series, column_of: Mapping[str, str], run: pl.Series | None
) -> Iterator[tuple[int, str]]:
    """Rows of runs that made fewer steps (epochs, tokens) than were planned, in anybody's spelling."""
    named = {plain(column): column for column in table.columns} | dict(column_of)
    named = {name: column for name, column in named.items() if table[column].dtype.is_numeric()}
    for unit in ("step", "epoch", "token"):
        planned = [c for name, c in named.items() if _PLANNED.fullmatch(name) and _unit(name) == unit]
        made = [
            c
            for name, c in named.items()
            if _MADE.fullmatch(name) and _unit(name) == unit and c not in planned
        ]
        if not made:  # num_updates beside max_update
            made = [column for column in planned if re.match(r"(num|n)_", plain(column))]
            planned = [column for column in planned if column not in made]
        if not planned or not made:
            continue
        data = table.select(
            rows.alias("row"),
            pl.max_horizontal(*made).cast(pl.Float64).alias("made"),
            pl.min_horizontal(*planned).cast(pl.Float64).alias("planned"),
            (rows if run is None else run).alias("run"),
        )
        end = pl.col("made").max().over("run")  # the checkpoints of a run that came to its end may stay
        early = data.filter((end < 0.99 * pl.col("planned")) & (end < pl.col("planned") - 1))
        for row, steps, goal in early.select("row", "made", "planned").iter_rows():
            yield row, f"stopped at {unit} {steps:g} of {goal:g}"


def _unit(name: str) -> str:
    return "token" if "token" in name else "epoch" if "epoch" in name else "step"


def unfinished_rows(runs: Runs) -> dict[int, str]:
    """Row -> reason, of runs that did not reach their end."""
    frame, present = runs.frame, set(runs.frame["row"])
    reasons = {row: why for row, why in runs.cut_short.items() if row in present and not _says_diverged(why)}
    for name in ("tokens", "steps"):
        if name in frame.columns and frame[name].dtype.is_numeric():
            reasons |= dict.fromkeys(rows_where(frame, frame[name] == 0), "not a step was made")
    return reasons


def contract_status(series: pl.Series) -> pl.Series:
    """'COMPLETED' -> 'finished', 'crashed' -> 'failed'; a word that nobody knows stays as it is."""
    words, waiting = _phrases(series), ["pending", "queued", "running"]
    contract = {"finished": GOOD, "diverged": DIVERGED, "running": waiting, "failed": BAD}
    known = [pl.when(words.is_in(sorted(group))).then(pl.lit(name)) for name, group in contract.items()]
    return pl.select(pl.coalesce(*known, series.cast(pl.String))).to_series()


def _says_diverged(why: str) -> bool:
    value = why.rpartition(" is ")[2].strip("'").lower()
    return value in DIVERGED or (value in ("true", "1", "yes") and "diverged" in why)


def diverged_rows(runs: Runs) -> dict[int, str]:
    """Row -> reason, of runs that lost what they had learnt.

    By status; by a loss above ln V, that of a guess; or by a loss ``WORSE`` times those of two runs that had
    no more parameters and no more tokens (a good run is better than both).
    """
    frame, present = runs.frame, set(runs.frame["row"])
    reasons = {row: why for row, why in runs.cut_short.items() if row in present and _says_diverged(why)}
    if "loss" not in frame.columns:
        return reasons
    if "vocab" in frame.columns and runs.loss_unit == "nats per token":
        guess = frame.filter((frame["vocab"] > 1) & (frame["loss"] > frame["vocab"].log()))
        if 2 * guess.height <= frame.height:  # else it is the unit, which is another finding
            for row, loss, vocab in guess.select("row", "loss", "vocab").iter_rows():
                reasons[row] = f"loss {loss:.4g} above ln {vocab:g} = {math.log(vocab):.4g}"
    if {"params", "tokens"} <= set(frame.columns):
        sizes = frame.filter(*(pl.col(name).is_finite() for name in ("params", "tokens", "loss")))
        if "unique_tokens" in sizes.columns:
            # A run that repeats its data may overfit, which is no divergence.
            sizes = sizes.filter(~(sizes["tokens"] > ONE_EPOCH * sizes["unique_tokens"]).fill_null(False))
        groups = [name for name in _GROUPS if name in frame.columns]
        for part in sizes.partition_by(groups) if groups else [sizes]:
            for row, reason in _much_worse(part):
                reasons.setdefault(row, reason)
    return reasons


def _much_worse(data: pl.DataFrame) -> Iterator[tuple[int, str]]:
    """The second best of the smaller runs is the reference, so that one wrong low loss accuses nobody.

    Runs come in order of parameters; a Fenwick tree over the ranks of their tokens holds the two lowest
    losses so far. Within a cell the lower loss comes first, so each run meets all that can accuse it. Where
    no loss is ``WORSE`` times the second lowest of all, there is nobody to accuse.
    """
    data = data.sort("params", "tokens", "loss")
    reachable = WORSE * float(np.sort(data["loss"].to_numpy())[1]) if data.height > 2 else math.inf
    if not (data["loss"] > reachable).any():
        return
    ranks = data["tokens"].rank("dense").cast(pl.Int64).to_list()
    count = max(ranks, default=0)
    best, second = [math.inf] * (count + 1), [math.inf] * (count + 1)
    for row, rank, loss in zip(data["row"], ranks, data["loss"], strict=True):
        node, lowest, reference = rank, math.inf, math.inf
        while node:
            lowest, reference = _two_lowest(lowest, reference, best[node])
            reference = min(reference, second[node])
            node &= node - 1
        if 0 < reference * WORSE < loss:
            yield row, f"loss {loss:.4g} where smaller runs reach {reference:.4g}"
        node = rank
        while node <= count and loss < second[node]:
            best[node], second[node] = _two_lowest(best[node], second[node], loss)
            node += node & -node


def _two_lowest(lowest: float, next_lowest: float, value: float) -> tuple[float, float]:
    return (value, lowest) if value < lowest else (lowest, min(next_lowest, value))


def endings(runs: Runs) -> Iterator[TableIssue]:
    """Runs that did not finish, and runs that diverged."""
    for kind, reasons in (("unfinished", unfinished_rows(runs)), ("diverged", diverged_rows(runs))):
        if reasons:
            rows = tuple(sorted(reasons))
            text = f"{kind}: {row_words(rows)} (row {rows[0]}: {reasons[rows[0]]})"
            yield TableIssue(kind, "warn", rows, text, "usable() leaves them out")


def unknown_states(runs: Runs) -> Iterator[TableIssue]:
    """Columns of states in words that nobody knows."""
    for column, values in runs.unknown_states.items():
        text = f"{column} holds words that may say how runs ended ({_some(values)}): all rows are kept"
        yield TableIssue(
            "unknown-status", "warn", (), text, f"keep finished runs with where: {column} = '...'"
        )


def _some(values: Iterable[str]) -> str:
    values = list(values)
    return ", ".join(repr(value[:30]) for value in values[:4]) + (", ..." if len(values) > 4 else "")
