"""How often 90 % intervals hold runs beyond the data, on public tables and on simulated ones.

    python benchmarks/extrapolation.py DATA_FOLDER > benchmarks/results/extrapolation.txt

DATA_FOLDER holds tables as their authors publish them (`isoloss data list` names some); absent ones are
skipped. Of each table the top 15 % and 35 % of the log range of FLOPs, params and tokens are hidden in turn.
Printed are aggregates alone.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from predictors import MAY_REFUSE, METHODS, PRIORS, TUNED, Method, by_forecast
from public_tables import CHOSEN_ON, Table, fresh, others, tables
from simulated_tables import NEW, simulated, truths

from isoloss import cpu
from isoloss.errors import Refusal, attempt
from isoloss.plans.forecast.origins import LEAST_FACTOR, TAILS

LEVELS = (0.5, 0.8, 0.9, 0.95)
HIDDEN, HIDDEN_ELSEWHERE = (0.15, 0.35), (0.25, 0.5)
LEAST_SEEN = 12
TRAINED = 5.0
SIMULATED = ("forecast", MAY_REFUSE[0])


@dataclass(frozen=True)
class Score:
    """Of one split: share of hidden runs held, mean relative half-width, root mean square of log errors."""

    held: float
    half_width: float
    rms: float
    log_rms: float
    winkler: float


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


def score(of: Table, hide: np.ndarray, method: Method, level: float = 0.9) -> Score | None:
    """None where the method is refused."""
    ends = attempt(method, of, hide, level)
    if isinstance(ends, Refusal):
        return None
    truth = np.log(of.loss[hide])
    mean, low, high = ends
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    rms = max(float(np.sqrt(np.mean((mean - truth) ** 2))), 1e-9)
    return Score(
        float(np.mean(miss == 0)),
        float(np.mean(np.exp((high - low) / 2) - 1)),
        rms,
        float(np.log(rms)),
        float(np.mean(high - low + 2 / (1 - level) * miss)),
    )


Scores = list[Score | None]


def mean_of(scores: Scores) -> Score | None:
    """Over those that are not refused."""
    given = [astuple(one) for one in scores if one]
    return Score(*np.mean(given, axis=0)) if given else None


def of_splits(of: Table, method: Method, level: float = 0.9, shares: tuple[float, ...] = HIDDEN) -> Scores:
    return [score(of, hide, method, level) for hide in splits(of, shares)]


def line(name: str, scores: Scores, count: int | None = None) -> str:
    """Means over tables; ``count`` in place of their number."""
    given = [one for one in scores if one]
    if not given:
        return f"{name}: refused everywhere"
    held, width, _, log_rms, winkler = np.mean([astuple(one) for one in given], axis=0)
    least, count = min(one.held for one in given), len(given) if count is None else count
    centre = f"{np.exp(np.mean([np.log(one.rms) for one in given])):>8.2%}{np.exp(log_rms):>8.2%}"
    if not width:  # a baseline without an interval
        return f"{name:<58}{count:>7}{'':>28}{centre}"
    return f"{name:<58}{count:>7}{held:>8.1%}{least:>8.0%}{width:>12.2%}{centre}{winkler:>9.4f}"


HEAD = f"{'':<58}{'tables':>7}{'held':>8}{'least':>8}{'half-width':>12}{'rms':>8}{'splits':>8}{'Winkler':>9}"


def by_table(chosen_on: list[Table]) -> None:
    """Each table under each method at 90 %, and all of them."""
    every: dict[str, list[Scores]] = {name: [] for name in METHODS}
    print(f"\n{HEAD.replace('tables', '  runs')}")
    for of in chosen_on:
        for name, method in METHODS.items():
            scores = of_splits(of, method)
            every[name].append(scores)
            print(line(f"{of.family} {of.name}, {name}", [mean_of(scores)], len(of.loss)), flush=True)
    print(f"\nmeans over tables, nominal 90 %\n{HEAD}")
    for name, tables_scores in every.items():
        print(line(name, list(map(mean_of, tables_scores))))
    for name in MAY_REFUSE:
        print(f"\nthe splits where neither {name} nor the forecast is refused\n{HEAD}")
        for one, other in ((name, "forecast"), ("forecast", name)):
            print(line(one, [mean_of(common(*pair)) for pair in zip(every[one], every[other], strict=True)]))
    log_rms = np.log([one.rms for scores in every["forecast"] if (one := mean_of(scores))])
    drawn = np.random.default_rng(0).choice(log_rms, (2000, len(log_rms)))
    low, high = np.exp(np.quantile(drawn.mean(axis=1), (0.05, 0.95)))
    print(f"\nrms of the forecast, 90 % of the tables drawn again: {low:.2%} to {high:.2%}")


def common(ours: Scores, theirs: Scores) -> Scores:
    """Ours where neither is refused."""
    return [one for one, other in zip(ours, theirs, strict=True) if one and other]


def by_level(chosen_on: list[Table]) -> None:
    print(f"\nthe forecast at other levels\n{HEAD}")
    for level in LEVELS:
        print(
            line(f"{level:.0%}", [mean_of(of_splits(of, by_forecast, level)) for of in chosen_on]), flush=True
        )


def by_rows(sets: dict[str, list[Table]]) -> None:
    """Other splits, tables and rows than those that the interval's constants were chosen on."""
    for shares in (HIDDEN, HIDDEN_ELSEWHERE):
        print(f"\nat 90 %, the top {shares[0]:.0%} and {shares[1]:.0%} hidden\n{HEAD}")
        for name, given in sets.items():
            scores = [mean_of(of_splits(of, by_forecast, shares=shares)) for of in given]
            print(line(name, scores), flush=True)


def by_trained_rows(chosen_on: list[Table]) -> None:
    print(f"\nthe same tables, top 15 % and 35 %, rows of at least {TRAINED:g} tokens a parameter\n{HEAD}")
    for name in ("forecast", "kriged laws alone"):
        scores = [mean_of(of_splits(well_trained(of), METHODS[name])) for of in chosen_on]
        print(line(name, scores), flush=True)


def well_trained(of: Table) -> Table:
    keep = of.tokens >= TRAINED * of.params
    return Table(of.family, of.name, of.params[keep], of.tokens[keep], of.loss[keep])


def by_family(chosen_on: list[Table]) -> None:
    """Constants chosen with a table's whole family left out: by Winkler's score of the other families."""
    print("\nconstants chosen with the whole family left out, by Winkler's score at all levels")
    families = list(dict.fromkeys(of.family for of in chosen_on))
    for method, choices in TUNED.items():
        every = {name: [at_levels(of, one) for of in chosen_on] for name, one in choices.items()}
        left_out: dict[float, Scores] = {level: [] for level in LEVELS}
        for family in families:
            others = [i for i, of in enumerate(chosen_on) if of.family != family]
            best = min(choices, key=lambda name: winkler([every[name][i] for i in others]))
            print(f"{method}, {family}: {best}")
            for of, scores in zip(chosen_on, every[best], strict=True):
                if of.family == family:
                    for level in LEVELS:
                        left_out[level].append(scores[level])
        print(HEAD)
        for level, scores in left_out.items():
            print(line(f"{method}, {level:.0%}", scores), flush=True)


def centre_by_family(chosen_on: list[Table]) -> None:
    """Priors chosen with a table's whole family left out: by the error of the other families' centres."""
    trained = [well_trained(of) for of in chosen_on]
    rows_of = {"all rows": chosen_on, f"rows of at least {TRAINED:g} tokens a parameter": trained}
    for rows, given in rows_of.items():
        print(f"\nthe centre alone under other priors, {rows}\n{HEAD}")
        every = {name: [mean_of(of_splits(of, one)) for of in given] for name, one in PRIORS.items()}
        for name, scores in every.items():
            print(line(name, scores), flush=True)
        left_out: Scores = []
        for place, of in enumerate(given):
            rest = [other for other, table in enumerate(given) if table.family != of.family]
            best = min(PRIORS, key=lambda name: log_rms([every[name][other] for other in rest]))
            left_out.append(every[best][place])
        print(line("chosen with the whole family left out", left_out), flush=True)


def log_rms(scores: Scores) -> float:
    return float(np.mean([np.log(one.rms) for one in scores if one]))


def at_levels(of: Table, method: Method) -> dict[float, Score | None]:
    return {level: mean_of(of_splits(of, method, level)) for level in LEVELS}


def winkler(scores: list[dict[float, Score | None]]) -> float:
    """The mean over levels and over tables that are not refused."""
    return float(np.mean([one.winkler for each in scores for one in each.values() if one]))


Rows = dict[tuple[str, str], Scores]


def simulations(sizes: tuple[int, ...], noises: tuple[float, ...], seeds: int) -> Rows:
    """Scores at 90 % by truth and method; printed for each number of runs and noise, which draw their own."""
    every: Rows = {}
    for noise, runs in product(noises, sizes):
        here: Rows = {}
        for seed in range(seeds):
            rng = np.random.default_rng([seed, runs, round(1e4 * noise)])
            for name, truth in truths(rng).items():
                of, hide = simulated(rng, runs, noise, truth)
                for method in SIMULATED:
                    here.setdefault((name, method), []).append(score(of, hide, METHODS[method]))
        for (name, method), scores in here.items():
            if method == "forecast":
                print(line(f"{name}, {runs} runs, noise {noise:.1%}", [mean_of(scores)]), flush=True)
            every.setdefault((name, method), []).extend(scores)
    return every


def checkpoints(seeds: int) -> Rows:
    """14 runs with five checkpoints each, which share a noise of 1 %; told which is whose, and not."""
    rows: Rows = {}
    run = np.concatenate([np.repeat(np.arange(14), 5), np.arange(14, 14 + NEW)])
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = truths(rng)["chinchilla"]
        of = simulated(rng, 14, 0.0, truth)[0]
        N, D = of.params[run], of.tokens[run]
        D[: 14 * 5] *= np.tile(np.geomspace(0.1, 1, 5), 14)
        loss = truth(N, D) * np.exp(0.01 * rng.standard_normal(14 + NEW)[run])
        for name, cluster in (("named by their run", run), ("not named", None)):
            of = Table("simulated", "", N, D, loss, cluster)
            rows.setdefault((name, "forecast"), []).append(score(of, np.arange(len(run)) >= 70, by_forecast))
    return rows


def print_means(title: str, rows: Rows) -> None:
    """Of each method, and of a rival and the forecast where neither is refused."""
    print(f"\n{title}\n{HEAD}")
    for (name, method), scores in rows.items():
        sides = {method: scores}
        if method != "forecast":
            ours = rows[name, "forecast"]
            sides = {method: common(scores, ours), "forecast, the same tables": common(ours, scores)}
        for said, given in sides.items():
            print(line(f"{name}: {said}", [mean_of(given)], sum(map(bool, given))), flush=True)


def main(folder: Path) -> None:
    begin = time.process_time()
    sets = {
        "the same tables": list(tables(folder, CHOSEN_ON)),
        "other tables": list(tables(folder, (others,))),
        "tables that chose nothing": list(tables(folder, (fresh,))),
    }
    chosen_on = sets["the same tables"]
    print("# isoloss: predictions beyond the runs, each table's top 15 % and 35 % of FLOPs, N and D hidden")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, one thread")
    print(
        "# held: share of hidden runs inside the interval; half-width: of the loss; Winkler: of log losses,"
    )
    print("# width + 2 / (1 - level) times what is missed. Means over splits, then over tables. rms: of log")
    print("# errors, the latter mean geometric; splits: the same, both means geometric.")
    print(
        f"# The forecast has its own constants (least factor {LEAST_FACTOR:g}, t of {TAILS}), chosen on the"
    )
    print(
        "# first tables below, but where a section says that it chooses. t plays no part at 90 %. Its priors"
    )
    print("# were chosen on the first and the other tables.")
    by_table(chosen_on)
    by_level(chosen_on)
    by_family(chosen_on)
    centre_by_family(chosen_on)
    by_rows(sets)
    by_trained_rows(chosen_on)
    print(f"\nsimulated runs, twelve new ones to ten times the largest N and D, at 90 %\n{HEAD}")
    every = simulations((20, 60, 150, 400), (0.002, 0.01, 0.05), 8)
    print_means("the same by truth and method", every)
    print_means("simulated checkpoints of 14 runs", checkpoints(12))
    print(f"\n{time.process_time() - begin:.0f} CPU-seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
