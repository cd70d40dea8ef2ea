"""What the runs of a fit say against it: outliers, a form that fits better, a drift, hidden runs missed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoloss import text
from isoloss.analysis.fit_rows import amount, brief_formula, exact, on_logs, rows, spread_words
from isoloss.analysis.fit_tables import moved_words
from isoloss.analysis.refits import hidden_runs, part_of
from isoloss.analysis.residual_bins import drift, drifts, means
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array, Fit, descend, problem_of
from isoloss.neighbours import nearest
from isoloss.plans.forecast.forms import better_form
from isoloss.plans.outlying import FEWEST, MOST_OFF, OFF
from isoloss.stats import robust_sd
from isoloss.table import Table, text_table

MOST_OTHER = 0.5
"""Of the runs: more outliers than a group may have are another kind of runs, up to this part."""
BETTER = 2.0
"""A form that scatters so many times less is named."""
_ROUNDS = 5
_DELTA = 1e-3  # of Huber's function, on log losses
_NAMED = 100
_MOST_HIDDEN = 1000
"""Of more rows than this a part, always the same, is asked: the whole would cost seconds."""
_ONE_SIGN = 0.9  # of another kind of runs: they are off in one direction
_WIDE = 0.99


@dataclass(frozen=True)
class FitOutliers:
    """Runs off the law: their rows, how far in standard deviations, and the law's parameters without them.

    ``many``: more than a tenth of the runs, in one direction, and spread among the others.
    """

    rows: tuple[int, ...]
    off: tuple[float, float]
    params: Mapping[str, float]
    many: bool = False


def doubted(fit: Fit) -> Fit:
    """``fit`` with what its own runs say against it among its warnings.

    ``source`` has the rows of outliers and, as ``without_outliers``, the law's parameters without them.
    """
    group, source = outliers(fit), dict(fit.source)
    if group is not None:
        source |= {"outliers": list(group.rows), "without_outliers": dict(group.params)}
    return replace(fit, warnings=(*fit.warnings, *_doubts_by_name(fit, group).values()), source=source)


def _testable(fit: Fit) -> bool:
    """Whether there are runs, enough of them, and something that they could say."""
    few = fit.data is None or len(fit.residuals) < FEWEST
    return not (few or exact(fit) or fit.form.gives != "loss")


def doubts(fit: Fit) -> dict[str, str]:
    """What its own runs say against a fit, by what it is called; empty where they cannot be asked."""
    return _doubts_by_name(fit, outliers(fit))


def _doubts_by_name(fit: Fit, group: FitOutliers | None) -> dict[str, str]:
    if not _testable(fit):
        return {}
    sentences = {
        "outliers": _outlier_words(fit, group),
        "another form that fits better": _form_words(fit),
        "a drift": _drift_words(fit),
        "hidden runs missed": _hidden_words(fit),
        "runs on one side of the best sizes": fit.source.get("one_sided", ""),
    }
    return {name: words for name, words in sentences.items() if words}


def outliers(fit: Fit) -> FitOutliers | None:
    """The runs more than ``OFF`` standard deviations off the law without them; None where there are none.

    Found in rounds: what hides behind the pull of larger ones shows once these are out.
    """
    if not _testable(fit):
        return None
    problem, points = problem_of(fit)
    phi = np.array(fit.theta)[problem.model.free]
    if not fit.signed_floor:  # squares let outliers hide in the scatter that they make
        phi = descend(replace(problem, objective="huber-log", delta=_DELTA), phi[None])[0]
    out_n, off_n = np.zeros(len(points.y_n), dtype=bool), np.zeros(len(points.y_n))
    r_n = off_n
    for _ in range(_ROUNDS):
        r_n = problem.residuals(phi)
        off_n = np.abs(r_n) / max(float(robust_sd(r_n[~out_n])), 1e-12)
        if np.array_equal(off_n > OFF, out_n):
            break
        out_n = off_n > OFF
        if not out_n.any() or out_n.mean() >= MOST_OTHER or len(points.y_n) - out_n.sum() <= len(phi):
            return None
        rest = replace(problem, w_n=np.where(out_n, 0.0, problem.w_n))
        phi = descend(rest, phi[None])[0]
    many = bool(out_n.mean() > MOST_OFF)
    if not out_n.any() or (many and not _another_kind(points.x_In, r_n, out_n)):
        return None
    numbers = np.arange(1, points.rows + 1) if fit.data is None or fit.data.rows is None else fit.data.rows
    out_rows = np.array(numbers)[points.first_n[out_n]]
    params = fit.form.plain(problem.model.unscale(problem.model.theta(phi)[None])[0]) | dict(fit.fixed)
    ends = (float(off_n[out_n].min()), float(off_n[out_n].max()))
    return FitOutliers(tuple(sorted(out_rows.tolist())), ends, params, many)


def framed(points: pl.DataFrame) -> list[float]:
    """The residuals that a frame holds: outliers would flatten what the others show."""
    r_n = points["residual"].to_numpy()
    off_n = np.abs(r_n - np.median(r_n))
    return r_n[off_n <= OFF * max(float(robust_sd(off_n)), 1e-12)].tolist() or r_n.tolist()


def beyond_words(points: pl.DataFrame) -> str:
    """'; 7 rows are off this frame of residuals', where a frame leaves out some."""
    beyond = points.height - len(framed(points))
    return f"; {text.plural(beyond, 'row')} lie off the frame of residuals" if beyond else ""


def outlier_tables(fit: Fit) -> list[Table]:
    """The first outliers by row, run and loss; empty where there are none."""
    group, data = outliers(fit), fit.data
    if group is None or data is None:
        return []
    place = {row: i for i, row in enumerate(data.rows or range(1, len(data.loss) + 1))}
    cells: list[tuple[str, str, str]] = []
    for row in group.rows[:_NAMED]:
        run = [amount(name, column[place[row]]) for name, column in data.inputs.items()]
        cells.append((str(row), ", ".join(run), text.number(data.loss[place[row]])))
    shown = "" if len(cells) == len(group.rows) else f", the first {len(cells)}"
    return [text_table(f"Runs off the law: {len(group.rows)}{shown}", ("Row", "Run", "Loss"), cells)]


def _another_kind(x_In: Array, r_n: Array, out_n: NDArray[np.bool_]) -> bool:
    """Whether runs are off in one direction and stand among the others; where a law bends they do together.

    Of runs that are off by another kind a share like their own has a nearest run that is off, of a bend all.
    """
    above = float(np.mean(r_n[out_n] > 0))
    if max(above, 1 - above) < _ONE_SIGN:
        return False
    z_nI = np.log(np.maximum(x_In, 1e-300)).T
    nearest_n = nearest(z_nI / np.maximum(np.ptp(z_nI, axis=0), 1e-12), 2)[1]
    other_n = np.where(nearest_n[:, 0] == np.arange(len(z_nI)), nearest_n[:, 1], nearest_n[:, 0])
    return float(np.mean(out_n[other_n[out_n]])) < (1 + out_n.mean()) / 2


def _outlier_words(fit: Fit, group: FitOutliers | None) -> str:
    if group is None:
        return ""
    one = len(group.rows) == 1
    law, moved = brief_formula(fit, group.params), moved_words(fit, group.params)
    without = f"Without {'it' if one else 'them'}: {law}. Of its parameters {moved}"
    if group.many:
        runs = f"{len(group.rows)} of {len(fit.residuals)} runs"
        return f"{runs} lie off the law that the others follow: two kinds of runs? {without}"
    off = text.brief(group.off[0]) if one else text.interval(group.off, text.brief)
    outliers = text.plural(len(group.rows), "outlier")
    return f"{outliers}, {off} standard deviations off the law. {without}"


def _form_words(fit: Fit) -> str:
    """Of another form that scatters much less about the same runs."""
    ours = float(robust_sd(fit.residuals))
    better = better_form(fit, ours / BETTER) if on_logs(fit) else None
    if better is None:
        return ""
    return (
        f"{fit.law} scatters by {spread_words(fit, ours)} about the runs, {better.base.name} by "
        f"{spread_words(fit, better.scatter)}: another form fits better"
    )


def _drift_words(fit: Fit) -> str:
    bins = means(fit, rows(fit))
    if not drifts(bins):
        return ""
    words = drift(fit, bins)
    return words[:1].lower() + words[1:]


def _hidden_words(fit: Fit) -> str:
    """Where less than half of the largest runs, hidden from a second fit, lay in their wide interval.

    Their misses come together, as they share one law. Yet of a true law a share of 1 - level misses on
    average, so by Markov's inequality half of them do with a chance of at most 2 (1 - level).
    """
    if fit.covariance is None:
        return ""
    hidden = attempt(hidden_runs, part_of(fit, _MOST_HIDDEN), level=_WIDE, with_forecast=False)
    if isinstance(hidden, Refusal) or hidden.coverage is None or hidden.coverage.share >= 0.5:
        return ""
    count = hidden.coverage.points
    return (
        f"with its largest runs hidden, {round(hidden.coverage.share * count)} of {count} lay inside their "
        f"{text.level(_WIDE)} interval: beyond the runs its intervals are too narrow"
    )
