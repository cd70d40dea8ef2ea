"""Choose runs from a candidate set for a budget: greedy growth and exchange over a covariance.

The covariance is that of the log losses of all candidates and of the target; each run taken shrinks it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from isoloss.laws import Array

_MOST_SWEEPS = 10
_RANDOM_STARTS = 4


@dataclass(frozen=True)
class CandidateSet:
    """C candidate runs: ``cov_TT`` the covariance of their log losses and, in the last row and column, of the
    target's; ``noise_C`` the variance of one run's own noise; ``cost_C`` its FLOPs."""

    cov_TT: Array
    noise_C: Array
    cost_C: Array

    def affordable(self, flops: float) -> np.ndarray:
        return self.cost_C <= flops * (1 + 1e-9)

    def share_left(self, selection: Sequence[int]) -> float:
        """The target's variance after these runs, over that now."""
        return float(after_runs(self, v_gain, selection)[0].variance_T[-1] / self.cov_TT[-1, -1])


@dataclass(frozen=True)
class Posterior:
    """What is left of the covariance once J runs are in: ``cov - columns' columns``, never written out.

    ``variance_T`` is its diagonal and ``target_T`` its row of the target: all that the gains look at.
    """

    candidates: CandidateSet
    columns_JT: Array
    variance_T: Array
    target_T: Array

    def with_run(self, c: int) -> "Posterior":
        column_T = self.candidates.cov_TT[c] - self.columns_JT[:, c] @ self.columns_JT
        column_T = column_T / np.sqrt(self.variance_T[c] + self.candidates.noise_C[c])
        return Posterior(
            self.candidates,
            np.vstack([self.columns_JT, column_T]),
            np.maximum(self.variance_T - column_T**2, 0.0),
            self.target_T - column_T[-1] * column_T,
        )


Gain = Callable[[Posterior], Array]


def v_gain(posterior: Posterior) -> Array:
    """By how much each candidate lowers the variance of the target."""
    return posterior.target_T[:-1] ** 2 / (posterior.variance_T[:-1] + posterior.candidates.noise_C)


def d_gain(posterior: Posterior) -> Array:
    """By how much each candidate lowers the log determinant of the covariance of the parameters."""
    return np.log1p(posterior.variance_T[:-1] / posterior.candidates.noise_C)


def after_runs(candidates: CandidateSet, gain: Gain, selection: Sequence[int]) -> tuple[Posterior, float]:
    """What is left once the chosen runs are in, and the sum of their gains, the same in any order."""
    size = len(candidates.cov_TT)
    posterior = Posterior(candidates, np.empty((0, size)), np.diag(candidates.cov_TT), candidates.cov_TT[-1])
    total = 0.0
    for c in selection:
        total += float(gain(posterior)[c])
        posterior = posterior.with_run(c)
    return posterior, total


def best_selection(candidates: CandidateSet, gain: Gain, budget: float, at_most: int) -> list[int]:
    """The selection of largest total gain, its runs in the order of what they tell of the target."""
    # Grown by gain, by gain per FLOP and between the two; and from a few at random, which get out of ruts.
    starts = [_grow(candidates, gain, [], budget, at_most, power)[0] for power in (0.0, 0.5, 1.0)]
    starts += random_selections(candidates, budget, at_most, _RANDOM_STARTS, np.random.default_rng(0))
    exchanged = [_exchange(candidates, gain, selection, budget, at_most) for selection in starts]
    rest, _ = max(exchanged, key=lambda pair: pair[1])
    ordered: list[int] = []
    while rest:
        worth_C = v_gain(after_runs(candidates, v_gain, ordered)[0])
        ordered.append(max(rest, key=lambda c: worth_C[c]))
        rest.remove(ordered[-1])
    return ordered


def random_selections(
    candidates: CandidateSet, budget: float, at_most: int, count: int, rng: np.random.Generator
) -> list[list[int]]:
    """Selections of candidates drawn one by one among those that the rest of the budget still buys."""
    selections: list[list[int]] = []
    for _ in range(count):
        selection: list[int] = []
        while len(selection) < at_most:
            choice = np.flatnonzero(candidates.affordable(budget - _cost(candidates, selection)))
            if not len(choice):
                break
            selection.append(int(rng.choice(choice)))
        selections.append(selection)
    return selections


def _cost(candidates: CandidateSet, selection: Sequence[int]) -> float:
    return float(sum(candidates.cost_C[c] for c in selection))


def _grow(
    candidates: CandidateSet, gain: Gain, selection: list[int], budget: float, at_most: int, power: float
) -> tuple[list[int], float]:
    """Add the affordable candidate of largest gain / cost^power while the budget and ``at_most`` allow.

    The selection and its total gain.
    """
    posterior, total = after_runs(candidates, gain, selection)
    selection, cost = list(selection), _cost(candidates, selection)
    while len(selection) < at_most:
        affordable = candidates.affordable(budget - cost)
        if not affordable.any():
            break
        gain_C = gain(posterior)
        worth_C = gain_C / candidates.cost_C**power if power else gain_C
        c = int(np.argmax(np.where(affordable, worth_C, -np.inf)))
        selection.append(c)
        total, cost, posterior = total + float(gain_C[c]), cost + candidates.cost_C[c], posterior.with_run(c)
    return selection, total


def _exchange(
    candidates: CandidateSet, gain: Gain, selection: list[int], budget: float, at_most: int
) -> tuple[list[int], float]:
    """Take each run out in turn and spend what it frees anew, as long as that gains."""
    total = after_runs(candidates, gain, selection)[1]
    for _ in range(_MOST_SWEEPS):
        improved = False
        for index in range(len(selection)):
            rest = selection[:index] + selection[index + 1 :]
            attempt, attempt_total = _grow(candidates, gain, rest, budget, at_most, 0.0)
            if attempt_total > total * (1 + 1e-9):
                selection, total, improved = attempt, attempt_total, True
        if not improved:
            break
    return selection, total
