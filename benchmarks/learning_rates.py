"""Turn a learning-rate sweep into the recipe's table.

    isoloss run learning-rates --scale evening --out DIR
    python benchmarks/learning_rates.py DIR > src/isoloss/training/recipe.toml

For every family, variant (LSTM depth, recurrence) and size, the rate of least loss: the vertex of the
parabola through the best rate of the grid and its two neighbours, in log rate; the grid's end where the best
lies there, which the table marks.
"""

import sys
from math import exp, log

import polars as pl

from isoloss.records import load
from isoloss.training.recipe import variant_of
from isoloss.version import __version__


def best_rate(rates: list[float], losses: list[float]) -> tuple[float, str]:
    """The rate of least loss and how it was found: 'inside' the grid or at its 'edge'."""
    at = min(range(len(rates)), key=lambda i: losses[i])
    if at in (0, len(rates) - 1):
        return rates[at], "edge"
    x = [log(rate) for rate in rates[at - 1 : at + 2]]
    y = losses[at - 1 : at + 2]
    left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    curvature = (right - left) / (x[2] - x[0])
    vertex = (x[0] + x[1]) / 2 - left / (2 * curvature)
    return exp(min(max(vertex, x[0]), x[2])), "inside"


def main(folder: str) -> None:
    study = load(folder)
    table = study.table().filter(pl.col("status") == "finished", pl.col("cooled"))
    table = table.filter(pl.col("tokens") == pl.col("tokens").max().over("run_id"))
    settings = {run["run_id"]: run["settings"] for run in study.plan["runs"]}
    lost = study.table().filter(pl.col("status") != "finished")["run_id"].unique().to_list()
    record = study.records[0]
    machine = record.environment
    print("# The recipe's learning rates, made by these commands:")
    print("#   isoloss run learning-rates --scale evening --out DIR")
    print("#   python benchmarks/learning_rates.py DIR > src/isoloss/training/recipe.toml")
    print(f"# isoloss {__version__}, torch {machine.torch}, {machine.device_name}, {machine.dtype}")
    print(
        f"# corpus {record.data.corpus} {record.data.corpus_hash[:12]}, D = {table['tokens'].max()} tokens,"
    )
    print(
        f"# batch {table['batch_tokens'][0]} tokens, {len(study.records)} runs, {len(lost)} without a result."
    )
    print("# variant: LSTM depth, looped recurrence, else 1. edge: the best rate was the grid's end.")
    print("# losses: nats per token at each rate of the grid.")
    for row in rows(table, settings):
        pairs = ", ".join(f"{rate:g}: {loss:.3f}" for rate, loss in row["grid"])
        print(f"\n[[rates]]  # {pairs}")
        for key in ("family", "variant", "params", "learning_rate", "found"):
            value = row[key]
            print(f"{key} = " + (f'"{value}"' if isinstance(value, str) else f"{value}"))


def rows(table: pl.DataFrame, settings: dict) -> list[dict]:
    table = table.with_columns(
        variant=pl.col("run_id").map_elements(
            lambda run: variant_of(settings[run]["family"], settings[run]["shape"]), return_dtype=pl.Int64
        )
    )
    out = []
    for (family, variant, params), group in table.group_by(
        "family", "variant", "params", maintain_order=True
    ):
        means = group.group_by("learning_rate").agg(pl.col("loss").mean()).sort("learning_rate")
        rates, losses = means["learning_rate"].to_list(), means["loss"].to_list()
        rate, how = best_rate(rates, losses)
        out.append(
            {
                "family": family,
                "variant": variant,
                "params": params,
                "learning_rate": float(f"{rate:.3g}"),
                "found": how,
                "grid": list(zip(rates, losses, strict=True)),
            }
        )
    return out


if __name__ == "__main__":
    main(sys.argv[1])
