"""Which form describes the runs: by the error on runs that were held out, and by information criterion."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoloss.errors import InputError, Refusal
from isoloss.laws import Fit, Form, registered
from isoloss.plans.candidate_fit import CandidateFit, Splits, fit_candidate
from isoloss.plans.holdout import RunData, columns_of, hide, points_of
from isoloss.plans.scores import paired_interval
from isoloss.stats import check_level

CRITERION = "AICc of the squared-log fit"

NESTED = (
    ("power", "power-floor"),
    ("power-floor", "chinchilla"),
    ("chinchilla", "outer-exponent"),
    ("chinchilla", "loop-total"),
    ("kaplan-nd", "outer-exponent"),
)
"""Pairs of registered laws of which the second contains the first."""

_SLACK = 1e-6


@dataclass(frozen=True)
class ScoreGap:
    """Mean absolute relative error of a form minus the best form's, with its paired t interval.

    ``interval`` is None below three groups; ``told_apart`` if it leaves out 0.
    """

    value: float
    interval: tuple[float, float] | None
    told_apart: bool


@dataclass(frozen=True)
class ComparedLaw:
    """One form. Errors are mean absolute relative errors of held-out losses.

    ``largest`` is that of the hidden largest runs, ``folds`` that of the K folds, each None with its reason
    in ``left_out`` where the form could not be fitted to what was visible. ``behind_largest`` and
    ``behind_folds`` compare with the best form of each. ``criterion`` is AICc, ``behind_criterion`` that
    minus the least.
    """

    law: str
    largest: float | None
    behind_largest: ScoreGap | None
    folds: float | None
    behind_folds: ScoreGap | None
    criterion: float | None
    behind_criterion: float | None
    left_out: tuple[str, ...]
    fit: Fit


@dataclass(frozen=True)
class Comparison:
    """Forms in order of their error on the hidden largest runs; ``refused`` holds (law, reason).

    ``level`` is that of all intervals together: each is widened for the number of pairs (Bonferroni).
    """

    entries: tuple[ComparedLaw, ...]
    refused: tuple[tuple[str, str], ...]
    rule: str
    groups: int
    fold_count: int
    objective: str
    criterion: str
    level: float
    warnings: tuple[str, ...]

    @property
    def best(self) -> ComparedLaw:
        return self.entries[0]

    def verdict(self) -> str:
        """Which form errs least on the largest runs, which are not told apart from it, and who disagrees."""
        if len(self.entries) == 1:
            return f"{self.best.law} is the only form that the runs determine."
        best, rest = self.best, self.entries[1:]
        words = f"{best.law} errs least on the hidden runs"
        words += f" ({100 * best.largest:.2g}%)" if best.largest is not None else ""
        open_ = [one.law for one in rest if one.behind_largest and not one.behind_largest.told_apart]
        words += f"; not told apart from it: {', '.join(open_)}" if open_ else ""
        for name, value in (("the folds", "folds"), (self.criterion, "criterion")):
            known = [one for one in self.entries if getattr(one, value) is not None]
            first = min(known, key=lambda one: getattr(one, value), default=best)
            words += f"; {name} prefer{'s' * (value == 'criterion')} {first.law}" * (first is not best)
        return f"{words}."

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON, with the verdict."""
        entries = [
            {
                field.name: dataclasses.asdict(value) if isinstance(value, ScoreGap) else value
                for field in dataclasses.fields(ComparedLaw)
                if field.name != "fit"
                for value in [getattr(one, field.name)]
            }
            | {"params": one.fit.params}
            for one in self.entries
        ]
        rest = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("entries", "refused")
        }
        refused = [{"law": law, "reason": reason} for law, reason in self.refused]
        return {"entries": entries, "refused": refused, "verdict": self.verdict()} | rest


def compare(
    laws: Sequence[str | Form],
    inputs: Mapping[str, ArrayLike],
    loss: ArrayLike,
    *,
    holdout: str | ArrayLike | None = None,
    share: float = 0.15,
    rungs: int | None = None,
    flops: ArrayLike | None = None,
    folds: int = 5,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    objective: str = "squared-log",
    level: float = 0.9,
    seed: int = 20260401,
    **options: Any,
) -> Comparison:
    """Rank forms by their error on the largest runs, then by K folds and by information criterion.

    ``inputs`` holds what any of the laws takes. ``holdout`` is as in ``backtest``, by default the largest of
    the first input that all laws take. Folds are drawn from ``groups`` (such as run ids), by default the
    clusters, or rows of the same inputs; rows of one group never stand on both sides. A form must stand on
    all runs; on the visible ones it is fitted for its curve alone, lest noise in a fold refuse it.
    AICc = n log(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), k counting the noise too (Hurvich and Tsai 1989),
    RSS of log losses in a squared-log fit, whatever ``objective`` is, n counting different inputs.

    Raises InputError for columns that cannot be used, Refusal if every form is refused.
    """
    forms = [registered(law) for law in laws]
    if len({law.name for law in forms}) < max(len(forms), 2):
        raise InputError("compare takes two or more different laws", mend="name each once")
    names = tuple(dict.fromkeys(name for law in forms for name in law.inputs))
    x_In, y_n = columns_of(dataclasses.replace(forms[0], inputs=names), inputs, loss)
    if holdout is None:
        holdout = f"largest-{_shared_input(forms)}"
    hidden = hide(names, x_In, holdout, share=share, rungs=rungs, flops=flops)
    group_n = points_of(x_In, cluster if groups is None else groups)
    fold_n = _fold_of_row(group_n, folds, seed)
    level = check_level(level)
    options |= {"objective": objective, "level": level}
    data = RunData(dict(zip(names, x_In, strict=True)), y_n, weights, cluster, options)
    # Rows of the same inputs are one point for every law, whichever of the inputs it takes.
    by_design = dataclasses.replace(data, cluster=points_of(x_In, None))
    masks = {"largest": [hidden.mask_n], "folds": [fold_n == fold for fold in range(folds)]}
    splits = Splits(masks, group_n)
    candidates = [fit_candidate(law, data, by_design, splits) for law in forms]
    refused = tuple((one.law, one.refusal) for one in candidates if one.fit is None)
    if len(refused) == len(candidates):
        reasons = "; ".join(f"{law}: {reason}" for law, reason in refused)
        raise Refusal(f"no form stands on these runs ({reasons})", mend="add runs over a wider range")
    return Comparison(
        entries=_rank([one for one in candidates if one.fit is not None], level),
        refused=refused,
        rule=hidden.rule,
        groups=len(np.unique(group_n)),
        fold_count=folds,
        objective=objective,
        criterion=CRITERION,
        level=level,
        warnings=nesting_faults({one.law: one.total for one in candidates if one.total is not None}),
    )


def nesting_faults(totals: Mapping[str, float]) -> tuple[str, ...]:
    """A sentence for each pair of nested laws whose larger one has the larger sum of squares.

    That cannot be at the optimum, so the larger law's was not found.
    """
    return tuple(
        f"{larger} contains {smaller} yet fits worse ({totals[larger]:.6g} against {totals[smaller]:.6g}): "
        f"its optimum was not found"
        for smaller, larger in NESTED
        if smaller in totals and larger in totals
        if totals[larger] > totals[smaller] * (1 + _SLACK) + 1e-18
    )


def _rank(candidates: Sequence[CandidateFit], level: float) -> tuple[ComparedLaw, ...]:
    gaps = {
        split: score_gaps({one.law: one.errors[split] for one in candidates if split in one.errors}, level)
        for split in ("largest", "folds")
    }
    least = min((one.criterion for one in candidates if one.criterion is not None), default=0.0)
    entries = [
        ComparedLaw(
            law=one.law,
            largest=_mean(one.errors.get("largest")),
            behind_largest=gaps["largest"].get(one.law),
            folds=_mean(one.errors.get("folds")),
            behind_folds=gaps["folds"].get(one.law),
            criterion=one.criterion,
            behind_criterion=None if one.criterion is None else one.criterion - least,
            left_out=one.left_out,
            fit=one.fit,
        )
        for one in candidates
        if one.fit is not None
    ]
    infinity = float("inf")
    entries.sort(key=lambda one: tuple(infinity if v is None else v for v in (one.largest, one.folds)))
    return tuple(entries)


def _shared_input(forms: Sequence[Form]) -> str:
    for name in forms[0].inputs:
        if all(name in law.inputs for law in forms):
            return name
    raise InputError("the laws share no input", mend="name the column to hold out, or compare other laws")


def _fold_of_row(group_n: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """A fold for each row, groups dealt out in a drawn order."""
    count = int(group_n.max()) + 1
    if not 2 <= folds <= count:
        raise InputError(f"folds is {folds}", mend=f"there are {count} groups: give 2 to {count} folds")
    fold_of_group = np.empty(count, dtype=int)
    fold_of_group[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    return fold_of_group[group_n]


def _mean(errors: Mapping[int, float] | None) -> float | None:
    return None if errors is None else float(np.mean(list(errors.values())))


def score_gaps(errors: Mapping[str, Mapping[int, float]], level: float) -> dict[str, ScoreGap]:
    """Each form against the one of least mean error, paired by group; the best itself has no gap.

    Which form is best is itself chosen by the errors, so the level is kept over all pairs of forms
    (Bonferroni): equal forms are told apart in at most 1 - ``level`` of all comparisons.
    """
    if not errors:
        return {}
    best = min(errors, key=lambda name: float(np.mean(list(errors[name].values()))))
    each = 1 - (1 - level) / max(len(errors) * (len(errors) - 1) / 2, 1)
    groups = sorted(errors[best])
    out = {}
    for name in errors:
        if name == best:
            continue
        difference_g = np.array([errors[name][group] - errors[best][group] for group in groups])
        interval = paired_interval(difference_g, each)
        out[name] = ScoreGap(
            float(difference_g.mean()), interval, told_apart=interval is not None and interval[0] > 0
        )
    return out
