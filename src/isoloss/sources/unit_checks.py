"""Checks of units: counts in billions, loss in bits, batches in sequences, FLOPs under another rule.

A false alarm on a good table is a fault, so each threshold lies where no language model has been, and says
so. Loss tables known to be good span 768 to 1e13 parameters and 640 to 1e14 tokens.
"""

import math
import re
from collections.abc import Iterator

import numpy as np

from isoloss.sources.table import Finding, Runs, named

FEWEST = 500
"""Neither parameters nor tokens of a whole table are below this: Kaplan's smallest model has 768."""

SMALL = 1e5
"""Counts below this may be in thousands, millions or billions."""

RAW = "give raw counts: 7e9, not 7 for 7 billion"
_FLOPS_UNITS = {
    1e-9: "gigaFLOP", 1e-12: "teraFLOP", 1e-15: "petaFLOP", 1e-18: "exaFLOP", 1 / 8.64e19: "PF-days",
}  # fmt: skip
_FLOPS_RULES = {1 / 6: "N D", 1 / 3: "2 N D, the forward pass alone", 4 / 3: "8 N D, with recomputation"}


def counts(runs: Runs) -> Iterator[Finding]:
    """Parameters or tokens in thousands, millions or billions, the whole column or part of it."""
    for name in ("params", "tokens", "unique_tokens"):
        if not runs.has(name):
            continue
        column = runs.columns[name]
        data = runs.frame.select("row", name).drop_nulls().filter(runs.frame[name].drop_nulls() > 0)
        if not data.height:
            continue
        rows, values = data["row"].to_numpy(), data[name].to_numpy()
        order = np.argsort(values)
        mixed = _mixed(values[order])
        if mixed:
            low = tuple(sorted(rows[order][: mixed[0]].tolist()))
            text = f"{column} jumps by a factor of {mixed[1]:.2g}: {named(low)} seem to be in another unit"
            yield Finding("mixed-units", "refuse" if mixed[1] >= 1e4 else "warn", low, text, RAW)
        elif values.max() < FEWEST or values.min() < 1:
            low = () if values.max() < FEWEST else tuple(rows[values < 1].tolist())
            text = (
                f"{column} goes from {values.min():.3g} to {values.max():.3g}: thousands, millions, billions?"
            )
            yield Finding(f"{name}-unit", "refuse", low, text, RAW)


def _mixed(values: np.ndarray) -> tuple[int, float] | None:
    """Place and factor of a jump from small counts to raw ones that no series of runs makes."""
    if len(values) < 2:
        return None
    jumps = values[1:] / values[:-1]
    place = int(jumps.argmax())
    small, large, jump = values[place], values[place + 1], float(jumps[place])
    return (place + 1, jump) if small < SMALL and large >= 1e6 and jump >= 300 else None


def tokens_per_param(runs: Runs) -> Iterator[Finding]:
    """One column in raw counts and the other not: the ratio says so. Runs in print have 0.01 to 1e4."""
    if not {"params", "tokens"} <= set(runs.frame.columns) or any(counts(runs)):
        return
    data = runs.frame.select("params", "tokens").drop_nulls()
    data = data.filter((data["params"] > 0) & (data["tokens"] > 0))
    if not data.height:
        return
    params, tokens = data["params"].to_numpy(), data["tokens"].to_numpy()
    ratio = float(np.median(tokens / params))
    if ratio < 1e-3:
        name, severity = "tokens", "refuse"
    elif params.max() < SMALL and ratio > 1e4:
        name, severity = "params", "refuse" if ratio > 1e6 else "warn"
    elif params.max() < SMALL and (params != np.round(params)).mean() > 0.5:
        name, severity = "params", "warn"
    else:
        return
    text = (
        f"{runs.columns.get(name, name)} goes to {data[name].max():.3g}, at {ratio:.2g} tokens a parameter: "
        "thousands, millions, billions?"
    )
    rule = runs.source["derived"].get(name)
    yield Finding(f"{name}-unit", severity, (), text + (f" (from {rule})" if rule else ""), RAW)


def loss(runs: Runs) -> Iterator[Finding]:
    """A loss that is named, or behaves, like bits, perplexity or an accuracy."""
    if not runs.has("loss"):
        return
    column = runs.columns["loss"]
    mend = "give nats per token, or say in your report what unit the law is in"
    name = column.lower()
    for kind, pattern, unit in (
        ("loss-in-bits", r"\bbpb\b|(^|[_\W])bpb|bits", "bits"),
        ("loss-is-perplexity", r"perplexity|\bppl\b|_ppl|ppl_", "perplexity"),
        ("loss-is-accuracy", r"accuracy|(^|[_\W])acc($|[_\W])|percent|%", "an accuracy or a share"),
    ):
        if re.search(pattern, name):
            yield Finding(kind, "warn", (), f"{column} is named like {unit}, not nats per token", mend)
            return
    values = runs.frame["loss"].drop_nulls().drop_nans().to_numpy()
    if not len(values):
        return
    middle = float(np.median(values))
    vocab = runs.frame["vocab"].max() if "vocab" in runs.frame.columns else None
    if middle > 20:
        text = f"{column} has a median of {middle:.3g}: it looks like perplexity"
        yield Finding("loss-is-perplexity", "warn", (), text, "take its logarithm")
    elif isinstance(vocab, float) and vocab > 1 and middle > math.log(vocab):
        text = f"half of {column} is above ln {vocab:g} = {math.log(vocab):.3g}, the loss of a guess: bits?"
        yield Finding("loss-in-bits", "warn", (), text, "multiply bits by ln 2 = 0.693")


def batch(runs: Runs) -> Iterator[Finding]:
    """Tokens that are not steps times batch."""
    if not runs.has("tokens", "steps", "batch_tokens"):
        return
    data = runs.frame.with_columns((runs.frame["steps"] * runs.frame["batch_tokens"]).alias("product"))
    data = data.select("row", "tokens", "product").drop_nulls()
    data = data.filter((data["product"] > 0) & (data["tokens"] > 0))
    if not data.height:
        return
    factors = data["tokens"].to_numpy() / data["product"].to_numpy()
    factor, spread = float(np.median(factors)), float(np.ptp(factors))
    column = runs.columns["batch_tokens"]
    if abs(factor - 1) > 0.02 and spread <= 0.02 * factor:
        power = 2 ** round(math.log2(factor))
        exact = f"{power}" if abs(factor / power - 1) < 0.02 else f"{factor:.4g}"
        sequences = f": it looks like sequences of {exact} tokens" if factor >= 16 else ""
        text = f"tokens are {exact} times steps * {column}{sequences}"
        yield Finding("batch-unit", "warn", (), text, "map it as batch_sequences, beside context")
    elif abs(factor - 1) <= 0.02 and (off := np.abs(factors - 1) > 0.02).any():
        rows = tuple(data["row"].to_numpy()[off].tolist())
        text = f"tokens are not steps * {column} in {named(rows)}"
        yield Finding("batch-unit", "warn", rows, text, "check tokens and steps of these rows")


def flops(runs: Runs) -> Iterator[Finding]:
    """FLOPs that are another multiple of params * tokens than 6."""
    if not runs.has("flops", "params", "tokens"):
        return
    product = 6 * runs.frame["params"] * runs.frame["tokens"]
    ratios = (runs.frame["flops"] / product).drop_nulls().to_numpy()
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return
    factor, column = float(np.median(ratios)), runs.columns["flops"]
    low, high = np.quantile(ratios, [0.1, 0.9])
    if factor < 1e-6:
        unit = next((unit for size, unit in _FLOPS_UNITS.items() if 0.3 < factor / size < 3), "another unit")
        text = f"{column} is {factor:.2g} of 6 params tokens: it looks like {unit}"
        yield Finding("flops-unit", "warn", (), text, "give FLOPs, or leave flops out to use 6 params tokens")
    elif abs(factor - 1) > 0.02 and high <= 1.02 * low:
        rule = next((rule for size, rule in _FLOPS_RULES.items() if abs(factor / size - 1) < 0.02), "")
        text = f"{column} is {factor:.4g} times 6 params tokens in every row" + (f" ({rule})" if rule else "")
        yield Finding("flops-rule", "warn", (), text, "say which counting rule the FLOPs follow")
