"""IsoFLOP: the size of least loss at each compute budget, and the power law through those sizes.

At one budget C a small model is too small and a large one sees too few tokens; between lies the optimum N*.
Each budget's losses are interpolated over log N, the minimum is read off, and N* = G C^a is fitted through
the minima. Sources: Hoffmann et al. 2022 (arXiv 2203.15556), approach 2, for the parabola; Porian et al. 2024
(arXiv 2406.19146) for Akima interpolation, resampling with seed noise and leaving out minima on an edge.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array
from isoloss.laws.frontier import LEAST, Frontier, Third, TokenRule, frontier, sweep, thirds
from isoloss.laws.minima import FEWEST, METHODS, Method, minima, off_curve, opens_down, scatter, values
from isoloss.plain import json_values
from isoloss.stats import check_level

SAME_BUDGET = 0.10
"""Rows whose FLOPs follow each other within 10% share a budget: whole steps, head and attention move C by a
few per cent, while the budgets of a sweep differ by a factor of 1.6 or more (1.5e19, 2.4e19)."""
SAME_SIZE = 0.01
"""Sizes within 1% are one size: an interpolant through both would bend over their noise."""
NOISE_SPAN, NOISE_RISE = 4.0, 2.0
"""Of noise alone, 4 to 16 losses span 2.1 to 3.5 standard deviations."""
OFF_CENTRE = 3.0
RESOLVED = 1 / 3
"""Of the spacing of sizes in log N: Porian's least standard deviation of an interpolated minimum."""

Noise = float | Callable[[Array], ArrayLike]


class Flag(Enum):
    FEW_SIZES = f"discarded: fewer than {FEWEST} sizes do not bracket a minimum"
    EDGE = "discarded: the curve is lowest at the smallest or largest size, so its minimum lies outside"
    OPENS_DOWN = "discarded: the parabola through the losses opens downward"
    WEAK = f"discarded: over all sizes the loss spans less than {NOISE_SPAN:g} times the noise"
    OFTEN_EDGE = "discarded: with noise drawn anew, over half of the minima fall on an edge"
    SHALLOW = f"shallow: towards one edge the loss rises by less than {NOISE_RISE:g} times the noise"
    OFF_CENTRE = f"off centre: the sizes reach over {OFF_CENTRE:g} times further to one side of the minimum"
    DUPLICATES = "sizes repeat: their losses were averaged"

    @property
    def discards(self) -> bool:
        return self not in (Flag.SHALLOW, Flag.OFF_CENTRE, Flag.DUPLICATES)


@dataclass(frozen=True)
class Budget:
    """One compute budget. ``params``, ``tokens`` and ``loss`` are read at the minimum, also a discarded one.

    ``log_se`` is the standard deviation of log N* over noise draws; None without draws, for too few sizes, or
    where over half of the draws fell on an edge. ``sizes``, ``losses`` and ``size_tokens`` are the points,
    ascending in size; ``left_out`` are sizes whose loss lies far off the curve of the others.
    """

    flops: float
    params: float
    tokens: float
    loss: float
    log_se: float | None
    flags: tuple[Flag, ...]
    sizes: tuple[float, ...]
    losses: tuple[float, ...]
    size_tokens: tuple[float, ...]
    left_out: tuple[float, ...] = ()

    @property
    def used(self) -> bool:
        return not any(flag.discards for flag in self.flags)


@dataclass(frozen=True)
class IsoFlop:
    """Optimal sizes by budget and the power laws N* = G C^a and D* = H C^b through those that are used.

    ``params`` and ``tokens`` weigh every budget alike, the weighted ones by 1/variance of log N* (None
    without draws), whose root is not taken below a third of the spacing of the sizes: interpolation resolves
    no more. ``thirds`` are slopes of N* over parts of the compute range; ``noise`` says how noise was known.
    """

    method: Method
    budgets: tuple[Budget, ...]
    params: Frontier
    tokens: Frontier
    params_weighted: Frontier | None
    tokens_weighted: Frontier | None
    thirds: tuple[Third, ...]
    token_rule: TokenRule
    noise: str
    level: float

    @property
    def exponent_sum(self) -> float:
        """a + b: 1 where C is proportional to N D; reported, never imposed."""
        return self.params.exponent + self.tokens.exponent

    @property
    def used(self) -> tuple[Budget, ...]:
        return tuple(budget for budget in self.budgets if budget.used)

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON, enums as their sentences."""
        return json_values(dataclasses.asdict(self) | {"exponent_sum": self.exponent_sum})


def isoflop(
    flops: ArrayLike,
    params: ArrayLike,
    loss: ArrayLike,
    *,
    tokens: ArrayLike | None = None,
    method: str = "akima",
    noise: Noise | None = None,
    draws: int = 1000,
    level: float = 0.9,
    seed: int = 20240619,
) -> IsoFlop:
    """Read the optimum of each budget and fit N*(C) and D*(C); a row a run.

    flops in FLOP, params under any one counting rule, loss in nats per token, tokens in tokens. ``noise`` is
    the standard deviation of a loss between seeds, in nats, as a number or a function of the losses; None
    takes the scatter about local cubics, and ``IsoFlop.noise`` says so.
    Raises InputError for columns that are not positive finite numbers of one length, and Refusal where the
    FLOPs form no budgets, fewer than 3 budgets have a usable minimum, or these span under half a decade.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}", mend=f"choose {' or '.join(METHODS)}")
    if draws < 0 or draws == 1:
        raise InputError(f"draws is {draws}", mend="give 0 or at least 2")
    check_level(level)
    table, rule = sweep(flops, params, loss, tokens)
    groups = _by_budget(table)
    sd_of, words = _noise(noise, groups)
    groups = [_without_bad_size(group, sd_of) for group in groups]
    sd_of, words = _noise(noise, groups)
    if any(np.any(6 * sd_of(group["loss"]) >= group["loss"]) for group in groups):
        raise Refusal(
            "the losses scatter by over a sixth about smooth curves of their sizes",
            mend="check the loss column and its unit, or give the noise of a run",
        )
    rng = np.random.default_rng(seed)
    budgets = tuple(_read(group, Method(method), sd_of, draws, rng) for group in groups)
    used = [budget for budget in budgets if budget.used]
    if len(used) < LEAST:
        raise Refusal(
            f"{len(used)} of {len(budgets)} compute budgets have a usable minimum, and a power law needs "
            f"{LEAST} ({'; '.join(reasons(budgets)) or 'none was discarded'})",
            mend="train smaller and larger models at each budget, or at more budgets",
        )
    C, N, D = (np.array([getattr(budget, name) for budget in used]) for name in ("flops", "params", "tokens"))
    variance = np.array([_variance(budget) for budget in used]) if draws else None
    plain = frontier(C, N, level=level)
    return IsoFlop(
        method=Method(method),
        budgets=budgets,
        params=plain,
        tokens=frontier(C, D, level=level),
        params_weighted=None if variance is None else frontier(C, N, variance=variance, level=level),
        tokens_weighted=None if variance is None else frontier(C, D, variance=variance, level=level),
        thirds=thirds(C, N, plain.sigma),
        token_rule=rule,
        noise=words,
        level=level,
    )


def reasons(budgets: Sequence[Budget]) -> list[str]:
    """Why budgets were discarded, one line a reason: 'C = 1e18: discarded: ...'."""
    return [
        f"C = {text.power(budget.flops)}: {flag.value}"
        for budget in budgets
        for flag in budget.flags
        if flag.discards
    ]


def curve(budget: Budget, method: Method, params: ArrayLike) -> Array:
    """Loss of one budget's interpolant at ``params``; nan outside its sizes."""
    x, y = np.log(budget.sizes), np.log(budget.losses)
    return np.exp(values(x, y, method, np.log(np.asarray(params, dtype=np.float64))))


def _by_budget(table: dict[str, Array]) -> list[dict[str, Any]]:
    """Rows of one budget together: budgets by FLOPs, rows by size, repeats of a size merged."""
    order = np.lexsort((table["tokens"], table["loss"], table["params"], table["flops"]))
    rows = {name: column[order] for name, column in table.items()}
    log_C = np.log(rows["flops"])
    out: list[dict[str, Any]] = []
    gaps = np.flatnonzero(np.diff(log_C) > np.log1p(SAME_BUDGET))
    for budget in np.split(np.arange(len(log_C)), gaps + 1):
        if np.ptp(log_C[budget]) > 2 * np.log1p(SAME_BUDGET):
            low, high = rows["flops"][budget[0]], rows["flops"][budget[-1]]
            raise Refusal(
                f"the FLOPs form no budgets: without a gap of {100 * SAME_BUDGET:g}% they run from "
                f"{text.power(low)} to {text.power(high)}",
                mend="give nominal budgets as flops, or fit a parametric law or an envelope",
            )
        budget = budget[np.argsort(rows["params"][budget], kind="stable")]
        log_N = np.log(rows["params"][budget])
        sizes = np.split(budget, np.flatnonzero(np.diff(log_N) > SAME_SIZE) + 1)
        out.append(
            {
                "flops": np.exp(log_C[budget].mean()),
                "params": np.array([np.exp(np.log(rows["params"][s]).mean()) for s in sizes]),
                "tokens": np.array([np.exp(np.log(rows["tokens"][s]).mean()) for s in sizes]),
                "loss": np.array([rows["loss"][s].mean() for s in sizes]),
                "repeats": len(budget) > len(sizes),
            }
        )
    return out


def _without_bad_size(group: dict[str, Any], sd_of: Callable[[Array], Array]) -> dict[str, Any]:
    """The budget without the one size whose loss belongs to no curve through the others."""
    share = float(np.median(sd_of(group["loss"]) / group["loss"]))
    bad = off_curve(np.log(group["params"]), np.log(group["loss"]), share)
    if bad is None:
        return group
    kept = {name: np.delete(group[name], bad) for name in ("params", "tokens", "loss")}
    return group | kept | {"left_out": (float(group["params"][bad]),)}


def _noise(noise: Noise | None, groups: list[dict[str, Any]]) -> tuple[Callable[[Array], Array], str]:
    """The noise's standard deviation as a function of the losses, and how it is known, in words."""
    if noise is None:
        share, contrasts = scatter((np.log(group["params"]), np.log(group["loss"])) for group in groups)
        words = (
            f"estimated: {100 * share:.2g}% of the loss, from {contrasts} contrasts of neighbouring sizes "
            "about local cubics; bends count as noise"
        )
        return lambda losses: share * losses, words
    if callable(noise):
        return lambda losses: _noise_sd(noise(losses), losses), "given as a function of the loss"
    return lambda losses: _noise_sd(noise, losses), f"given: {noise:g} nats"


def _noise_sd(noise: ArrayLike, losses: Array) -> Array:
    try:
        sd = np.broadcast_to(np.asarray(noise, dtype=np.float64), losses.shape)
    except (TypeError, ValueError) as error:
        raise InputError(f"is not one number a loss ({error})", where="noise") from None
    # Six standard deviations stay below the loss, so that a drawn loss keeps a logarithm.
    if not np.all(np.isfinite(sd) & (sd >= 0) & (6 * sd < losses)):
        raise InputError(
            "is negative, not finite, or over a sixth of the loss",
            where="noise",
            mend="give the standard deviation between seeds in nats",
        )
    return sd


def _read(
    group: dict[str, Any],
    method: Method,
    sd_of: Callable[[Array], Array],
    draws: int,
    rng: np.random.Generator,
) -> Budget:
    x, loss = np.log(group["params"]), group["loss"]
    flags = [Flag.DUPLICATES] if group["repeats"] else []
    log_n, least, log_se = float(x[np.argmin(loss)]), float(np.min(loss)), None
    if len(x) < FEWEST:
        flags.append(Flag.FEW_SIZES)
    else:
        (log_n,), (log_least,), (inside,) = (m.tolist() for m in minima(x, np.log(loss)[:, None], method))
        least, sd = float(np.exp(log_least)), sd_of(loss)
        if method is Method.PARABOLA and opens_down(x, np.log(loss)):
            flags.append(Flag.OPENS_DOWN)
        else:
            flags += _shape_flags(x, loss, sd, log_n, least) if inside else [Flag.EDGE]
        if draws:
            noisy = np.log(loss[:, None] + sd[:, None] * rng.standard_normal((len(x), draws)))
            log_n_S, _, inside_S = minima(x, noisy, method)
            if np.mean(inside_S) >= 0.5:  # Porian's rule
                log_se = float(np.std(log_n_S[inside_S]) / np.mean(inside_S))
            elif not any(flag.discards for flag in flags):
                flags.append(Flag.OFTEN_EDGE)
    # C/(N D) is constant where C = k N D, so that D* is then exactly C/(k N*).
    per_token = np.interp(log_n, x, np.log(group["flops"] / (group["params"] * group["tokens"])))
    return Budget(
        flops=float(group["flops"]),
        params=float(np.exp(log_n)),
        tokens=float(group["flops"] / np.exp(log_n + per_token)),
        loss=least,
        log_se=log_se,
        flags=tuple(flags),
        sizes=tuple(group["params"].tolist()),
        losses=tuple(loss.tolist()),
        size_tokens=tuple(group["tokens"].tolist()),
        left_out=group.get("left_out", ()),
    )


def _shape_flags(x: Array, loss: Array, sd: Array, log_n: float, least: float) -> list[Flag]:
    """What is wrong with a curve whose minimum lies inside."""
    flags = []
    if np.ptp(loss) < NOISE_SPAN * np.min(sd):
        flags.append(Flag.WEAK)
    elif np.any(loss[[0, -1]] - least < NOISE_RISE * sd[[0, -1]]):
        flags.append(Flag.SHALLOW)
    left, right = log_n - x[0], x[-1] - log_n
    if max(left, right) > OFF_CENTRE * min(left, right):
        flags.append(Flag.OFF_CENTRE)
    return flags


def _variance(budget: Budget) -> float:
    spacing = np.log(budget.sizes[-1] / budget.sizes[0]) / (len(budget.sizes) - 1)
    return max(budget.log_se or 0.0, RESOLVED * spacing) ** 2
