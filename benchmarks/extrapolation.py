"""How often 90 % intervals hold runs beyond the data, on public tables and on simulated ones.

    python benchmarks/extrapolation.py DATA_FOLDER > benchmarks/results/extrapolation.txt

DATA_FOLDER holds tables as their authors publish them (`isoloss data list` names some); absent ones are
skipped. Of each table the top 15 % and 35 % of the log range of FLOPs, params and tokens are hidden in turn.
Printed are aggregates alone.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isoloss import cpu
from isoloss.errors import Refusal
from isoloss.laws import Array, fit
from isoloss.plans.forecast import forecast
from isoloss.sources import columns_for

LEVELS = (0.5, 0.8, 0.9, 0.95)
HIDDEN, HIDDEN_ELSEWHERE = (0.15, 0.35), (0.25, 0.5)
LEAST_SEEN = 12
LEAST_RATIO = 1.0
"""Tokens a parameter: below, a run has hardly left its warm-up."""


@dataclass(frozen=True)
class Table:
    """Runs of one experiment; tables of one ``family`` share models or authors."""

    family: str
    name: str
    params: Array
    tokens: Array
    loss: Array


@dataclass(frozen=True)
class Score:
    """Of one split: share of hidden runs held, mean relative half-width, root mean square of log errors."""

    held: float
    half_width: float
    rms: float
    winkler: float


Ends = tuple[Array, Array, Array]
"""Log losses predicted, and both ends of their interval."""


Reader = Callable[[Path], Iterator[Table]]


def tables(folder: Path, readers: tuple[Reader, ...]) -> Iterator[Table]:
    """Every table that is there."""
    for read in readers:
        try:
            yield from read(folder)
        except FileNotFoundError as absent:
            print(f"# absent: {absent.filename}", file=sys.stderr)


def unseen(folder: Path) -> Iterator[Table]:
    """Tables that no constant was chosen on: other losses and counts of the same families, and Step Law."""
    runs = csv(folder / "gadre-overtraining" / "runs_104.csv")
    for loss in ("loss_openlm", "loss_paloma_c4_en", "loss_paloma_falcon-refinedweb", "loss_paloma_ptb"):
        for (corpus,), own in runs.group_by("dataset", maintain_order=True):
            yield table("gadre", f"{corpus} {loss}", own, "params", "tokens", loss)
    runs = csv(folder / "porian" / "isoflop_points.csv")
    runs = runs.filter(pl.col("param_count") == "attention")
    for key, own in runs.group_by("hparams", "warmup", "decay", maintain_order=True):
        yield table("porian", f"{' '.join(map(str, key))} attention", own, "n", "t", "loss")
    runs = csv(folder / "steplaw" / "dense_lr_bs_loss.csv")
    yield table("steplaw", "best of each cell", runs.group_by("N", "D").min(), "N", "D", "smooth loss")


def csv(path: Path) -> pl.DataFrame:
    if not path.exists():
        raise FileNotFoundError(2, "absent", str(path))
    return pl.read_csv(path, infer_schema_length=None)


def gadre(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "gadre-overtraining" / "runs_104.csv")
    for (corpus,), own in runs.group_by("dataset", maintain_order=True):
        yield table("gadre", str(corpus), own, "params", "tokens", "loss_c4_val")


def chinchilla(folder: Path) -> Iterator[Table]:
    """One reading of the figure: the other table of it holds the same points."""
    runs = csv(folder / "epoch-chinchilla" / "svg_extracted_data.csv").sort("loss").head(240)
    runs = runs.with_columns((pl.col("Training FLOP") / (6 * pl.col("Model Size"))).alias("D"))
    yield table("chinchilla", "epoch", runs, "Model Size", "D", "loss")


def isoflops(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "openathena-isoflops" / "isoflops_transform.csv").filter(~pl.col("outlier"))
    for (name,), own in runs.filter(~pl.col("experiment").str.contains("chinchilla")).group_by(
        "experiment", maintain_order=True
    ):
        yield table("marin", str(name).split("__")[1], own, "params", "tokens", "loss")


def porian(folder: Path) -> Iterator[Table]:
    """Each setting under one count of parameters, the standard one where it is there."""
    runs = csv(folder / "porian" / "isoflop_points.csv")
    keys = ["dataset", "hparams", "warmup", "decay"]
    for key, own in runs.group_by(keys, maintain_order=True):
        count = "standard" if (own["param_count"] == "standard").any() else own["param_count"][0]
        own = own.filter(pl.col("param_count") == count)
        own = own.filter(pl.col("val") == own["val"][0])
        yield table("porian", " ".join(map(str, key)), own, "n", "t", "loss")


def xlstm(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "xlstm" / "isoflop_runs.csv")
    whole = (pl.col("final_val_loss") < 10) & (pl.col("last_step") >= pl.col("planned_steps"))
    for (name,), own in runs.filter(whole).group_by("data_set", maintain_order=True):
        yield table("xlstm", str(name), own, "num_params", "tokens", "final_val_loss")


def datablations(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "datablations" / "runs.csv").filter(
        (pl.col("set") == "all_296") & (pl.col("epochs") <= 1.0)
    )
    yield table("datablations", "one epoch", runs, "params", "tokens", "val_loss")


def table(family: str, name: str, runs: pl.DataFrame, params: str, tokens: str, loss: str) -> Table:
    runs = runs.select(params=params, tokens=tokens, loss=loss).drop_nulls()
    read = columns_for("chinchilla", runs.filter(pl.col("tokens") >= LEAST_RATIO * pl.col("params")))
    return Table(family, name, read.inputs["params"], read.inputs["tokens"], read.loss)


def splits(of: Table, shares: tuple[float, ...] = HIDDEN) -> Iterator[np.ndarray]:
    """Which rows to hide: each set once, with enough left to see."""
    done: set[bytes] = set()
    for size in (of.params * of.tokens, of.params, of.tokens):
        log = np.log(size)
        for share in shares:
            hide = log > log.max() - share * np.ptp(log)
            if (~hide).sum() >= LEAST_SEEN and hide.tobytes() not in done:
                done.add(hide.tobytes())
                yield hide


CHOSEN_ON: tuple[Reader, ...] = (gadre, chinchilla, isoflops, porian, xlstm, datablations)
Method = Callable[[Table, np.ndarray, float], Ends]


def by_forecast(of: Table, hide: np.ndarray, level: float) -> Ends:
    seen = {"params": of.params[~hide], "tokens": of.tokens[~hide]}
    there = {"params": of.params[hide], "tokens": of.tokens[hide]}
    found = forecast(seen, of.loss[~hide], there, level=level)
    low, high = found.interval.T
    return np.log(found.loss), np.log(low), np.log(high)


def by_chinchilla(of: Table, hide: np.ndarray, level: float) -> Ends:
    seen = {"params": of.params[~hide], "tokens": of.tokens[~hide]}
    law = fit("chinchilla", seen, of.loss[~hide], objective="squared-log", level=level)
    found = law.predict(params=of.params[hide], tokens=of.tokens[hide])
    if found.interval is None:
        raise Refusal("no interval")
    return np.log(found.loss), np.log(found.interval[0]), np.log(found.interval[1])


def by_nearest(of: Table, hide: np.ndarray, level: float) -> Ends:
    """The loss of the nearest run in logs, and no interval: an end on either side of nothing."""
    sizes = np.log(np.stack([of.params, of.tokens]))
    away = ((sizes[:, hide, None] - sizes[:, None, ~hide]) ** 2).sum(axis=0)
    loss = np.log(of.loss[~hide][away.argmin(axis=1)])
    return loss, loss, loss


METHODS: dict[str, Method] = {
    "forecast": by_forecast,
    "chinchilla, t": by_chinchilla,
    "nearest run": by_nearest,
}


def score(of: Table, hide: np.ndarray, ends: Ends, level: float) -> Score:
    truth = np.log(of.loss[hide])
    mean, low, high = ends
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return Score(
        float(np.mean(miss == 0)),
        float(np.mean(np.exp((high - low) / 2) - 1)),
        float(np.sqrt(np.mean((mean - truth) ** 2))),
        float(np.mean(high - low + 2 / (1 - level) * miss)),
    )


def mean_scores(of: Table, method: Method, level: float, shares: tuple[float, ...] = HIDDEN) -> Score | None:
    """The mean over the splits of a table that are not refused."""
    scores = []
    for hide in splits(of, shares):
        try:
            scores.append(score(of, hide, method(of, hide, level), level))
        except Refusal:
            continue
    return Score(*np.mean([vars_of(one) for one in scores], axis=0)) if scores else None


def vars_of(one: Score) -> list[float]:
    return [one.held, one.half_width, one.rms, one.winkler]


def line(name: str, scores: list[Score]) -> str:
    held, width, _, winkler = np.mean([vars_of(one) for one in scores], axis=0)
    least = min(one.held for one in scores)
    rms = np.exp(np.mean(np.log([max(one.rms, 1e-9) for one in scores])))
    if not width:  # a baseline without an interval
        return f"{name:<58}{len(scores):>7}{'':>28}{rms:>8.2%}"
    return f"{name:<58}{len(scores):>7}{held:>8.1%}{least:>8.0%}{width:>12.2%}{rms:>8.2%}{winkler:>9.4f}"


HEAD = f"{'':<58}{'tables':>7}{'held':>8}{'least':>8}{'half-width':>12}{'rms':>8}{'Winkler':>9}"


def by_table(found: list[Table]) -> None:
    """Each table under each method at 90 %, and all of them."""
    every: dict[str, list[Score]] = {name: [] for name in METHODS}
    print(f"\n{HEAD.replace('tables', '  runs')}")
    for of in found:
        for name, method in METHODS.items():
            one = mean_scores(of, method, 0.9)
            title = f"{of.family} {of.name}, {name}"
            if one is None:
                print(f"{title}: refused in every split")
                continue
            every[name].append(one)
            print(line(title, [one]).replace(f"{1:>7}", f"{len(of.loss):>7}", 1), flush=True)
    print(f"\nmeans over tables, nominal 90 %; rms is the geometric mean\n{HEAD}")
    for name, scores in every.items():
        print(line(name, scores))


def by_level(found: list[Table]) -> None:
    print(f"\nthe forecast at other levels\n{HEAD}")
    for level in LEVELS:
        scores = [one for of in found if (one := mean_scores(of, by_forecast, level))]
        print(line(f"{level:.0%}", scores), flush=True)


Truth = Callable[[Array, Array], Array]


def truths(rng: np.random.Generator) -> dict[str, Truth]:
    """Laws to draw runs from: in the forecast's set, and outside of it."""
    (alpha, beta), (floor, a, b) = rng.uniform(0.25, 0.5, 2), rng.uniform(0.5, [2.0, 1.2, 1.2])

    def inside(N: Array, D: Array) -> Array:
        return floor + a * (N / 1e8) ** -alpha + b * (D / 1e10) ** -beta

    return {
        "chinchilla": inside,
        "with a product term": lambda N, D: inside(N, D) + 0.3 * (N / 1e8) ** -0.2 * (D / 1e10) ** -0.2,
        "with a bend of 1 %": lambda N, D: inside(N, D) * (1 + 0.01 * np.sin(np.log(N * D) / 3)),
    }


def simulated(rng: np.random.Generator, runs: int, noise: float, truth: Truth) -> tuple[Table, np.ndarray]:
    """``runs`` over two decades of N and D, and twelve new ones around ten times the largest of both."""
    N = np.concatenate([10 ** rng.uniform(7, 9, runs), 10 ** rng.uniform(8.5, 10, 12)])
    D = np.concatenate([10 ** rng.uniform(9, 11, runs), 10 ** rng.uniform(10.5, 12, 12)])
    loss = truth(N, D) * np.exp(noise * rng.standard_normal(len(N)))
    return Table("simulated", "", N, D, loss), np.arange(len(N)) >= runs


def simulations(sizes: tuple[int, ...], noises: tuple[float, ...], seeds: int) -> Iterator[tuple[str, Score]]:
    """Mean scores at 90 %, by truth, number of runs and noise."""
    for noise in noises:
        for runs in sizes:
            scores: dict[str, list[list[float]]] = {}
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                for name, truth in truths(rng).items():
                    of, hide = simulated(rng, runs, noise, truth)
                    one = score(of, hide, by_forecast(of, hide, 0.9), 0.9)
                    scores.setdefault(name, []).append(vars_of(one))
            for name, rows in scores.items():
                yield f"{name}, {runs} runs, noise {noise:.1%}", Score(*np.mean(rows, axis=0))


def main(folder: Path) -> None:
    begin = time.process_time()
    found, others = list(tables(folder, CHOSEN_ON)), list(tables(folder, (unseen,)))
    print("# isoloss: predictions beyond the runs, each table's top 15 % and 35 % of FLOPs, N and D hidden")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, one thread")
    print("# held: share of hidden runs inside the interval; half-width: of the loss; rms: of log errors;")
    print("# Winkler: of log losses, width + 2 / (1 - level) times what is missed. Means over splits.")
    by_table(found)
    by_level(found)
    print(f"\nat 90 %, the top 25 % and 50 % hidden, which chose nothing\n{HEAD}")
    for name, chosen in (("the same tables", found), ("tables that chose nothing", others)):
        scores = [one for of in chosen if (one := mean_scores(of, by_forecast, 0.9, HIDDEN_ELSEWHERE))]
        print(line(name, scores), flush=True)
    scores = [one for of in others if (one := mean_scores(of, by_forecast, 0.9))]
    print(line("the latter, top 15 % and 35 %", scores), flush=True)
    print(f"\nsimulated runs, twelve new ones to ten times the largest N and D, at 90 %\n{HEAD}")
    for name, one in simulations((20, 60, 150, 400), (0.002, 0.01, 0.05), 10):
        print(line(name, [one]), flush=True)
    print(f"\n{time.process_time() - begin:.0f} CPU-seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
