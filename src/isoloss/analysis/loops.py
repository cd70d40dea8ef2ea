"""What loops buy: losses with more loops against one, the law over all of them, and the entropy bonus apart.

The objective of a gated looped model is  total = expected cross-entropy - beta H,  H <= log T_m.  Part of
any fall of the total with T_m is that bonus, so total, expected and last-exit losses stand apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis import loop_worth
from isoloss.analysis.loop_laws import (
    COLUMNS,
    FITTED,
    PARTS,
    Judged,
    errors_by_kind,
    fit_law,
    judge,
    late,
    trace,
)
from isoloss.analysis.loop_worth import LoopWorth
from isoloss.analysis.points import main_tokens, noise_by_size, of_families, of_one_exit, points_of
from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, FitStatus
from isoloss.noise import Key
from isoloss.records import StudyData
from isoloss.stats import Interval, Noise, contrast


@dataclass(frozen=True)
class LoopGain:
    """``loops`` minus one loop at equal N, the mean over the sizes ``params``: differences in nats.

    ``bonus`` is beta H, ``cap`` beta log T_m. N differs by the gate's d_model + 1 only.
    """

    params: tuple[int, ...]
    loops: int
    last_exit: Interval
    expected: Interval
    total: Interval
    bonus: float
    cap: float


@dataclass(frozen=True)
class LoopedStudy:
    """``curves``: loss on held-out text along the trunk of each panel, seeds together.

    ``fits``: one law per part of the loss. ``judged``: that of total loss, where it was fitted and at what
    was left out. ``gains``: at each size; ``mean_gains``: over all sizes, by number of loops. ``beta``: the
    weight of the entropy bonus. ``worth``: of a loop, at equal depth.
    """

    tokens: int
    curves: pl.DataFrame
    points: pl.DataFrame
    noise: Mapping[Key, Noise] | Refusal
    beta: float | None
    fits: Mapping[str, Fit | Refusal]
    judged: tuple[Judged, ...]
    gains: tuple[LoopGain, ...]
    mean_gains: tuple[LoopGain, ...]
    worth: LoopWorth | Refusal


def measure(study: StudyData) -> LoopedStudy:
    """Raises Refusal if no looped run has finished."""
    looped = of_families(points_of(study), "looped")
    # Runs of one exit are the design at equal depth, unless the study has no others.
    several = looped.filter(~pl.col("run_id").is_in(of_one_exit(study)))
    grid = looped if several.is_empty() else several
    curves = trace(study.table(), grid)
    points = grid.filter(pl.col("tokens") == main_tokens(grid, "recurrence"))
    return LoopedStudy(
        tokens=int(points["tokens"][0]),
        curves=curves,
        points=points,
        noise=noise_by_size(points),
        beta=entropy_weight(points),
        fits={part: fit_law(late(curves), part) for part in PARTS},
        judged=judge(late(curves)),
        gains=loop_gains(points),
        mean_gains=mean_gains(points),
        worth=attempt(loop_worth.measure, study),
    )


def entropy_weight(points: pl.DataFrame) -> float | None:
    """beta, recovered from the records as (expected - total) / entropy; None without a gated run."""
    gated = points.filter(pl.col("entropy") > 0)
    if gated.is_empty():
        return None
    return float(np.median(((gated["loss_expected"] - gated["loss_total"]) / gated["entropy"]).to_numpy()))


def loop_gains(points: pl.DataFrame) -> tuple[LoopGain, ...]:
    """Of every size and number of loops above one, in order."""
    sizes = [size for _, size in points.group_by("n_layer", "d_model", maintain_order=True)]
    gains = [gain for size in sizes for gain in _gains(points, [size])]
    return tuple(sorted(gains, key=lambda gain: (gain.params, gain.loops)))


def mean_gains(points: pl.DataFrame) -> tuple[LoopGain, ...]:
    """Of every number of loops above one, the mean over the sizes that have it and one loop."""
    return tuple(_gains(points, [size for _, size in points.group_by("n_layer", "d_model")]))


def _gains(points: pl.DataFrame, sizes: Sequence[pl.DataFrame]) -> list[LoopGain]:
    """Each number of loops against one; ``points`` tell the seed noise."""
    beta = entropy_weight(points) or 0.0
    noises = {part: noise_by_size(points, column) for part, column in COLUMNS.items()}
    gains: list[LoopGain] = []
    for loops in sorted({loops for size in sizes for loops in size["recurrence"].to_list()} - {1}):
        pairs = [[size.filter(pl.col("recurrence") == t) for t in (1, loops)] for size in sizes]
        pairs = [pair for pair in pairs if not any(side.is_empty() for side in pair)]
        if not pairs:
            continue
        changes = {part: _change(pairs, column, noises[part]) for part, column in COLUMNS.items()}
        many = pl.concat([pair[1] for pair in pairs])
        bonus = float((many["loss_expected"] - many["loss_total"]).to_numpy().mean())
        params = tuple(sorted(int(one["params"][0]) for one, _ in pairs))
        gains.append(LoopGain(params, loops, bonus=bonus, cap=beta * log(loops), **changes))
    return gains


def _change(
    pairs: Sequence[Sequence[pl.DataFrame]], column: str, noise: Mapping[Key, Noise] | Refusal
) -> Interval:
    """Second minus first side of each pair, the mean over pairs."""
    parts = [
        (sign / len(pairs), float(side[column].to_numpy().mean()), side.height)
        for pair in pairs
        for sign, side in zip((-1.0, 1.0), pair, strict=True)
    ]
    if isinstance(noise, Refusal):
        return contrast(parts, noise)
    return contrast(
        parts, [noise[side.select("family", "curve", "params").row(0)] for pair in pairs for side in pair]
    )


def loops_verdict(data: LoopedStudy) -> str:
    """Last exit with most loops against one loop at equal N, the mean over sizes."""
    if not data.mean_gains:
        return "no size was trained both with one loop and with more, so what loops buy is not measured"
    most = data.mean_gains[-1]
    if isinstance(data.noise, Refusal):
        return f"no verdict on {most.loops} loops against one: {data.noise.what}"
    better = {-1: "better than", 1: "worse than", 0: "neither better nor worse than"}[
        most.last_exit.sign or 0
    ]
    sizes = text.plural(len(most.params), "size")
    return f"{most.loops} loops predict {better} one: {text.difference(most.last_exit)}, the mean of {sizes}"


def fewer_loops_words(data: LoopedStudy) -> str:
    """The changes with fewer loops than the most; empty where there are none."""
    changes = [(gain.loops, text.difference(gain.last_exit)) for gain in data.mean_gains[:-1]]
    return ". ".join(f"Against one loop, {loops} loops change the last exit by {by}" for loops, by in changes)


def fit_words(data: LoopedStudy) -> str:
    """How well the one law does where it was fitted and on the worst of what was left out; or why none."""
    law = data.fits["total"]
    if isinstance(law, Refusal):
        return f"one law over all panels is refused: {law.what}"
    errors = errors_by_kind(data.judged)
    unseen = [(error, kind) for kind, error in errors.items() if kind != FITTED]
    words = f"one formula misses total loss by {text.percent(errors[FITTED])} on average where it was fitted"
    if unseen:
        error, kind = max(unseen)
        words += f", by {'at most ' if len(unseen) > 1 else ''}{text.percent(error)} with {kind}"
    return f"{words}; its constants stay open" if law.status is FitStatus.CURVE_ONLY else words


def gains_table(data: LoopedStudy) -> pl.DataFrame:
    """Loops minus one loop: differences with intervals beside the bonus and its cap; params null: mean."""
    rows = []
    means = [gain for gain in data.mean_gains if len(gain.params) > 1]
    for gain in (*data.gains, *means):
        params = gain.params[0] if len(gain.params) == 1 else None
        changes = {"last exit": gain.last_exit, "expected": gain.expected, "total": gain.total}
        for name, change in changes.items():
            rows.append((params, gain.loops, name, change.value, *change.ends, gain.bonus, gain.cap))
    names = ("params", "loops", "loss", "change", "low", "high", "entropy_bonus", "bonus_at_most")
    kinds = dict(zip(names, (pl.Int64, pl.Int64, pl.String, *[pl.Float64] * 5), strict=True))
    return pl.DataFrame(rows, schema=kinds, orient="row")
