"""What the loss curves of several seeds say: levels with t intervals, the best point, the turn. No torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from isoloss.stats import Interval, mean, share
from isoloss.teach.result import Row, Tables

SIDES = ("Transformer", "LSTM")
TRAINING, HELD_OUT = "training", "held-out"
NEAR = 0.05
"""Nats a token: closer than this to the floor counts as reached, a rise of less as none."""


@dataclass(frozen=True)
class Curves:
    """Losses of one side at one rate: ``training[seed][update]`` and ``held_out[seed][update]``."""

    training: dict[int, dict[int, float]]
    held_out: dict[int, dict[int, float]]

    @property
    def seeds(self) -> list[int]:
        return sorted(self.training)

    @property
    def updates(self) -> list[int]:
        """Those at which every seed was looked at; while a run goes on, later seeds are behind."""
        return sorted(set.intersection(*(set(self.held_out[seed]) for seed in self.seeds)))

    def level_at(self, which: str, update: int) -> Interval:
        by_seed = self.training if which == TRAINING else self.held_out
        return mean([by_seed[seed][update] for seed in self.seeds])

    @property
    def best(self) -> dict[int, tuple[float, int]]:
        """Of each seed, the lowest held-out loss and the update at which it was."""
        return {seed: min((self.held_out[seed][u], u) for u in self.updates) for seed in self.seeds}

    @property
    def best_losses(self) -> list[float]:
        return [loss for loss, _ in self.best.values()]

    @property
    def turn(self) -> int:
        """The update at which the mean held-out loss is lowest."""
        return min(self.updates, key=lambda update: (self.level_at(HELD_OUT, update).value, update))

    @property
    def rise(self) -> Interval:
        """Held-out loss at the last update minus that at ``turn``, seed by seed."""
        last, turn = self.updates[-1], self.turn
        return mean([self.held_out[seed][last] - self.held_out[seed][turn] for seed in self.seeds])

    @property
    def turns_up(self) -> bool | None:
        """Is the rise more than ``NEAR`` and clear over the seeds? None with one seed: no interval."""
        return self.rise.low > 0 and self.rise.value > NEAR if self.rise.df else None

    def reached(self, floor: float) -> list[int]:
        """First update within ``NEAR`` of the floor, of each seed whose training loss came there."""
        firsts = (
            next((u for u in self.updates if self.training[seed][u] <= floor + NEAR), None)
            for seed in self.seeds
        )
        return [first for first in firsts if first is not None]


def complete(tables: Tables) -> bool:
    """Nothing is claimed of a run that still goes on."""
    return bool(tables.get("losses"))


def at_chosen_rate(tables: Tables, name: str) -> list[Row]:
    """Rows of a table at the rate that is shown; before it is chosen, at the newest of each side."""
    shown = {row["side"]: row["rate"] for row in tables.get("runs", [])}
    shown |= {row["side"]: row["rate"] for row in tables.get("rates", []) if row["chosen"]}
    return [row for row in tables.get(name, []) if row["rate"] == shown.get(row["side"], row["rate"])]


def curves(tables: Tables) -> dict[str, Curves]:
    """Of each side at the rate that is shown; none before it is chosen."""
    return _of_sides(at_chosen_rate(tables, "runs")) if tables.get("rates") else {}


def by_rate(tables: Tables) -> dict[float, dict[str, Curves]]:
    """Of both sides at each rate that both were trained at."""
    rates = sorted({row["rate"] for row in tables["runs"]})
    each = {rate: _of_sides([row for row in tables["runs"] if row["rate"] == rate]) for rate in rates}
    return {rate: sides for rate, sides in each.items() if len(sides) == len(SIDES)}


def _of_sides(runs: Sequence[Row]) -> dict[str, Curves]:
    by_side: dict[str, Curves] = {}
    for side in SIDES:
        losses: dict[str, dict[int, dict[int, float]]] = {TRAINING: {}, HELD_OUT: {}}
        for row in runs:
            if row["side"] == side:
                losses[row["which"]].setdefault(row["seed"], {})[row["update"]] = row["value"]
        if losses[HELD_OUT]:
            by_side[side] = Curves(losses[TRAINING], losses[HELD_OUT])
    return by_side


def rate_rows(tables: Tables) -> list[Row]:
    """What each side came to at each rate.

    Chosen is the one rate at which both together end lowest in training. Held-out sentences have no say, and
    neither side gets a rate of its own.
    """
    sides = by_rate(tables)
    ends = {
        (rate, side): losses.level_at(TRAINING, losses.updates[-1]).value
        for rate, both in sides.items()
        for side, losses in both.items()
    }
    chosen = min(sides, key=lambda rate: sum(ends[rate, side] for side in SIDES))
    return [
        {
            "side": side,
            "rate": rate,
            "training_at_end": ends[rate, side],
            "held_out_at_best": mean(sides[rate][side].best_losses).value,
            "turn": sides[rate][side].turn,
            "chosen": rate == chosen,
        }
        for side in SIDES
        for rate in sides
    ]


def copy_shares(tables: Tables, side: str) -> dict[int, Interval]:
    """Share of samples that are training sentences, over all seeds, by update."""
    hits, n = Counter[int](), Counter[int]()
    for row in at_chosen_rate(tables, "copies"):
        if row["side"] == side:
            hits[row["update"]] += row["hits"]
            n[row["update"]] += row["n"]
    return {update: share(hits[update], n[update]) for update in sorted(n)}


def loss_rows(by_side: Mapping[str, Curves]) -> list[Row]:
    """The curves' means with their intervals."""
    return [
        {"side": side, "which": which, "update": update, **losses.level_at(which, update).row()}
        for side, losses in by_side.items()
        for which in (TRAINING, HELD_OUT)
        for update in losses.updates
    ]


def best_rows(by_side: Mapping[str, Curves]) -> list[Row]:
    """Each side's best point."""
    rows: list[Row] = []
    for side, losses in by_side.items():
        updates = [update for _, update in losses.best.values()]
        ends = {"first_update": min(updates), "last_update": max(updates)}
        best = mean(losses.best_losses).row()
        rows.append({"side": side, **best, "update": median(updates), **ends})
    return rows
