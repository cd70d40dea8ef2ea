"""Which form describes the runs: by the error on runs that were held out, and by information criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoloss import text
from isoloss.errors import InputError, Refusal, attempt
from isoloss.laws import Fit, Form, registered
from isoloss.plain import json_values
from isoloss.plans.forecast.hidden import ForecastScore, forecast_score
from isoloss.plans.holdout import Mask, RunData, columns_of, hide, points_of
from isoloss.plans.scores import by_point
from isoloss.plans.standing import FEWEST, ScoreGap, score_gaps
from isoloss.sources.fitting import ANOTHER_OBJECTIVE
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
    ``forecast`` is the error, on the same hidden runs, of the forecast, which averages laws, and
    ``forecast_gap`` how far it and the best form part; None where it takes no such inputs or is refused.
    ``hidden`` and ``groups`` count runs whose rows share noise once.
    """

    entries: tuple[ComparedLaw, ...]
    refused: tuple[tuple[str, str], ...]
    forecast: float | None
    forecast_gap: ScoreGap | None
    rule: str
    hidden: int
    groups: int
    fold_count: int
    objective: str
    criterion: str
    level: float
    warnings: tuple[str, ...]

    @property
    def best(self) -> ComparedLaw:
        return self.entries[0]

    @property
    def hidden_words(self) -> str:
        return "the hidden runs" if self.hidden > 1 else "the one hidden run"

    @property
    def too_few(self) -> bool:
        """Whether the hidden runs are too few to tell forms apart."""
        return self.hidden < FEWEST

    def verdict(self) -> str:
        """Which form errs least on the largest runs, which are not told apart from it, and who disagrees."""
        if len(self.entries) == 1:
            return f"{self.best.law} is the only form that the runs determine."
        best, rest = self.best, self.entries[1:]
        words = "No form could be fitted without the hidden runs"
        if best.largest is not None:
            words = f"{best.law} errs least on {self.hidden_words} ({text.percent(best.largest)})"
        equal = [law.law for law in rest if law.behind_largest and not law.behind_largest.told_apart]
        words += f". Not told apart from it: {', '.join(equal)}" if equal and not self.too_few else ""
        words += ". Fewer than three hidden runs judge no forms" if equal and self.too_few else ""
        for prefers, score in (("The folds prefer", "folds"), (f"{self.criterion} prefers", "criterion")):
            scored = [law for law in self.entries if getattr(law, score) is not None]
            first = min(scored, key=attrgetter(score), default=best)
            words += "" if first is best and best.largest is not None else f". {prefers} {first.law}"
        return f"{words}{self._forecast_words()}."

    def _forecast_words(self) -> str:
        if self.forecast is None or self.forecast_gap is None or self.best.largest is None:
            return ""
        better = self.forecast < self.best.largest
        words = "Averaging beats choosing: " if better else "Choosing beats averaging: "
        told_apart = self.forecast_gap.told_apart
        ends = "" if told_apart else ", not told apart from it"
        first = f"{words}the" if told_apart else "The"
        return f". {first} forecast errs by {text.percent(self.forecast)}{ends}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for strict JSON, with the verdict."""
        first = {
            "entries": [
                {name: value for name, value in vars(entry).items() if name != "fit"}
                | {"params": entry.fit.params}
                for entry in self.entries
            ],
            "refused": [{"law": law, "reason": reason} for law, reason in self.refused],
            "verdict": self.verdict(),
        }
        return json_values(first | {name: value for name, value in vars(self).items() if name not in first})


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
    objective: str | None = "squared-log",
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
    RSS of log losses in a squared-log fit, whatever ``objective`` is, n counting different inputs. Without an
    ``objective`` each form takes huber-log, or squared-log where that refuses it.

    Raises InputError for columns that cannot be used, Refusal if every form is refused.
    """
    forms = [registered(law) for law in laws]
    if len({law.name for law in forms}) < max(len(forms), 2):
        raise InputError("compare takes two or more different laws", mend="name each once")
    names = tuple(dict.fromkeys(name for law in forms for name in law.inputs))
    whole = replace(forms[0], inputs=names)
    x_In, y_n = columns_of(whole, inputs, loss)
    if holdout is None:
        holdout = f"largest-{_shared_input(forms)}"
    hidden = hide(names, x_In, holdout, share=share, rungs=rungs, flops=flops)
    group_n = points_of(x_In, cluster if groups is None else groups)
    fold_n = _fold_of_row(group_n, folds, seed)
    level = check_level(level)
    options |= {"objective": objective, "level": level}
    data = RunData(dict(zip(names, x_In, strict=True)), y_n, weights, cluster, options)
    # Rows of the same inputs are one point for every law, whichever of the inputs it takes.
    by_design = replace(data, cluster=points_of(x_In, None))
    splits = {"largest": [hidden.mask_n], "folds": [fold_n == fold for fold in range(folds)]}
    candidates = [fit_candidate(law, data, by_design, splits, group_n) for law in forms]
    refused = tuple((law.law, law.fit.what) for law in candidates if isinstance(law.fit, Refusal))
    if len(refused) == len(candidates):
        reasons = "; ".join(f"{law}: {reason}" for law, reason in refused)
        raise Refusal(f"no form stands on these runs ({reasons})", mend="add runs over a wider range")
    forecast = forecast_score(whole, data, hidden, group_n)
    totals = {candidate.law: candidate.total for candidate in candidates if candidate.total is not None}
    fits = {law.law: law.fit for law in candidates if isinstance(law.fit, Fit)}
    entries = _rank(candidates, level)
    averaged = _forecast_errors(forecast, y_n[hidden.mask_n], group_n[hidden.mask_n])
    return Comparison(
        entries=entries,
        refused=refused,
        forecast=_mean(averaged),
        forecast_gap=_forecast_gap(candidates, entries[0].law, averaged, level),
        rule=hidden.rule,
        hidden=len(np.unique(group_n[hidden.mask_n])),
        groups=len(np.unique(group_n)),
        fold_count=folds,
        objective=text.listed(sorted({law.objective.name for law in fits.values()})),
        criterion=CRITERION,
        level=level,
        warnings=(*nesting_faults(totals), *_other_objectives(fits)),
    )


def group_errors(
    law: Form, data: RunData, masks: Sequence[Mask], group_n: NDArray[np.intp]
) -> dict[int, float]:
    """Mean absolute relative error of each group, of ``group_n``, that one of the masks hides."""
    errors: dict[int, float] = {}
    for hide_n in masks:
        visible = data.fit(law, ~hide_n, curve_only=True)
        predicted = visible.predict(level=None, **{x: data.x[x][hide_n] for x in law.inputs}).loss
        error_h = np.abs(predicted / data.y_n[hide_n] - 1)
        group_h = group_n[hide_n]
        errors |= {int(group): float(error_h[group_h == group].mean()) for group in np.unique(group_h)}
    return errors


@dataclass(frozen=True)
class CandidateFit:
    """What one form did; ``errors`` maps "largest" and "folds" to the mean error of each hidden group."""

    law: str
    fit: Fit | Refusal
    total: float | None
    criterion: float | None
    errors: Mapping[str, Mapping[int, float]]
    left_out: tuple[str, ...]


def fit_candidate(
    law: Form,
    data: RunData,
    by_design: RunData,
    splits: Mapping[str, Sequence[Mask]],
    group_n: NDArray[np.intp],
) -> CandidateFit:
    """``by_design`` holds the same runs, clustered by equal inputs: AICc counts those.

    ``splits``: by name the masks of what is hidden in turn.
    """
    fit = attempt(data.fit, law)
    curve = attempt(by_design.fit, law, objective="squared-log", curve_only=True)
    outcomes: dict[str, dict[int, float] | Refusal] = {}
    if isinstance(fit, Fit):
        like = replace(data, options={**data.options, "objective": fit.objective.name})
        outcomes = {name: attempt(group_errors, law, like, splits[name], group_n) for name in splits}
    return CandidateFit(
        law=law.name,
        fit=fit,
        total=None if isinstance(curve, Refusal) else curve.objective.value,
        criterion=None if isinstance(curve, Refusal) else aicc(curve),
        errors={name: out for name, out in outcomes.items() if not isinstance(out, Refusal)},
        left_out=tuple(f"{name}: {out.what}" for name, out in outcomes.items() if isinstance(out, Refusal)),
    )


def aicc(fit: Fit) -> float | None:
    """None where the correction has no degrees of freedom left, or nothing is left over to explain."""
    n, rss = len(fit.residuals), fit.objective.value
    k = n - fit.df + 1
    if n - k - 1 < 1 or rss is None or rss <= 0:
        return None
    return float(n * np.log(rss / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


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
    """Those that stand on all runs, the least error first."""
    gaps = {
        split: score_gaps({law.law: law.errors[split] for law in candidates if split in law.errors}, level)
        for split in ("largest", "folds")
    }
    standing = [law for law in candidates if isinstance(law.fit, Fit)]
    least = min((law.criterion for law in standing if law.criterion is not None), default=0.0)
    entries = [
        ComparedLaw(
            law=law.law,
            largest=_mean(law.errors.get("largest")),
            behind_largest=gaps["largest"].get(law.law),
            folds=_mean(law.errors.get("folds")),
            behind_folds=gaps["folds"].get(law.law),
            criterion=law.criterion,
            behind_criterion=None if law.criterion is None else law.criterion - least,
            left_out=law.left_out,
            fit=law.fit,
        )
        for law in candidates
        if isinstance(law.fit, Fit)
    ]
    return tuple(sorted(entries, key=lambda law: [inf if v is None else v for v in (law.largest, law.folds)]))


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


def _forecast_errors(
    forecast: ForecastScore | Refusal | None, observed_h: np.ndarray, group_h: np.ndarray
) -> dict[int, float] | None:
    """Mean absolute relative error of each hidden group."""
    if not isinstance(forecast, ForecastScore):
        return None
    error_h = np.abs(np.array(forecast.score.predicted) / observed_h - 1)
    return dict(zip(np.unique(group_h).tolist(), by_point(error_h, group_h).tolist(), strict=True))


def _forecast_gap(
    candidates: Sequence[CandidateFit], best: str, averaged: Mapping[int, float] | None, level: float
) -> ScoreGap | None:
    """Of the forecast and the best form, whichever errs more; the level kept over all forms (Bonferroni)."""
    errors = {law.law: law.errors["largest"] for law in candidates if "largest" in law.errors}
    if averaged is None or best not in errors:
        return None
    gaps = score_gaps({best: errors[best], "forecast": averaged}, 1 - (1 - level) / len(errors))
    return next(iter(gaps.values()))


def _other_objectives(fits: Mapping[str, Fit]) -> tuple[str, ...]:
    """What was said of forms that another objective fitted than the first that was tried."""
    return tuple(
        f"{law}: {warning}"
        for law, fit in fits.items()
        for warning in fit.warnings
        if warning.startswith(ANOTHER_OBJECTIVE)
    )


def _mean(errors: Mapping[int, float] | None) -> float | None:
    return None if errors is None else float(np.mean(list(errors.values())))
