"""Checks of units: counts in billions, loss in bits, batches in sequences, FLOPs under another rule.

A false alarm on a good table is a fault, so each threshold lies where no language model has been, and says
so. Loss tables known to be good span 768 to 1e13 parameters and 640 to 1e14 tokens.
"""

import math
from collections.abc import Iterator

import numpy as np
import polars as pl

from isoloss.sources.table import Runs, TableIssue, row_words

FEWEST = 500
"""Neither parameters nor tokens of a whole table are below this: Kaplan's smallest model has 768."""

SMALL = 1e5
"""Counts below this may be in thousands, millions or billions."""

RAW = "give raw counts: 7e9, not 7 for 7 billion"
_ODD_LOSSES = {"perplexity": "loss-is-perplexity", "a share": "loss-is-accuracy"}
_FLOPS_UNITS = {
    1e-9: "gigaFLOP", 1e-12: "teraFLOP", 1e-15: "petaFLOP", 1e-18: "exaFLOP, or hours of GPUs",
    1 / 8.64e19: "PF-days (of 8.64e19)",
}  # fmt: skip
_FLOPS_RULES = {1 / 6: "N D", 1 / 3: "2 N D, the forward pass alone", 4 / 3: "8 N D, with recomputation"}
_SAME_RULE = 0.02  # of a factor between FLOPs and 6 N D: what is nearer is the same


def counts(runs: Runs) -> Iterator[TableIssue]:
    """Parameters or tokens in thousands, millions or billions, the whole column or part of it."""
    for name in ("params", "tokens", "unique_tokens"):
        if not runs.has(name):
            continue
        column = runs.columns[name]
        data = _positive(runs.frame, name)
        if not data.height:
            continue
        rows, values = data["row"].to_numpy(), data[name].to_numpy()
        order = np.argsort(values)
        mixed = _mixed(values[order])
        if mixed:
            low = tuple(sorted(rows[order][: mixed[0]].tolist()))
            text = (
                f"{column} jumps by a factor of {mixed[1]:.2g}: {row_words(low)} seem to be in another unit"
            )
            yield TableIssue("mixed-units", "refuse" if mixed[1] >= 1e4 else "warn", low, text, RAW)
        elif values.max() < FEWEST or values.min() < 1:
            low = () if values.max() < FEWEST else tuple(rows[values < 1].tolist())
            text = (
                f"{column} goes from {values.min():.3g} to {values.max():.3g}: thousands, millions, billions?"
            )
            yield TableIssue(f"{name}-unit", "refuse", low, text, RAW)


def _mixed(values: np.ndarray) -> tuple[int, float] | None:
    """How many counts lie below a jump to raw ones that no series of runs makes, and its factor."""
    if len(values) < 2:
        return None
    last = int(np.diff(np.log(values)).argmax())
    small, large = float(values[last]), float(values[last + 1])
    jump = large / small
    return (last + 1, jump) if small < SMALL and large >= 1e6 and jump >= 300 else None


def _positive(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Rows in which all ``names`` are positive and finite; the others are another check's."""
    return frame.filter(*((pl.col(name) > 0) & pl.col(name).is_finite() for name in names))


def tokens_per_param(runs: Runs) -> Iterator[TableIssue]:
    """One column in raw counts and the other not: the ratio says so. Runs in print have 0.01 to 1e4."""
    if not {"params", "tokens"} <= set(runs.frame.columns) or any(counts(runs)):
        return
    data = _positive(runs.frame, "params", "tokens")
    if not data.height:
        return
    params = data["params"].to_numpy()
    ratio = _median(data["tokens"] / data["params"])
    if ratio < 1e-3:
        name, severity = "tokens", "refuse" if ratio < 1e-4 else "warn"
    elif ratio > 1e4:
        name, severity = "params", "refuse" if ratio > 1e6 and params.max() < SMALL else "warn"
    elif params.max() < SMALL and (params != np.round(params)).mean() > 0.5:
        name, severity = "params", "warn"
    else:
        return
    if "flops" in runs.frame.columns and name in runs.source["derived"]:  # the FLOPs that gave them are wrong
        text, mend = _flops_words(runs, ratio)
        yield TableIssue(f"{name}-unit", severity, (), text, mend)
        return
    text = (
        f"{runs.columns.get(name, name)} goes to {data[name].max():.3g}, at {ratio:.2g} tokens a parameter: "
        "thousands, millions, billions?"
    )
    yield TableIssue(f"{name}-unit", severity, (), text, RAW)


def _flops_words(runs: Runs, ratio: float) -> tuple[str, str]:
    """What FLOPs in another unit make of the other counts, and how to mend it."""
    most, column = runs.frame["flops"].max(), runs.columns.get("flops", "flops")
    text = f"{column} goes to {most:.3g}, which makes {ratio:.2g} tokens a parameter: PF-days, or exaFLOP?"
    return text, f"name the unit in the header, as in '{column} (PF-days)', or give FLOPs"


def loss(runs: Runs) -> Iterator[TableIssue]:
    """A loss that is named, or behaves, like bits, perplexity or an accuracy."""
    if not runs.has("loss"):
        return
    column = runs.columns["loss"]
    mend = "give nats per token: the logarithm of a perplexity"
    if kind := _ODD_LOSSES.get(runs.loss_unit):
        text = f"{column} is named like {runs.loss_unit}: a law of the loss does not hold for it as it is"
        yield TableIssue(kind, "warn", (), text, mend)
    if runs.loss_unit != "nats per token":
        return
    losses = runs.frame["loss"].filter(runs.frame["loss"].is_finite())
    if losses.is_empty():
        return
    middle = _median(losses)
    vocab = runs.frame["vocab"].max() if "vocab" in runs.frame.columns else None
    if middle > 20:
        text = f"{column} has a median of {middle:.3g}: it looks like perplexity"
        yield TableIssue("loss-is-perplexity", "warn", (), text, "take its logarithm")
    elif isinstance(vocab, float) and vocab > 1 and middle > math.log(vocab):
        text = f"half of {column} is above ln {vocab:g} = {math.log(vocab):.3g}, the loss of a guess: bits?"
        yield TableIssue("loss-in-bits", "warn", (), text, "multiply bits by ln 2 = 0.693")


def batch(runs: Runs) -> Iterator[TableIssue]:
    """Tokens that are not steps times batch."""
    if not runs.has("tokens", "steps", "batch_tokens"):
        return
    product = runs.frame["steps"] * runs.frame["batch_tokens"]
    data = _positive(runs.frame.with_columns(product.alias("product")), "product", "tokens")
    if not data.height:
        return
    factors = data["tokens"] / data["product"]
    factor, column = _median(factors), runs.columns["batch_tokens"]
    off = (factors / factor - 1).abs() > 0.02
    if abs(factor - 1) > 0.02 and not off.any():
        exact = _whole(factor)
        sequences = f": it looks like sequences of {exact} tokens" if factor >= 16 else ""
        text = f"tokens are {exact} times steps * {column}{sequences}"
        yield TableIssue("batch-unit", "warn", (), text, "map it as batch_sequences, beside context")
    elif abs(factor - 1) <= 0.02 and off.any():
        rows = tuple(data["row"].filter(off).to_list())
        text = f"tokens are not steps * {column} in {row_words(rows)}"
        yield TableIssue("batch-unit", "warn", rows, text, "check tokens and steps of these rows")


def _whole(factor: float) -> str:
    """2047.6 -> '2048': a context is a power of two more often than not."""
    power = 2 ** round(math.log2(factor)) if 16 <= factor < 2**40 else 1
    return f"{power}" if abs(factor / power - 1) < 0.02 else f"{factor:.4g}"


def _median(values: pl.Series) -> float:
    return float(np.median(values.to_numpy()))


def flops(runs: Runs) -> Iterator[TableIssue]:
    """FLOPs in a unit that no model of these sizes spends, or another multiple of params * tokens than 6.

    Parameters are those of the count that is asked for. Where a command needs FLOPs, a wrong unit refuses.
    """
    count = runs.count
    if not runs.has("flops") or count not in runs.frame.columns:
        return
    column = runs.columns["flops"]
    data = _positive(runs.frame, "flops", count, *(["tokens"] if runs.has("tokens") else []))
    if not data.height:
        return
    if runs.has("tokens"):
        ratios, usual = _over_6ND(data, count), 1.0
    else:  # tokens a parameter, of which tables in print have 0.01 to 1e4, mostly near 20
        ratios, usual = data["flops"] / (6 * data[count] ** 2), 20.0
    ratios = ratios.filter(ratios.is_finite() & (ratios > 0))
    if ratios.is_empty():
        return
    factor = _median(ratios) / usual
    if not 1e-6 < factor < 1e6:
        near = sorted(_FLOPS_UNITS, key=lambda size: abs(math.log(factor / size)))[:1]
        guess = "".join(
            f": it looks like {_FLOPS_UNITS[size]}" for size in near if 1e-3 < factor / size < 1e3
        )
        text = f"{column} is {factor:.2g} of what its sizes need{guess}"
        severity = "refuse" if "flops" in runs.needed else "warn"
        mend = f"give FLOPs, or leave flops out to use 6 {count} tokens"
        yield TableIssue("flops-unit", severity, (), text, mend)
        return
    if abs((factor := flops_factor(runs)) - 1) > _SAME_RULE:
        rule = next((rule for size, rule in _FLOPS_RULES.items() if abs(factor / size - 1) < _SAME_RULE), "")
        text = f"{column} is {factor:.4g} times 6 {count} tokens in every row" + (
            f" ({rule})" if rule else ""
        )
        yield TableIssue("flops-rule", "warn", (), text, "say which counting rule the FLOPs follow")


def flops_factor(runs: Runs) -> float:
    """How many times 6 N D the FLOPs are, where they are so in every row; else 1."""
    low, middle, high = _times_6ND(runs)
    return middle if high <= (1 + _SAME_RULE) * low else 1.0


def uneven_flops(runs: Runs) -> str:
    """How far FLOPs are from 6 N D where they are so by no constant factor; '' for less than a tenth.

    No finding, since exact FLOPs are: it matters only where a size is to follow from FLOPs.
    """
    low, _, high = _times_6ND(runs)
    if high <= (1 + _SAME_RULE) * low or (low >= 1 / 1.1 and high <= 1.1):
        return ""
    return f"{runs.columns['flops']} is {low:.3g} to {high:.3g} times 6 {runs.count} tokens from row to row"


def _times_6ND(runs: Runs) -> tuple[float, float, float]:
    """Of FLOPs over 6 N D the 10 % quantile, the median and the 90 % quantile; 1 where they are unknown."""
    if not _counted_apart(runs):
        return 1.0, 1.0, 1.0
    ratios = _over_6ND(_positive(runs.frame, "flops", runs.count, "tokens"), runs.count)
    if ratios.is_empty():
        return 1.0, 1.0, 1.0
    low, high = np.quantile(ratios.to_numpy(), [0.1, 0.9])
    return float(low), _median(ratios), float(high)


def _counted_apart(runs: Runs) -> bool:
    """Whether FLOPs, N and D are all there and N was not derived from FLOPs."""
    by_flops = any("flops" in rule for rule in runs.source["derived"].values())
    return runs.has("flops", "tokens") and runs.count in runs.frame.columns and not by_flops


def _over_6ND(data: pl.DataFrame, count: str) -> pl.Series:
    """FLOPs over 6 N D; of looped models each loop counts, unless N as executed counts it already."""
    loops = data["recurrence"].fill_null(1) if "recurrence" in data.columns else 1
    return data["flops"] / (6 * data[count] * data["tokens"] * (1 if count == "params_executed" else loops))
