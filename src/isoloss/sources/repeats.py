"""Rows that are no runs of their own: copies, reruns, steps logged twice, checkpoints.

Each says what tells it apart from honest seeds, which share their inputs too and must be left alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss.sources.naming import plain
from isoloss.sources.table import Excluded, Runs, TableIssue, row_words, share

SETTINGS = (
    "family", "dataset", "tokenizer", "vocab", "context", "n_layer", "d_model", "d_ff", "n_head",
    "learning_rate", "batch_tokens", "batch_sequences", "planned_steps", "recurrence", "position",
)  # fmt: skip
_GROUPS = 4  # of equal rows that are named
SAME_LOSS = 1e-5
"""Seeds scatter by 1e-3 of the loss; one seed run again by less than this."""
_LOGGED = frozenset({
    "step", "global_step", "iteration", "iter", "training_iteration", "ckpt_step", "checkpoint_step",
    "update",
})  # fmt: skip
"""Names of the step at which a row was logged; of a run's length, it would be steps or num_steps."""


def duplicates(runs: Runs) -> Iterator[TableIssue]:
    """Rows that are there twice, or nearly: the same sizes and seed, and the same loss to nine digits."""
    present = set(runs.frame["row"])
    copies = [[row for row in group if row in present] for group in runs.copies]
    repeated = sorted(row for group in copies for row in group[1:])
    if repeated:
        same = [group for group in copies if len(group) > 1]
        groups = "; ".join(" = ".join(map(str, group[:12])) for group in same[:_GROUPS])
        more = f" and {len(same) - _GROUPS} more groups" if len(same) > _GROUPS else ""
        verb = "repeats" if len(repeated) == 1 else "repeat"
        yield TableIssue(
            "duplicate-rows",
            "warn",
            tuple(repeated),
            f"{row_words(repeated)} {verb} earlier rows in every column. Equal are {groups}{more}",
            "keep one of each, or give weights",
        )
    if rows := _near_copies(runs.frame.filter(~pl.col("row").is_in(repeated))):
        yield TableIssue(
            "near-duplicates",
            "warn",
            rows,
            f"{row_words(rows)} share sizes and loss to the last digits with another row",
            "keep one of each, or name the runs' seeds",
        )


def _near_copies(data: pl.DataFrame) -> tuple[int, ...]:
    """Rows that share settings and, to the last digits, sizes and loss with another, beyond rounding."""
    near: set[int] = set()
    for size in ("tokens", "flops"):
        if not {"params", size, "loss"} <= set(data.columns):
            continue
        # Names of runs tell rows apart that rounding made equal; nine digits are not equal by chance.
        names = () if last_digit(data["loss"].to_numpy()) is None else ("run_id",)
        same = [name for name in (*SETTINGS, "seed", *names) if name in data.columns]
        sizes = (pl.col(name).round_sig_figs(5) for name in ("params", size))
        keys = data.drop_nulls(["params", size, "loss"]).select(
            "row", "loss", *same, *sizes, pl.col("loss").round_sig_figs(9).alias("digits")
        )
        design = [*same, "params", size]
        if keys.height and not _rounded(keys, design):
            near |= set(keys.filter(pl.len().over([*design, "digits"]) > 1)["row"])
    return tuple(sorted(near))


def _rounded(data: pl.DataFrame, design: Sequence[str]) -> bool:
    """Whether losses are written so coarsely that seeds of one design must be equal now and then.

    Some repeats of a design then differ, by a few units of the last digit.
    """
    step = last_digit(data["loss"].to_numpy())
    if step is None:
        return False
    spread = data.group_by(design).agg(pl.col("loss").max() - pl.col("loss").min())["loss"]
    return bool(((spread > 0) & (spread < 29.5 * step)).any())


def last_digit(loss_n: NDArray[np.float64], most: int = 100_000) -> float | None:
    """The step of which all losses are multiples; None if the median loss has more than ``most`` of them.

    It is that of the last decimal, in whatever unit: a factor on the losses is one on the step.
    """
    values = np.unique(loss_n[np.isfinite(loss_n)])
    middle = values[len(values) // 2] if len(values) else 0.0
    if middle == 0:
        return None
    ratio_n, steps = values[np.abs(values) < 1000 * abs(middle)] / middle, 1
    while steps <= most:
        count_n = steps * ratio_n
        off_n = np.abs(count_n - np.round(count_n)) > 16 * np.finfo(float).eps * steps * np.abs(ratio_n).max()
        if not off_n.any():
            return abs(float(middle)) / steps
        more = Fraction(float(count_n[off_n][0])).limit_denominator(max(2, most // steps)).denominator
        steps *= max(more, 2)
    return None


def without_repeats(runs: Runs, design: Sequence[str]) -> Runs:
    """``runs`` without copies, without what a restart logged again, and with each seed of a design once.

    ``design`` are the inputs that make two runs equal. Every row that goes is named in ``excluded``.
    """
    if "weights" in runs.frame.columns:
        return runs
    for reason, find in (
        ("a copy: repeats another row", _copies),
        ("logged twice: a later row of the run has this step or one before it", _logged_twice),
        ("a rerun: another row has its settings, its seed and its loss to the last digits", _reruns),
        ("written twice: another row has its loss with more digits", _coarser),
    ):
        if rows := find(runs, list(design)):
            gone = tuple(Excluded(row, reason, False) for row in rows)
            frame = runs.frame.filter(~pl.col("row").is_in(rows))
            source = {**runs.source, "rows_kept": frame.height}
            runs = replace(runs, frame=frame, source=source, excluded=(*runs.excluded, *gone))
    return runs


def _present(runs: Runs, *names: str) -> list[str]:
    return [name for name in names if name in runs.frame.columns]


def _unique(*names: str) -> list[str]:
    return list(dict.fromkeys(names))


def _copies(runs: Runs, design: list[str]) -> list[int]:
    """Rows that repeat another in all that a fit needs, and in seed and run; rounded losses prove nothing."""
    named = _present(runs, "seed", "run_id")
    copies = runs.frame.filter(pl.int_range(pl.len()).over([*runs.needed, *named]) > 0)["row"].to_list()
    return [] if copies and _rounded(runs.frame, [*design, *named]) else copies


def _logged_twice(runs: Runs, design: list[str]) -> list[int]:
    """Of runs with several rows, those that a later row of the same run takes back."""
    done = next(iter(_present(runs, "steps", "tokens")), None)
    if done is None or "run_id" not in runs.frame.columns:
        return []
    if not _curves(runs.frame):  # two rows of one name may be two readings of it
        return []
    of_row = with_labels(runs, few=True)
    labels = [name for name in of_row.columns if name.startswith("label ")]
    others = [name for name in design if name not in (done, "tokens", "flops")]
    key = [name for name in _unique("run_id", "seed", *SETTINGS, *others, *labels) if name in of_row.columns]
    later = pl.col(done).reverse().cum_min().shift(1).reverse().over(key)
    # A file that is not in the order of time shows only what was logged at the very same step.
    in_time = (pl.col(done).diff() < 0).sum().over(key) <= 0.2 * pl.len().over(key)
    repeated = pl.int_range(pl.len()).reverse().over([*key, done]) > 0
    taken_back = repeated | (in_time & (pl.col(done) >= later).fill_null(False))
    return of_row.drop_nulls(["run_id", done]).sort("row").filter(taken_back)["row"].to_list()


def _curves(frame: pl.DataFrame) -> bool:
    """Whether most rows are of runs with three or more, all of one size."""
    sizes = [name for name in ("params", "params_total") if name in frame.columns]
    runs = frame.group_by("run_id").agg(pl.len().alias("rows"), *(pl.col(name).n_unique() for name in sizes))
    curves = runs.filter(pl.col("rows") >= 3, *(pl.col(name) == 1 for name in sizes))
    return 2 * curves["rows"].sum() > frame.height


def with_labels(runs: Runs, *, few: bool) -> pl.DataFrame:
    """The frame with its columns of labels; ``few``: with many rows a value, which no time stamp has."""
    if runs.labels.width < 2:
        return runs.frame
    labels = runs.frame.select("row").join(runs.labels, on="row", how="left", maintain_order="left")
    kinds = {name: labels[name].n_unique() for name in labels.columns if name != "row"}
    most = max(2, labels.height // 3) if few else labels.height
    kept = [labels[name].alias(f"label {name}") for name, kind in kinds.items() if 1 < kind <= most]
    return runs.frame.with_columns(kept)


def _reruns(runs: Runs, design: list[str]) -> list[int]:
    """All rows but the first of a seed that was run again with the same outcome."""
    if "seed" not in runs.frame.columns:
        return []
    key = _unique(*design, *_present(runs, *SETTINGS), "seed")
    near = (pl.col("loss") / pl.col("loss").shift(1) - 1).abs() < SAME_LOSS
    data = runs.frame.drop_nulls("seed").sort(*key, "loss")
    return sorted(data.filter(near.over(key).fill_null(False))["row"])


def _coarser(runs: Runs, design: list[str]) -> list[int]:
    """Rows whose loss is that of another row with fewer digits, where most designs are there twice so."""
    same = _present(runs, "seed", "run_id", *SETTINGS)
    same = [name for name in same if name not in design]
    sizes = [pl.col(name).round_sig_figs(3) for name in design if runs.frame[name].dtype.is_numeric()]
    key = [*same, *(f"size {place}" for place in range(len(sizes)))]
    if not key:
        return []
    named = (size.alias(f"size {place}") for place, size in enumerate(sizes))
    data = runs.frame.select("row", "loss", *same, *named)
    pairs = data.filter(pl.len().over(key) == 2).sort(*key, "row")
    if pairs.height < 6 or 2 * pairs.height < data.height:
        return []
    loss_P2 = pairs["loss"].to_numpy().reshape(-1, 2)
    # Finer than ten million steps is as good as exact.
    first, second = (last_digit(loss_P2[:, place], most=10_000_000) or 0.0 for place in (0, 1))
    same_P = np.abs(loss_P2[:, 0] - loss_P2[:, 1]) <= 0.51 * max(first, second)
    if np.isclose(first, second, rtol=1e-6, atol=0) or np.mean(same_P) < 0.9:
        return []
    coarse = 0 if first > second else 1
    return sorted(pairs["row"].to_numpy().reshape(-1, 2)[same_P, coarse].tolist())


def run_names(runs: Runs, design: Sequence[str]) -> tuple[pl.Series | None, str]:
    """A name for the run of each row, where some runs have several, and a note on how it is known.

    By ``run_id``, if its rows share their size; else rows of equal size, settings, seed and labels whose
    logged step rises are the checkpoints of one run.
    """
    frame = runs.frame
    if "run_id" in frame.columns and frame["run_id"].n_unique() < frame.height:
        column = runs.columns["run_id"]
        # What is called run_id is one; what is called name may be that of a family of models.
        sizes: list[str] = (
            [] if plain(column) == "run_id" else _present(runs, "params", "params_total", "seed")
        )
        alone = frame.group_by("run_id").agg(pl.col(name).n_unique() for name in sizes)
        if all((alone[name] == 1).all() for name in sizes):
            label = pl.coalesce(pl.col("run_id").cast(pl.String), pl.format("row {}", pl.col("row")))
            return frame.select(label.alias("run")).to_series(), f"rows of one {column} count once"
    return _checkpoints(runs, list(design))


def _checkpoints(runs: Runs, design: list[str]) -> tuple[pl.Series | None, str]:
    done = next(iter(_present(runs, "steps", "tokens")), None)
    if done is None or "params" not in runs.frame.columns:
        return None, ""
    data = with_labels(runs, few=True)
    others = [name for name in design if name not in ("tokens", "flops", "steps", "params")]
    key = [name for name in _unique("params", *SETTINGS, "seed", *others) if name in data.columns]
    for name in data.columns:
        if name.startswith("label ") and share(data.select([*key, name]).is_duplicated()) > 0.5:
            key.append(name)
    rises = data.filter(pl.len().over(key) > 1)
    if 2 * rises.height <= data.height or rises.select([*key, done]).is_duplicated().any():
        return None, ""
    gaps = rises.sort(*key, done).group_by(key).agg(pl.len().alias("rows"), pl.col(done).diff().alias("gap"))
    gap, least = pl.col("gap").list, 4 if done == "steps" else 6
    even = gaps.select((gap.max() <= 1.1 * gap.min()) & (pl.col("rows") >= least)).to_series()
    logged = done == "steps" and plain(runs.columns.get("steps", "")) in _LOGGED
    if not logged and share(even) <= 0.8:
        return None, ""
    names = [pl.col(name).cast(pl.String).fill_null("") for name in key]
    words = ", ".join(name.removeprefix("label ") for name in key)
    return (
        data.select(pl.concat_str(names, separator=", ").alias("run")).to_series(),
        f"rows of equal {words} whose {done} rise count once, as checkpoints of one run: a column run_id "
        "would say otherwise",
    )
