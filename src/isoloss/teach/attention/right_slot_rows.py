"""Reading the tables of the right-slot panel: who learned the task, what moved. No torch."""

from isoloss.stats import mean
from isoloss.teach.result import Tables
from isoloss.teach.shares import Share

ENOUGH = 0.99
LAYERS = (1, 2)
LOOKS = {1: "value to its own key", 2: "query to the right value"}


def accuracies(tables: Tables, state: str, forced: str) -> dict[int, Share]:
    """By seed."""
    return {
        int(row["seed"]): Share(round(float(row["value"]) * int(row["n"])), int(row["n"]))
        for row in tables["ablation"]
        if row["state"] == state and row["forced"] == forced
    }


def solved(tables: Tables) -> list[int]:
    """Seeds that answer nearly all strings after training."""
    found = accuracies(tables, "trained", "none")
    return [seed for seed, share in found.items() if share.value >= ENOUGH]


def kept(tables: Tables) -> list[int]:
    """The seeds whose mechanism is told: those that learned the task, or all if none did."""
    return solved(tables) or list(accuracies(tables, "trained", "none"))


def masses(tables: Tables, layer: int, when: str) -> dict[int, float]:
    """Weight on the right slot by seed, at the ``first`` or ``last`` look."""
    rows = [row for row in tables["mass"] if row["layer"] == layer]
    updates = [int(row["update"]) for row in rows]
    update = min(updates) if when == "first" else max(updates)
    return {int(row["seed"]): float(row["value"]) for row in rows if row["update"] == update}


def change_of_mass(tables: Tables, layer: int) -> int | None:
    """Sign of after minus before over the kept seeds, paired; 0 if not clear, None with one seed."""
    before, after = masses(tables, layer, "first"), masses(tables, layer, "last")
    return mean([after[seed] - before[seed] for seed in kept(tables)]).sign


def baseline(tables: Tables, name: str) -> float:
    return next(float(row["value"]) for row in tables["baselines"] if row["baseline"] == name)


def uniform_mass(layer: int, pairs: int) -> float:
    """Weight on the right slot of a head that looks at all past places alike: the mean of 1 / (place + 1)."""
    seen = [2 * i + 2 if layer == 1 else 2 * pairs + i + 1 for i in range(pairs)]
    return sum(1 / count for count in seen) / pairs


def token_labels(tables: Tables) -> list[str]:
    return [str(row["token"]) for row in tables["string"]]


def seed_count(tables: Tables) -> int:
    return len({row["seed"] for row in tables["accuracy"]})
