"""What the loss curves of several seeds say: levels with t intervals, the best point, the turn. No torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, stdev

from isoloss.stats import LEVEL, Interval, difference, pooled_noise, t_quantile
from isoloss.teach.result import Row, Tables
from isoloss.teach.shares import Share

SIDES = ("Transformer", "LSTM")
TRAINING, HELD_OUT = "training", "held-out"
NEAR = 0.05
"""Nats a token: closer than this to the floor counts as reached, a rise of less as none."""


@dataclass(frozen=True)
class Level:
    """Mean over ``n`` seeds with a t interval at 95 %; no interval with one seed."""

    value: float
    low: float | None
    high: float | None
    n: int

    def say(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def row(self) -> Row:
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def level(values: Sequence[float]) -> Level:
    mean, n = fmean(values), len(values)
    if n < 2:
        return Level(mean, None, None, n)
    reach = t_quantile(LEVEL, n - 1) * stdev(values) / sqrt(n)
    return Level(mean, mean - reach, mean + reach, n)


@dataclass(frozen=True)
class Curves:
    """Losses of one side at its chosen rate: ``training[seed][update]`` and ``held_out[seed][update]``."""

    training: dict[int, dict[int, float]]
    held_out: dict[int, dict[int, float]]

    @property
    def seeds(self) -> list[int]:
        return sorted(self.training)

    @property
    def updates(self) -> list[int]:
        """Those at which every seed was looked at; while a run goes on, later seeds are behind."""
        return sorted(set.intersection(*(set(self.held_out[seed]) for seed in self.seeds)))

    def at(self, which: str, update: int) -> Level:
        by_seed = self.training if which == TRAINING else self.held_out
        return level([by_seed[seed][update] for seed in self.seeds])

    @property
    def best(self) -> dict[int, tuple[float, int]]:
        """Of each seed, the lowest held-out loss and the update at which it was."""
        return {seed: min((self.held_out[seed][u], u) for u in self.updates) for seed in self.seeds}

    @property
    def turn(self) -> int:
        """The update at which the mean held-out loss is lowest."""
        return min(self.updates, key=lambda update: (self.at(HELD_OUT, update).value, update))

    @property
    def rise(self) -> Level:
        """Held-out loss at the last update minus that at ``turn``, seed by seed."""
        last, turn = self.updates[-1], self.turn
        return level([self.held_out[seed][last] - self.held_out[seed][turn] for seed in self.seeds])

    @property
    def turns_up(self) -> bool | None:
        """Is the rise more than ``NEAR`` and clear over the seeds? None with one seed: no interval."""
        rise = self.rise
        return None if rise.low is None else rise.low > 0 and rise.value > NEAR

    def reached(self, floor: float) -> list[int]:
        """First update within ``NEAR`` of the floor, of each seed whose training loss came there."""
        firsts = (
            next((u for u in self.updates if self.training[seed][u] <= floor + NEAR), None)
            for seed in self.seeds
        )
        return [first for first in firsts if first is not None]


def finished(tables: Tables) -> bool:
    """Nothing is claimed of a run that still goes on."""
    return bool(tables.get("losses"))


def kept(tables: Tables, name: str) -> list[Row]:
    """Rows of a table at each side's chosen rate; all of a side's rows until its rate is chosen."""
    chosen = {row["side"]: row["rate"] for row in tables.get("rates", []) if row["chosen"]}
    return [row for row in tables.get(name, []) if row["rate"] == chosen.get(row["side"], row["rate"])]


def curves(tables: Tables, side: str) -> Curves | None:
    """None until the side's rate is chosen."""
    if not any(row["side"] == side for row in tables.get("rates", [])):
        return None
    rows = [row for row in kept(tables, "runs") if row["side"] == side]
    found: dict[str, dict[int, dict[int, float]]] = {TRAINING: {}, HELD_OUT: {}}
    for row in rows:
        found[row["which"]].setdefault(row["seed"], {})[row["update"]] = row["value"]
    return Curves(found[TRAINING], found[HELD_OUT])


def best_difference(a: Curves, b: Curves) -> Interval | None:
    """Lowest held-out losses of a minus those of b, a value a seed; None with one seed."""
    lows = [[loss for loss, _ in side.best.values()] for side in (a, b)]
    if min(map(len, lows)) < 2:
        return None
    return difference(*lows, pooled_noise(lows), level=LEVEL)


def copied(tables: Tables, side: str) -> dict[int, Share]:
    """Share of samples that are training sentences, over all seeds, by update."""
    rows = [row for row in kept(tables, "copies") if row["side"] == side]
    by_update: dict[int, list[Row]] = {}
    for row in rows:
        by_update.setdefault(row["update"], []).append(row)
    return {
        update: Share(sum(row["hits"] for row in found), sum(row["n"] for row in found))
        for update, found in sorted(by_update.items())
    }


def loss_rows(found: Iterable[tuple[str, Curves]]) -> list[Row]:
    """The curves' means with their intervals, and each side's best point."""
    return [
        {"side": side, "which": which, "update": update, **own.at(which, update).row()}
        for side, own in found
        for which in (TRAINING, HELD_OUT)
        for update in own.updates
    ]


def best_rows(found: Iterable[tuple[str, Curves]]) -> list[Row]:
    return [
        {
            "side": side,
            **level([loss for loss, _ in own.best.values()]).row(),
            "update": median(update for _, update in own.best.values()),
            "first_update": min(update for _, update in own.best.values()),
            "last_update": max(update for _, update in own.best.values()),
        }
        for side, own in found
    ]
