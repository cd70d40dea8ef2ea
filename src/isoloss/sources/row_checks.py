"""Checks of rows: bad numbers, copies, runs that did not end well, runs that do not belong together."""

import math
from collections.abc import Iterator, Sequence

import polars as pl

from isoloss.sources.table import Runs, TableIssue, row_words

UNFINISHED = (
    "running", "pending", "queued", "failed", "crashed", "killed", "preempted", "stopped", "aborted",
    "cancelled", "canceled", "unfinished", "incomplete",
)  # fmt: skip
DIVERGED = ("diverged", "nan", "exploded")
WORSE = 1.5
"""A run whose loss is this many times that of two runs with no more parameters and tokens diverged."""

_POSITIVE = (
    "params", "params_total", "params_executed", "tokens", "unique_tokens", "flops", "recurrence", "position",
)  # fmt: skip
ONE_EPOCH = 1.001
"""Rounding tokens to whole batches can make one pass over the data look like a little more."""

_GROUPS = ("family", "dataset", "tokenizer", "vocab", "context", "position", "recurrence")
_SETTINGS = (
    "seed", "learning_rate", "batch_tokens", "batch_sequences", "n_layer", "d_model", "d_ff", "n_head",
)  # fmt: skip


def numbers(runs: Runs) -> Iterator[TableIssue]:
    """Losses and counts that are negative, zero, NaN or infinite; needed values that are missing."""
    frame = runs.frame
    mend = "correct these rows, or keep them out with where"
    for name in ("loss", *_POSITIVE):
        if name not in frame.columns:
            continue
        finite = frame[name].is_finite()
        if rows := _rows(frame, ~finite):
            yield TableIssue(
                f"{name}-not-finite", "refuse", rows, f"{name} is not finite in {row_words(rows)}", mend
            )
        # 0 tokens are an evaluation before the first step, which is unfinished, not wrong.
        rows = _rows(frame, finite & ((frame[name] < 0) if name == "tokens" else (frame[name] <= 0)))
        if rows and not (name == "loss" and runs.allow_negative):
            text = f"{name} is negative or 0 in {row_words(rows)}"
            more = ", or allow_negative, as for a unigram-normalised loss" if name == "loss" else ""
            yield TableIssue(f"{name}-not-positive", "refuse", rows, text, mend + more)
    for name in runs.needed:
        if rows := _rows(frame, frame[name].is_null()):
            text = f"{name} is missing in {row_words(rows)}"
            yield TableIssue(f"no-{name}", "warn", rows, text, "usable() leaves them out")


def warmup(runs: Runs) -> Iterator[TableIssue]:
    """Runs that end inside their warmup (Porian et al. 2024 trace a wrong exponent to a long one)."""
    for done, name in (("tokens", "warmup_tokens"), ("steps", "warmup_steps")):
        if done in runs.frame.columns and runs.has(name):
            data = runs.frame.filter(runs.frame[done] > 0)  # before the first step is unfinished
            if rows := _rows(data, data[done] <= data[name]):
                yield TableIssue(
                    "in-warmup",
                    "refuse",
                    rows,
                    f"{row_words(rows)} did not train beyond the warmup",
                    "keep them out with where",
                )


def duplicates(runs: Runs) -> Iterator[TableIssue]:
    """Rows that are there twice, or nearly: the same sizes and seed, and the same loss to nine digits."""
    present = set(runs.frame["row"])
    copies = [[row for row in group if row in present] for group in runs.copies]
    repeated = sorted(row for group in copies for row in group[1:])
    if repeated:
        groups = "; ".join(" = ".join(map(str, group)) for group in copies if len(group) > 1)
        yield TableIssue(
            "duplicate-rows",
            "warn",
            tuple(repeated),
            f"{row_words(repeated)} repeat earlier rows in every column ({groups[:200]})",
            "keep one of each, or give weights",
        )
    if rows := _near_copies(runs.frame.filter(~runs.frame["row"].is_in(repeated))):
        yield TableIssue(
            "near-duplicates",
            "warn",
            rows,
            f"{row_words(rows)} share sizes and loss to the last digits with another row",
            "keep one of each, or name the runs' seeds",
        )


def _near_copies(data: pl.DataFrame) -> tuple[int, ...]:
    """Rows that share settings and, to the last digits, sizes and loss with another."""
    near: set[int] = set()
    for size in ("tokens", "flops"):
        if not {"params", size, "loss"} <= set(data.columns):
            continue
        same = [name for name in (*_SETTINGS, *_GROUPS) if name in data.columns]
        keys = data.drop_nulls(["params", size, "loss"]).select(
            "row",
            *same,
            pl.col("params").round_sig_figs(5),
            pl.col(size).round_sig_figs(5),
            pl.col("loss").round_sig_figs(9),
        )
        groups = keys.group_by([*same, "params", size, "loss"]).agg("row")["row"].to_list()
        near |= {row for group in groups if len(group) > 1 for row in group}
    return tuple(sorted(near))


def _by_status(frame: pl.DataFrame, statuses: Sequence[str]) -> dict[int, str]:
    """Row -> reason, of runs whose status is one of these."""
    if "status" not in frame.columns or frame["status"].dtype != pl.String:
        return {}
    bare = frame.select("row", pl.col("status").str.strip_chars()).drop_nulls()
    return {row: f"status {status!r}" for row, status in bare.iter_rows() if status.lower() in statuses}


def unfinished_rows(runs: Runs) -> dict[int, str]:
    """Row -> reason, of runs that did not reach their end."""
    frame, reasons = runs.frame, _by_status(runs.frame, UNFINISHED)
    for name in ("tokens", "steps"):
        if name in frame.columns:
            reasons |= dict.fromkeys(_rows(frame, frame[name] == 0), "not a step was made")
    if {"steps", "planned_steps"} <= set(frame.columns):
        early = frame.filter(frame["steps"] < 0.99 * frame["planned_steps"])  # some count from 0
        for row, steps, planned in early.select("row", "steps", "planned_steps").iter_rows():
            reasons[row] = f"stopped at step {steps:g} of {planned:g}"
    return reasons


def diverged_rows(runs: Runs) -> dict[int, str]:
    """Row -> reason, of runs that lost what they had learnt.

    By status; by a loss above ln V, that of a guess; or by a loss ``WORSE`` times those of two runs that had
    no more parameters and no more tokens (a good run is better than both).
    """
    frame, reasons = runs.frame, _by_status(runs.frame, DIVERGED)
    if "loss" not in frame.columns:
        return reasons
    if "vocab" in frame.columns:
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
    losses so far. Within a cell the lower loss comes first, so each run meets all that can accuse it.
    """
    data = data.sort("params", "tokens", "loss")
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


def mixtures(runs: Runs) -> Iterator[TableIssue]:
    """Runs that one law cannot hold: other vocabularies, repeated data, other schedules, one layer."""
    frame = runs.frame
    loss = runs.columns.get("loss", "bpb").lower()
    for name in ("vocab", "tokenizer"):
        if name in runs.columns and "bpb" not in loss and "byte" not in loss:
            kinds = frame[name].drop_nulls().n_unique()
            if kinds > 1:
                text = f"{runs.columns[name]} has {kinds} values: losses per token do not compare across them"
                mend = "keep one with where, or compare bits per byte"
                yield TableIssue("mixed-vocabularies", "refuse", (), text, mend)
    for name, what in (("family", "architectures"), ("dataset", "data sets"), ("context", "context lengths")):
        kinds = frame[name].drop_nulls().n_unique() if name in runs.columns else 0
        if kinds > 1:
            text = f"{runs.columns[name]} has {kinds} values: one law over several {what}"
            yield TableIssue(f"mixed-{name}", "warn", (), text, "keep one with where")
    yield from _repetitions(frame)
    if "cooled" in frame.columns and frame["cooled"].dtype == pl.Boolean:
        trunk = _rows(frame, ~frame["cooled"])
        if trunk and frame["cooled"].any():
            text = f"{row_words(trunk)} are no ends of a cooldown, other rows are"
            yield TableIssue("mixed-cooldown", "warn", trunk, text, "keep one kind with where")
    if "n_layer" in frame.columns:
        single = _rows(frame, frame["n_layer"] == 1)
        if single and (frame["n_layer"] > 1).any():
            text = f"{row_words(single)} have one layer, which breaks the trend of deeper models"
            yield TableIssue("one-layer", "warn", single, text, "fit with them and without, by where")


def _repetitions(frame: pl.DataFrame) -> Iterator[TableIssue]:
    if not {"tokens", "unique_tokens"} <= set(frame.columns):
        return
    epochs = frame["tokens"] / frame["unique_tokens"]
    many, mend = epochs > 4 * ONE_EPOCH, "fit data-constrained, or keep them out with where"
    for kind, mask, times in (
        ("many-epochs", many, "4 times"),
        ("epochs", (epochs > ONE_EPOCH) & ~many, "once"),
    ):
        if rows := _rows(frame, mask):
            text = f"{row_words(rows)} passed more than {times} over their data"
            yield TableIssue(kind, "warn", rows, text, mend)


def _rows(frame: pl.DataFrame, mask: pl.Series) -> tuple[int, ...]:
    return tuple(frame["row"].filter(mask.fill_null(False)).to_list())
