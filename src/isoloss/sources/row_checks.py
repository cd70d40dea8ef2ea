"""Checks of rows: bad numbers, runs inside their warmup, runs that do not belong together."""

import re
from collections.abc import Iterator

import polars as pl

from isoloss.sources.table import ONE_EPOCH, Runs, TableIssue, row_words, rows_where

_POSITIVE = (
    "params", "params_total", "params_executed", "tokens", "unique_tokens", "flops", "recurrence", "position",
)  # fmt: skip

_MOST = {"params": 1e16, "params_total": 1e16, "params_executed": 1e18, "tokens": 1e18, "flops": 1e34}


def numbers(runs: Runs) -> Iterator[TableIssue]:
    """Losses and counts that are negative, zero, NaN or infinite; needed values that are missing."""
    frame = runs.frame
    mend = "correct these rows, or keep them out with where"
    for name in ("loss", *_POSITIVE):
        if name not in frame.columns:
            continue
        finite = frame[name].is_finite()
        if rows := rows_where(frame, ~finite):
            yield TableIssue(
                f"{name}-not-finite", "refuse", rows, f"{name} is not finite in {row_words(rows)}", mend
            )
        most = _MOST.get(name, float("inf"))
        if rows := rows_where(frame, finite & (frame[name] > most)):
            text = f"{name} is above {most:g} in {row_words(rows)}, which nobody has trained"
            yield TableIssue(f"{name}-too-large", "refuse", rows, text, mend)
        # 0 tokens are an evaluation before the first step, which is unfinished, not wrong.
        rows = rows_where(frame, finite & ((frame[name] < 0) if name == "tokens" else (frame[name] <= 0)))
        if rows and not (name == "loss" and runs.allow_negative):
            text = f"{name} is negative or 0 in {row_words(rows)}"
            more = ", or allow_negative, as for a unigram-normalised loss" if name == "loss" else ""
            yield TableIssue(f"{name}-not-positive", "refuse", rows, text, mend + more)
    for name in runs.needed:
        if rows := rows_where(frame, frame[name].is_null()):
            text = f"{name} is missing in {row_words(rows)}"
            yield TableIssue(f"no-{name}", "warn", rows, text, "usable() leaves them out")


def warmup(runs: Runs) -> Iterator[TableIssue]:
    """Runs that end inside their warmup (Porian et al. 2024 trace a wrong exponent to a long one)."""
    for done, name in (("tokens", "warmup_tokens"), ("steps", "warmup_steps")):
        if done in runs.frame.columns and runs.has(name):
            data = runs.frame.filter(runs.frame[done] > 0)  # before the first step is unfinished
            if rows := rows_where(data, data[done] <= data[name]):
                yield TableIssue(
                    "in-warmup",
                    "refuse",
                    rows,
                    f"{row_words(rows)} did not train beyond the warmup",
                    "keep them out with where",
                )


def mixtures(runs: Runs) -> Iterator[TableIssue]:
    """Runs that one law cannot hold: other vocabularies, repeated data, other schedules, one layer."""
    frame = runs.frame
    for name in ("vocab", "tokenizer"):
        if (
            name not in runs.columns
            or "loss" not in runs.columns
            or re.search("byte|character", runs.loss_unit)
        ):
            continue
        kinds = frame[name].drop_nulls().unique()
        if len(kinds) > 1 and not _padded(kinds):
            text = (
                f"{runs.columns[name]} has {len(kinds)} values: losses per token do not compare across them"
            )
            mend = "keep one with where, or compare bits per byte, or accept mixed-vocabularies"
            yield TableIssue("mixed-vocabularies", "refuse", (), text, mend)
        elif len(kinds) > 1:
            text = f"{runs.columns[name]} goes from {kinds.min():g} to {kinds.max():g}: taken for one, padded"
            yield TableIssue("padded-vocabulary", "warn", (), text, "keep one with where if they differ")
    for name, what in (("family", "architectures"), ("dataset", "data sets"), ("context", "context lengths")):
        kinds = frame[name].drop_nulls().n_unique() if name in runs.columns else 0
        if kinds > 1:
            text = f"{runs.columns[name]} has {kinds} values: one law over several {what}"
            yield TableIssue(f"mixed-{name}", "warn", (), text, "keep one with where")
    yield from _repetitions(frame)
    if "cooled" in frame.columns and frame["cooled"].dtype == pl.Boolean:
        trunk = rows_where(frame, ~frame["cooled"])
        if trunk and frame["cooled"].any():
            text = f"{row_words(trunk)} are no ends of a cooldown, other rows are"
            yield TableIssue("mixed-cooldown", "warn", trunk, text, "keep one kind with where")
    if "n_layer" in frame.columns:
        single = rows_where(frame, frame["n_layer"] == 1)
        if single and (frame["n_layer"] > 1).any():
            text = f"{row_words(single)} have one layer, which breaks the trend of deeper models"
            yield TableIssue("one-layer", "warn", single, text, "fit with them and without, by where")


def _padded(kinds: pl.Series) -> bool:
    """Whether sizes of a vocabulary differ by no more than rounding up to whole tiles does."""
    if not kinds.dtype.is_numeric():
        return False
    sizes = kinds.to_numpy()
    return bool(0 < sizes.max() <= 1.02 * sizes.min())


def _repetitions(frame: pl.DataFrame) -> Iterator[TableIssue]:
    if not {"tokens", "unique_tokens"} <= set(frame.columns):
        return
    epochs = frame["tokens"] / frame["unique_tokens"]
    many, mend = epochs > 4 * ONE_EPOCH, "fit data-constrained, or keep them out with where"
    for kind, mask, times in (
        ("many-epochs", many, "4 times"),
        ("epochs", (epochs > ONE_EPOCH) & ~many, "once"),
    ):
        if rows := rows_where(frame, mask):
            text = f"{row_words(rows)} passed more than {times} over their data"
            yield TableIssue(kind, "warn", rows, text, mend)
