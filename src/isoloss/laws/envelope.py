"""The lower envelope of training curves: where one size takes over from the next, and the law through that.

At the compute C where the curves of sizes N1 < N2 cross, a size between them would do better than both: N* is
their geometric mean, to second order in log(N2/N1). Each handover is one optimum; checkpoints of one run say
nothing new about it. The smallest size's stretch down to C = 0 and the largest's for ever, which bend the law
at its ends, give no handover, and one that comes because a curve ends or begins is left out.
Sources: Hoffmann et al. 2022 (arXiv 2203.15556), approach 1, for the running minimum; the Gemstones
(arXiv 2502.06857) for the convex hull.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import InputError, Refusal
from isoloss.laws.forms import Array
from isoloss.laws.frontier import LEAST, Frontier, Third, TokenRule, frontier, sweep, thirds
from isoloss.stats import check_level

GRID = 1500  # values of C for the running minimum, as in Hoffmann et al.
REACH = math.log(1.25)  # runs without a curve are neighbours in compute within this factor
FAILED_SHARE = 1 / 3


class Choice(Enum):
    RUNNING_MINIMUM = "running-minimum"
    HULL = "hull"


class Cut(Enum):
    ENDED = "left out: the smaller size's curve ends there instead of being overtaken"
    BEGAN = "left out: the larger size's curve begins there already ahead"
    NO_SMALLER = "left out: nothing smaller was trained with that compute, so a smaller size may be better"
    NO_LARGER = "left out: nothing larger was trained with that compute, so a larger size may be better"


@dataclass(frozen=True)
class Handover:
    """Where size ``below`` gives way to size ``above``: at ``flops`` the optimum is ``params``.

    ``cut`` says why it is left out of the law, None if it counts.
    """

    flops: float
    params: float
    tokens: float
    below: float
    above: float
    cut: Cut | None


@dataclass(frozen=True)
class Envelope:
    """N* = G C^a and D* = H C^b through the handovers that count.

    ``params_interval`` of the exponent a holds percentiles of a bootstrap over runs; it is None, with the
    reason in ``warnings``, where over a third of the resamples gave no slope. The t intervals inside
    ``params`` and ``tokens`` take handovers as independent, although neighbours share a run.
    """

    choice: Choice
    handovers: tuple[Handover, ...]
    params: Frontier
    tokens: Frontier
    params_interval: tuple[float, float] | None
    thirds: tuple[Third, ...]
    level: float
    runs: int
    warnings: tuple[str, ...]

    @property
    def used(self) -> tuple[Handover, ...]:
        return _usable(self.handovers)


@dataclass(frozen=True)
class _Run:
    """One run's points in logarithms, ascending in compute, and its log loss on the shared grid."""

    size: float
    x: Array
    y: Array
    tokens: Array
    on_grid: Array


def envelope(
    flops: ArrayLike,
    params: ArrayLike,
    loss: ArrayLike,
    *,
    tokens: ArrayLike | None = None,
    run: Sequence[object] | None = None,
    choice: str = "running-minimum",
    draws: int = 400,
    level: float = 0.9,
    seed: int = 20240619,
) -> Envelope:
    """Fit N*(C) and D*(C) to the lower envelope of the loss over compute.

    A row is a checkpoint, or a run without a curve: flops in FLOP, params under any one counting rule, loss
    in nats per token, tokens in tokens (D = C/(6 N) where none are given, which the warnings say). ``run``
    names each row's run; without it every row is its own. ``running-minimum`` interpolates the curves in
    log-log and asks at 1500 values of C which is lowest; ``hull`` takes the convex hull of all points in
    log-log and needs no curves.
    Raises InputError for columns that are not positive finite numbers of one length and for runs that change
    size, and Refusal for fewer than 3 handovers that count or under half a decade of compute between them.
    """
    if choice not in [each.value for each in Choice]:
        raise InputError(f"choice is {choice!r}", mend=f"choose {' or '.join(each.value for each in Choice)}")
    if draws < 0:
        raise InputError(f"draws is {draws}", mend="give 0 or more")
    check_level(level)
    table, rule = sweep(flops, params, loss, tokens)
    warnings = [rule.value] if rule is TokenRule.ASSUMED else []
    runs, grid = _runs(table, run)
    if choice == Choice.RUNNING_MINIMUM.value:
        curves = [curve for curve in runs if len(curve.x) > 1]
        if short := len(runs) - len(curves):
            warnings.append(f"{short} runs of one row have no curve and were left out")
        runs = curves
        if not runs:
            raise InputError("no run has two rows", where="run", mend="name each row's run, or choose hull")
    handovers = _handovers(runs, grid, Choice(choice))
    used = _usable(handovers)
    if len(used) < LEAST:
        raise _too_few(handovers, len(used))
    C, N, D = ([getattr(handover, name) for handover in used] for name in ("flops", "params", "tokens"))
    N_law = frontier(C, N, level=level)
    exponents = _bootstrap(runs, grid, Choice(choice), draws, seed)
    params_interval = None
    if draws and (failed := 1 - len(exponents) / draws) > FAILED_SHARE:
        warnings.append(
            f"no bootstrap interval: {100 * failed:.0f}% of the resamples of {len(runs)} runs give no slope"
        )
    elif draws:
        tail = (1 - level) / 2
        params_interval = (float(np.quantile(exponents, tail)), float(np.quantile(exponents, 1 - tail)))
    return Envelope(
        choice=Choice(choice),
        handovers=tuple(handovers),
        params=N_law,
        tokens=frontier(C, D, level=level),
        params_interval=params_interval,
        thirds=thirds(C, N, N_law.sigma),
        level=level,
        runs=len(runs),
        warnings=tuple(warnings),
    )


def _too_few(handovers: Sequence[Handover], used: int) -> Refusal:
    left_out = "; ".join(f"C = {text.power(each.flops)}: {each.cut.value}" for each in handovers if each.cut)
    return Refusal(
        f"{used} usable handovers from one size to the next, and a power law needs {LEAST}"
        + (f" ({left_out})" if left_out else ""),
        mend="add sizes, or train the smaller ones until larger ones overtake them",
    )


def _runs(table: dict[str, Array], run: Sequence[object] | None) -> tuple[list[_Run], Array]:
    """Runs in an order of their own content, so that the order of rows changes nothing, and the grid."""
    count = len(table["flops"])
    labels = list(range(count)) if run is None else list(run)
    if len(labels) != count:
        raise InputError(
            f"has {len(labels)} rows, the table {count}", where="run", mend="name every row's run"
        )
    rows: dict[object, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    logs = {name: np.log(column) for name, column in table.items()}
    grid = np.linspace(logs["flops"].min(), logs["flops"].max(), GRID)
    out = []
    for label, unsorted in rows.items():
        order = np.array(unsorted)[np.argsort(logs["flops"][unsorted])]
        if np.ptp(logs["params"][order]) > 1e-6:
            raise InputError(f"run {label!r} changes its params", where="run", mend="give a run one size")
        x, y = logs["flops"][order], logs["loss"][order]
        if np.any(np.diff(x) <= 0):
            raise InputError(
                f"run {label!r} has two rows at one compute", where="run", mend="keep one row a checkpoint"
            )
        on_grid = np.interp(grid, x, y, left=np.inf, right=np.inf)
        out.append(_Run(float(table["params"][order[0]]), x, y, logs["tokens"][order], on_grid))
    return sorted(out, key=lambda run: (run.size, *run.x[[0, -1]], *run.y[[0, -1]])), grid


def _handovers(runs: Sequence[_Run], grid: Array, choice: Choice) -> list[Handover]:
    """Handovers between neighbouring sizes of the envelope, ascending."""
    if choice is Choice.RUNNING_MINIMUM:
        y_Rx = np.stack([run.on_grid for run in runs])
        winner = np.argmin(y_Rx, axis=0)
        finite = np.isfinite(y_Rx[winner, np.arange(len(grid))])
        x, winner, step = grid[finite], winner[finite], 1.01 * (grid[1] - grid[0])
    else:
        x, y = (np.concatenate([getattr(run, name) for run in runs]) for name in ("x", "y"))
        corners = _lower_hull(x, y)
        owner = np.repeat(np.arange(len(runs)), [len(run.x) for run in runs])
        x, winner, step = x[corners], owner[corners], 0.0
    # Where noise lets two sizes take turns, sorting puts the handover where each has had its share of C.
    winner = np.sort(winner, kind="stable")  # runs ascend in size
    sizes = np.array([runs[i].size for i in winner])
    out = []
    for last in np.flatnonzero(np.diff(sizes)):
        below, above = runs[winner[last]], runs[winner[last + 1]]
        log_C = (x[last] + x[last + 1]) / 2
        log_D = (np.interp(log_C, below.x, below.tokens) + np.interp(log_C, above.x, above.tokens)) / 2
        out.append(
            Handover(
                flops=float(np.exp(log_C)),
                params=math.sqrt(below.size * above.size),
                tokens=float(np.exp(log_D)),
                below=below.size,
                above=above.size,
                cut=_cut(runs, below, above, x[last] + step, x[last + 1] - step),
            )
        )
    return out


def _usable(handovers: Sequence[Handover]) -> tuple[Handover, ...]:
    return tuple(handover for handover in handovers if handover.cut is None)


def _cut(runs: Sequence[_Run], below: _Run, above: _Run, left: float, right: float) -> Cut | None:
    """Why it does not count: ``below`` was last ahead at ``left``, ``above`` first ahead at ``right``."""
    if len(below.x) > 1 and len(above.x) > 1:
        # Another run of the same size may go on where this one ends.
        if max(run.x[-1] for run in runs if run.size == below.size) <= left:
            return Cut.ENDED
        if min(run.x[0] for run in runs if run.size == above.size) >= right:
            return Cut.BEGAN
        return None
    low, high = min(below.x[0], above.x[0]) - REACH, max(below.x[-1], above.x[-1]) + REACH
    nearby = [run.size for run in runs if run.x[0] <= high and run.x[-1] >= low]
    if min(nearby) == below.size:
        return Cut.NO_SMALLER
    return Cut.NO_LARGER if max(nearby) == above.size else None


def _lower_hull(x: Array, y: Array) -> NDArray[np.signedinteger[Any]]:
    """Indices of the corners of the lower left side of the convex hull: x ascends, y falls."""
    try:
        corners = scipy.spatial.ConvexHull(np.column_stack([x, y])).vertices
    except (scipy.spatial.QhullError, ValueError):
        raise Refusal("the points have no convex hull in log-log", mend="add sizes and budgets") from None
    # Corners run counterclockwise, so that from the leftmost, lowest one they go along the lower side.
    corners = np.roll(corners, -int(np.argmin(np.lexsort((y[corners], x[corners])).argsort())))
    return corners[: int(np.argmin(y[corners])) + 1]


def _bootstrap(runs: Sequence[_Run], grid: Array, choice: Choice, draws: int, seed: int) -> list[float]:
    """Exponents a of the resamples of runs that give a law."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(draws):
        drawn = np.unique(rng.integers(len(runs), size=len(runs)))  # a run drawn twice lowers no minimum
        try:
            used = _usable(_handovers([runs[i] for i in drawn], grid, choice))
        except Refusal:
            continue
        if len(used) > 1:  # two give no interval, but a slope
            C, N = np.log([(handover.flops, handover.params) for handover in used]).T
            away = C - C.mean()
            out.append(float(away @ N / (away @ away)))
    return out
