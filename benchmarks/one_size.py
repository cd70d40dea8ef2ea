"""Forecasts from one size alone: hidden runs held, and shares of the two laws by likelihood or equal.

    python benchmarks/one_size.py DATA_FOLDER > benchmarks/results/one_size.txt

DATA_FOLDER holds public tables, of which the best run of each compute is taken. Beside them: the losses by
position of the shipped study of context, and simulated runs. The top 15 % and 35 %, then 25 % and 50 %, of
the log range of the size are hidden in turn. Printed are aggregates alone.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
from public_tables import CHOSEN_ON, others, tables

from isoloss import cpu, load
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array
from isoloss.plans.forecast import forecast, origins
from isoloss.records import reference

LEVEL = 0.9
BUDGET = 0.35  # of ln C: runs of one budget
FEWEST = 10
HIDDEN = ((0.15, 0.35), (0.25, 0.5))
NEW = 8


@dataclass(frozen=True)
class OneSize:
    """Losses over one size; of simulated runs the last ``NEW`` are hidden."""

    name: str
    size: Array
    loss: Array


def frontiers(folder: Path) -> Iterator[OneSize]:
    """The best run of each compute of every public table."""
    for of in tables(folder, (*CHOSEN_ON, others)):
        flops = 6 * of.params * of.tokens
        budget = np.round(np.log(flops) / BUDGET)
        best = [min(np.flatnonzero(budget == one), key=lambda i: of.loss[i]) for one in np.unique(budget)]
        if len(best) >= FEWEST:
            yield OneSize("flops", flops[best], of.loss[best])


def positions() -> Iterator[OneSize]:
    """The loss by position of every run of the shipped study of context."""
    last = load(reference.folder("reference/context")).sliding()
    last = last.filter(pl.col("step") == pl.col("step").max().over("run_id"))
    for _, run in last.group_by("run_id", maintain_order=True):
        by = run.group_by("first", "last").agg(pl.col("sum").sum(), pl.col("count").sum()).sort("first")
        middle = np.sqrt((by["first"] * by["last"]).to_numpy().astype(float))
        yield OneSize("position", middle, (by["sum"] / by["count"]).to_numpy())


def simulated(kind: str, seeds: int) -> Iterator[OneSize]:
    """12 to 60 runs over two decades of N, noise 0.2 to 5 %, and new ones to ten times the largest."""
    for runs, noise, seed in product((12, 25, 60), (0.002, 0.01, 0.05), range(seeds)):
        rng = np.random.default_rng([seed, runs, round(1e4 * noise)])
        N = 10 ** np.concatenate([rng.uniform(7, 9.3, runs), rng.uniform(9.3, 10.3, NEW)])
        floor, falling = rng.uniform(0.8, 2.2), (N / 1e8) ** -rng.uniform(0.15, 0.5)
        curves = {
            "with a floor": floor + falling,
            "without one": 2.5 * falling**0.3,
            "with a wave of 3 %": floor + falling * np.exp(0.03 * np.sin(np.log(N))),
        }
        yield OneSize("params", N, curves[kind] * np.exp(noise * rng.standard_normal(len(N))))


def splits(of: OneSize, shares: tuple[float, ...]) -> Iterator[np.ndarray]:
    log = np.log(of.size)
    for share in shares:
        hide = log > log.max() - share * np.ptp(log)
        if hide.any() and (~hide).sum() >= 8:
            yield hide


def score(of: OneSize, hide: np.ndarray) -> tuple[float, ...] | None:
    """Share held, half-width, rms of log errors, Winkler's score of them; None where refused."""
    prediction = attempt(
        forecast, {of.name: of.size[~hide]}, of.loss[~hide], {of.name: of.size[hide]}, level=LEVEL
    )
    if isinstance(prediction, Refusal):
        return None
    truth, (low, high) = np.log(of.loss[hide]), np.log(prediction.interval.T)
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    rms = max(float(np.sqrt(np.mean((np.log(prediction.loss) - truth) ** 2))), 1e-9)
    width = float(np.mean(np.exp((high - low) / 2) - 1))
    return float(np.mean(miss == 0)), width, rms, float(np.mean(high - low + 2 / (1 - LEVEL) * miss))


def line(name: str, scores: list[list[tuple[float, ...]]]) -> str:
    """Means over tables of means over splits; rms: the latter, their mean geometric."""
    each = np.array([np.mean(one, axis=0) for one in scores if one])
    held, width, _, winkler = each.mean(axis=0)
    rms = np.exp(np.log(each[:, 2]).mean())
    return f"{name:<66}{len(each):>7}{held:>8.1%}{width:>12.2%}{rms:>8.2%}{winkler:>9.4f}"


def print_scores(name: str, one_sized: list[OneSize], hidden: tuple[float, ...] | None) -> None:
    for what, rule in (("by likelihood", origins.shares), ("equal", equal)):
        with mock.patch.object(origins, "shares", rule):
            scores = [
                [one for hide in hidden_rows(of, hidden) if (one := score(of, hide)) is not None]
                for of in one_sized
            ]
        print(line(f"{name}, shares {what}", scores), flush=True)


def hidden_rows(of: OneSize, shares: tuple[float, ...] | None) -> list[np.ndarray]:
    return list(splits(of, shares)) if shares else [np.arange(len(of.size)) >= len(of.size) - NEW]


def equal(laws: tuple) -> Array:
    return np.full(len(laws), 1 / len(laws))


def main(folder: Path) -> None:
    begin = time.process_time()
    print("# isoloss: predictions beyond runs of one size, nominal 90 %, means over tables")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, one thread")
    print(f"\n{'':<66}{'tables':>7}{'held':>8}{'half-width':>12}{'rms':>8}{'Winkler':>9}")
    best, by_position = list(frontiers(folder)), list(positions())
    for hidden in HIDDEN:
        top = " and ".join(f"{share:.0%}" for share in hidden)
        print_scores(f"best run of each compute, top {top}", best, hidden)
        print_scores(f"loss by position, top {top}", by_position, hidden)
    for kind in ("with a floor", "without one", "with a wave of 3 %"):
        print_scores(f"simulated, {kind}", list(simulated(kind, 8)), None)
    print(f"\n{time.process_time() - begin:.0f} CPU-seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
