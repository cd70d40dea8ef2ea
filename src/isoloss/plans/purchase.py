"""Spend a budget on candidate runs: greedy growth and exchange over a covariance that each run shrinks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from isoloss.laws import Array

_MOST_SWEEPS = 10
_RANDOM_STARTS = 4


@dataclass(frozen=True)
class Market:
    """C candidate runs: ``cov_TT`` the covariance of their log losses and, in the last row and column, of the
    target's; ``noise_C`` the variance of one run's own noise; ``cost_C`` its FLOPs."""

    cov_TT: Array
    noise_C: Array
    cost_C: Array

    def affordable(self, flops: float) -> np.ndarray:
        return self.cost_C <= flops * (1 + 1e-9)

    def share_left(self, basket: Sequence[int]) -> float:
        """The target's variance after these runs, over that now."""
        return float(bought(self, v_gain, basket)[0].variance_T[-1] / self.cov_TT[-1, -1])


@dataclass(frozen=True)
class Known:
    """What is left of the covariance once J runs are in: ``cov - columns' columns``, never written out.

    ``variance_T`` is its diagonal and ``target_T`` its row of the target: all that the gains look at.
    """

    market: Market
    columns_JT: Array
    variance_T: Array
    target_T: Array

    def plus(self, c: int) -> "Known":
        column_T = self.market.cov_TT[c] - self.columns_JT[:, c] @ self.columns_JT
        column_T = column_T / np.sqrt(self.variance_T[c] + self.market.noise_C[c])
        return Known(
            self.market,
            np.vstack([self.columns_JT, column_T]),
            np.maximum(self.variance_T - column_T**2, 0.0),
            self.target_T - column_T[-1] * column_T,
        )


Gain = Callable[[Known], Array]


def v_gain(known: Known) -> Array:
    """By how much each candidate lowers the variance of the target."""
    return known.target_T[:-1] ** 2 / (known.variance_T[:-1] + known.market.noise_C)


def d_gain(known: Known) -> Array:
    """By how much each candidate lowers the log determinant of the covariance of the parameters."""
    return np.log1p(known.variance_T[:-1] / known.market.noise_C)


def bought(market: Market, gain: Gain, basket: Sequence[int]) -> tuple[Known, float]:
    """What is left once the basket's runs are in, and the sum of their gains, the same in any order."""
    size = len(market.cov_TT)
    known = Known(market, np.empty((0, size)), np.diag(market.cov_TT), market.cov_TT[-1])
    total = 0.0
    for c in basket:
        total += float(gain(known)[c])
        known = known.plus(c)
    return known, total


def best_basket(market: Market, gain: Gain, budget: float, at_most: int) -> tuple[list[int], list[float]]:
    """The basket of largest total gain found, and the share of the target's variance left after each run.

    Its runs are in the order in which they lower that variance most.
    """
    # Grown by gain, by gain per FLOP and between the two; and from a few at random, which get out of ruts.
    starts = [_grown(market, gain, [], budget, at_most, power)[0] for power in (0.0, 0.5, 1.0)]
    starts += random_baskets(market, budget, at_most, _RANDOM_STARTS, np.random.default_rng(0))
    found = [_exchanged(market, gain, basket, budget, at_most) for basket in starts]
    rest, _ = max(found, key=lambda one: one[1])
    ordered: list[int] = []
    left: list[float] = []
    while rest:
        worth_C = v_gain(bought(market, v_gain, ordered)[0])
        ordered.append(max(rest, key=lambda c: worth_C[c]))
        rest.remove(ordered[-1])
        left.append(market.share_left(ordered))
    return ordered, left


def random_baskets(
    market: Market, budget: float, at_most: int, count: int, rng: np.random.Generator
) -> list[list[int]]:
    """Baskets of candidates drawn one by one among those that the rest of the budget still buys."""
    baskets = []
    for _ in range(count):
        basket: list[int] = []
        while len(basket) < at_most:
            choice = np.flatnonzero(market.affordable(budget - _cost(market, basket)))
            if not len(choice):
                break
            basket.append(int(rng.choice(choice)))
        baskets.append(basket)
    return baskets


def _cost(market: Market, basket: Sequence[int]) -> float:
    return float(sum(market.cost_C[c] for c in basket))


def _grown(
    market: Market, gain: Gain, basket: list[int], budget: float, at_most: int, power: float
) -> tuple[list[int], float]:
    """Add the affordable candidate of largest gain / cost^power while the budget and ``at_most`` allow.

    The basket and its total gain.
    """
    known, total = bought(market, gain, basket)
    basket, cost = list(basket), _cost(market, basket)
    while len(basket) < at_most:
        affordable = market.affordable(budget - cost)
        if not affordable.any():
            break
        gain_C = gain(known)
        worth_C = gain_C / market.cost_C**power if power else gain_C
        c = int(np.argmax(np.where(affordable, worth_C, -np.inf)))
        basket.append(c)
        total, cost, known = total + float(gain_C[c]), cost + market.cost_C[c], known.plus(c)
    return basket, total


def _exchanged(
    market: Market, gain: Gain, basket: list[int], budget: float, at_most: int
) -> tuple[list[int], float]:
    """Take each run out in turn and spend what it frees anew, as long as that gains."""
    total = bought(market, gain, basket)[1]
    for _ in range(_MOST_SWEEPS):
        improved = False
        for place in range(len(basket)):
            rest = basket[:place] + basket[place + 1 :]
            trial, trial_total = _grown(market, gain, rest, budget, at_most, 0.0)
            if trial_total > total * (1 + 1e-9):
                basket, total, improved = trial, trial_total, True
        if not improved:
            break
    return basket, total
