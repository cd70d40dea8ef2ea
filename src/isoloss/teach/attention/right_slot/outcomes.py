"""Reading the tables of the right-slot panel: who learned the task, what moved. No torch."""

import polars as pl

from isoloss.stats import Interval, mean, share
from isoloss.teach.result import Tables, frame
from isoloss.teach.shares import ENOUGH, gap

LAYERS = (1, 2)
LOOKS = {1: "value to its own key", 2: "query to the right value"}


def accuracies(tables: Tables, state: str, forced: str) -> dict[int, Interval]:
    """By seed."""
    rows = frame(tables, "ablation", state=state, forced=forced)
    return {
        seed: share(round(value * n), n) for seed, value, n in rows.select("seed", "value", "n").iter_rows()
    }


def solvers(tables: Tables) -> list[int]:
    """Seeds that answer nearly all strings after training."""
    final = accuracies(tables, "trained", "none")
    return [seed for seed, accuracy in final.items() if accuracy.value >= ENOUGH]


def subjects(tables: Tables) -> list[int]:
    """The seeds whose mechanism is told: those that learned the task, or all if none did."""
    return solvers(tables) or list(accuracies(tables, "trained", "none"))


def shares(tables: Tables, forced: str) -> list[Interval]:
    """Of the subjects after training."""
    by_seed = accuracies(tables, "trained", forced)
    return [by_seed[seed] for seed in subjects(tables)]


def effect_of(tables: Tables, layer: int) -> int | None:
    """Sign of what flattening a layer does to accuracy; 0 if not clear, None with one seed."""
    change = gap(shares(tables, f"layer {layer}"), shares(tables, "none"))
    return None if change is None else change.sign


def masses(tables: Tables, layer: int, when: str) -> dict[int, float]:
    """Weight on the right slot by seed, at the ``first`` or ``last`` look."""
    rows = frame(tables, "mass", layer=layer)
    look = pl.col("update").min() if when == "first" else pl.col("update").max()
    return dict(rows.filter(pl.col("update") == look).select("seed", "value").iter_rows())


def change_of_mass(tables: Tables, layer: int) -> int | None:
    """Sign of after minus before over the subjects, paired; 0 if not clear, None with one seed."""
    before, after = masses(tables, layer, "first"), masses(tables, layer, "last")
    return mean([after[seed] - before[seed] for seed in subjects(tables)]).sign


def baselines(tables: Tables) -> dict[str, float]:
    """What is had without binding, by its name in figures."""
    names = {"value set": "value set", "uniform": "guessing"}
    rows = frame(tables, "baselines").select("baseline", "value")
    levels: dict[str, float] = dict(rows.iter_rows())
    return {name: levels[baseline] for baseline, name in names.items()}


def uniform_mass(layer: int, pairs: int) -> float:
    """Weight on the right slot of a head that looks at all past places alike: the mean of 1 / (place + 1)."""
    seen = [2 * i + 2 if layer == 1 else 2 * pairs + i + 1 for i in range(pairs)]
    return sum(1 / count for count in seen) / pairs


def seed_count(tables: Tables) -> int:
    return len({row["seed"] for row in tables["accuracy"]})
