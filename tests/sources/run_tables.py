"""Tables of runs as people have them, for tests of what once misled a fit."""

import numpy as np
import polars as pl

from isoloss.sources import columns_for


def law(params, tokens):
    return 1.8172 + 482.01 * params**-0.3478 + 2085.43 * tokens**-0.3658


def grid(sizes=5, horizons=5, noise=1e-3, seed=0, **columns):
    """Separate runs of a Chinchilla law: sizes times horizons."""
    params = np.repeat(np.geomspace(2e7, 2e9, sizes).round(), horizons)
    tokens = np.tile(np.geomspace(5e8, 5e10, horizons).round(), sizes)
    loss = law(params, tokens) * np.exp(np.random.default_rng(seed).normal(0, noise, len(params)))
    return pl.DataFrame({"params": params, "tokens": tokens, "loss": loss} | columns)


def cut(**columns):
    """``grid`` with the largest model of each horizon cut short, its loss far too high, as the table says."""
    table, largest = grid(), pl.col("params") == 2e9
    labels = [
        pl.when(largest).then(pl.lit(bad)).otherwise(pl.lit(good)).alias(name)
        for name, (good, bad) in columns.items()
    ]
    return table.with_columns(
        pl.when(largest).then(pl.col("loss") * 1.15).otherwise("loss").alias("loss"), *labels
    )


def curves(step="step", seeds=2, sizes=5, spacing=None, **columns):
    """Runs of several rows each, of which a row knows its size, its seed and its step."""
    rng, rows = np.random.default_rng(0), []
    steps = np.arange(1, 7) * 2000 if spacing is None else np.array(spacing)
    for params in np.geomspace(1e7, 1e9, sizes).round():
        for seed in range(seeds):
            off = rng.normal(0, 0.01)
            for count in steps:
                loss = law(params, count * 1e6) * np.exp(off)
                rows.append(
                    {"params": params, "seed": seed, step: int(count), "tokens": count * 1e6, "loss": loss}
                )
    return pl.DataFrame(rows).with_columns(**columns)


def taken(table, laws="chinchilla", **options):
    return columns_for(laws, table, **options)


def out(data):
    return [(excluded.row, excluded.reason) for excluded in data.runs.excluded]


def kinds(runs, severity=None):
    return {finding.kind for finding in runs.findings if severity in (None, finding.severity)}


def one(runs, kind):
    (finding,) = [finding for finding in runs.findings if finding.kind == kind]
    assert finding.message
    assert finding.mend
    return finding
