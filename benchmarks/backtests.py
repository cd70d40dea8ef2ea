"""Backtests on public run tables: how far laws miss the largest runs, and how often their intervals hold.

    python benchmarks/backtests.py DATA_FOLDER > benchmarks/results/backtests.txt

DATA_FOLDER holds gadre-overtraining/runs_104.csv, steplaw/dense_lr_bs_loss.csv and
openathena-isoflops/isoflops_transform.csv as published by their authors (arXiv 2403.08540, 2503.04715,
2603.22339). Printed are aggregates alone.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isoloss import cpu
from isoloss.errors import Refusal
from isoloss.laws import Array, fit
from isoloss.plans.backtest import Backtest, backtest
from isoloss.plans.scores import Coverage, coverage_of

LEVEL = 0.9
RESAMPLES = 100


@dataclass(frozen=True)
class Case:
    """Runs of one experiment, and which of them are hidden."""

    name: str
    params: Array
    tokens: Array
    loss: Array
    hide_n: np.ndarray


LAWS: dict[str, dict] = {
    "chinchilla, squared-log": {"objective": "squared-log"},
    "chinchilla, huber-log": {"objective": "huber-log"},
    "shared exponent, squared-log": {"objective": "squared-log", "tied": [("alpha", "beta")]},
    "shared exponent, huber-log": {"objective": "huber-log", "tied": [("alpha", "beta")]},
}


def gadre(folder: Path) -> Iterator[Case]:
    """Three training corpora: models above a billion parameters, from all models below."""
    runs = pl.read_csv(folder / "gadre-overtraining" / "runs_104.csv")
    for (corpus,), own in runs.group_by("dataset", maintain_order=True):
        yield _case(f"gadre {corpus}", own, "params", "tokens", "loss_c4_val", own["params"] > 1e9)


def steplaw(folder: Path) -> Iterator[Case]:
    """The best loss of each (N, D) cell: the largest N hidden, and all runs above 5e10 tokens."""
    runs = pl.read_csv(folder / "steplaw" / "dense_lr_bs_loss.csv")
    best = runs.group_by("N", "D").agg(pl.col("smooth loss").min()).sort("N", "D")
    yield _case("steplaw, largest N", best, "N", "D", "smooth loss", best["N"] == best["N"].max())
    yield _case("steplaw, largest D", best, "N", "D", "smooth loss", best["D"] > 5e10)


def isoflops(folder: Path) -> Iterator[Case]:
    """Five experiments, rows that the authors flag left out: the largest budget, and the two largest."""
    runs = pl.read_csv(folder / "openathena-isoflops" / "isoflops_transform.csv").filter(~pl.col("outlier"))
    for (name,), own in runs.group_by("experiment", maintain_order=True):
        budgets = own["budget"].unique().sort()
        for count in (1, 2):
            hide = own["budget"] >= budgets[-count]
            short = name.split("__")[0] if "chinchilla" in name else name.split("__")[1]
            title = f"isoflops {short}, top {count} of {len(budgets)} budgets"
            yield _case(title, own, "params", "tokens", "loss", hide)


def _case(name: str, runs: pl.DataFrame, params: str, tokens: str, loss: str, hide: pl.Series) -> Case:
    columns = (runs[column].cast(pl.Float64).to_numpy() for column in (params, tokens, loss))
    return Case(name, *columns, hide.to_numpy())


def judged(case: Case, options: dict) -> Backtest | Refusal:
    try:
        return backtest(
            "chinchilla",
            {"params": case.params, "tokens": case.tokens},
            case.loss,
            holdout=case.hide_n,
            level=LEVEL,
            **options,
        )
    except Refusal as refusal:
        return refusal


def residual_bootstrap(case: Case, outcome: Backtest, options: dict) -> tuple[Coverage, Coverage]:
    """Percentiles of refits to the law plus resampled residuals: plain, and with a residual added to each.

    The first, often printed as the interval, holds the doubt about the law's mean alone; the second also the
    noise of a new run. Neither knows the degrees of freedom lost, nor that the law may be wrong.
    """
    see_n = ~case.hide_n
    x = {"params": case.params[see_n], "tokens": case.tokens[see_n]}
    there = {"params": case.params[case.hide_n], "tokens": case.tokens[case.hide_n]}
    mean_n, residual_n = outcome.fit.predict(**x).loss, np.array(outcome.fit.residuals)
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(RESAMPLES):
        again = mean_n * np.exp(rng.choice(residual_n, len(mean_n)))
        try:
            law = fit("chinchilla", x, again, curve_only=True, **options)
        except Refusal:
            continue
        rows.append(law.predict(**there).loss)
    plain = np.array(rows)
    coverages = []
    for drawn in (plain, plain * np.exp(rng.choice(residual_n, plain.shape))):
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        observed = case.loss[case.hide_n]
        inside = (low <= observed) & (observed <= high)
        coverages.append(coverage_of(inside, np.arange(len(observed)), LEVEL))
    return coverages[0], coverages[1]


def table(cases: list[Case]) -> None:
    head = f"{'data and hidden runs':<58}{'law':<30}{'miss':>7}{'bias':>8}{'held':>12}"
    print(f"\n{head}  best baseline, its miss, verdict")
    pooled: dict[str, list[tuple[float, int]]] = {}
    for case in cases:
        for name, options in LAWS.items():
            outcome = judged(case, options)
            title = f"{case.name} ({case.hide_n.sum()} of {len(case.loss)})"
            if isinstance(outcome, Refusal):
                print(f"{title:<58}{name:<30}refused: {outcome.what}")
                continue
            best, held = outcome.best_baseline, outcome.coverage
            share = "none" if held is None else f"{held.share:.0%} of {held.points}"
            print(
                f"{title:<58}{name:<30}{outcome.score.mean_abs_error:>7.2%}{outcome.score.bias:>+8.2%}{share:>12}"
                f"  {best.name}, {best.mean_abs_error:.2%}: {outcome.standing.name.lower().replace('_', ' ')}"
            )
            if held is not None:
                pooled.setdefault(name, []).append((held.share * held.points, held.points))
    for name, parts in pooled.items():
        inside, points = (sum(part[i] for part in parts) for i in (0, 1))
        print(f"in all, the {LEVEL:.0%} interval of {name} held {inside:.0f} of {points} hidden runs")


def published(folder: Path) -> None:
    """The two extrapolations that Gadre et al. print, with their form: one exponent for both terms."""
    print("\nGadre et al. print 0.71% for 1.4B parameters at 640 tokens each and 0.73% for 6.9B at 20 (C4")
    print("loss of models trained on RedPajama). The shared-exponent law fitted to smaller models, here:")
    runs = pl.read_csv(folder / "gadre-overtraining" / "runs_104.csv").filter(pl.col("dataset") == "rpj")
    small, ratio = pl.col("params") < 1e9, pl.col("chinchilla_multiplier")
    five = small & ((ratio == 1) | ((pl.col("params") < 2e7) & (ratio == 16)))
    for title, keep in (("all 32 smaller models", small), ("five: 20 per parameter, and 11M at 320", five)):
        own = runs.filter(keep | ~small)
        case = _case("rpj", own, "params", "tokens", "loss_c4_val", own["params"] > 1e9)
        for objective in ("squared-log", "huber-log"):
            outcome = judged(
                case, {"objective": objective, "tied": [("alpha", "beta")], "curve_only": len(own) < 10}
            )
            if isinstance(outcome, Refusal):
                print(f"  {title}, {objective}: refused: {outcome.what}")
                continue
            errors = ", ".join(
                f"{run.inputs['params'] / 1e9:.1f}B at {run.inputs['tokens'] / run.inputs['params']:.0f}: "
                f"{run.relative_error:+.2%}"
                for run in outcome.runs
            )
            doubt = "" if outcome.coverage else " (a curve alone: five runs do not determine the floor)"
            print(f"  {title}, {objective}: {errors}{doubt}")


def bootstraps(cases: list[Case]) -> None:
    head = "how often 90% intervals hold hidden runs (chinchilla, squared-log)"
    print(f"\n{head:<68}{'isoloss':>10}{'residual bootstrap':>20}{'with noise':>12}")
    options, totals = {"objective": "squared-log"}, np.zeros(4)
    for case in cases:
        outcome = judged(case, options)
        if isinstance(outcome, Refusal) or outcome.coverage is None:
            continue
        plain, noisy = residual_bootstrap(case, outcome, options)
        shares = (outcome.coverage.share, plain.share, noisy.share)
        totals += [*(share * plain.points for share in shares), plain.points]
        print(f"{case.name:<68}{shares[0]:>10.0%}{shares[1]:>20.0%}{shares[2]:>12.0%}", flush=True)
    *inside, points = totals
    ours, plain, noisy = (count / points for count in inside)
    print(f"{f'all {points:.0f} hidden runs':<68}{ours:>10.0%}{plain:>20.0%}{noisy:>12.0%}")


def main(folder: Path) -> None:
    readers: tuple[Callable[[Path], Iterator[Case]], ...] = (gadre, steplaw, isoflops)
    cases = [case for read in readers for case in read(folder)]
    print("# isoloss backtests: the law L = E + A N^-alpha + B D^-beta fitted to the visible runs")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, one thread")
    print("# miss, bias: mean absolute and mean relative error; held: share inside the 90% interval of a run")
    print("# ahead, behind, not told apart: by a paired 90% interval of log errors against the best baseline")
    published(folder)
    table(cases)
    bootstraps(cases)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
