"""What extrapolation.py leaves out: forecasts of three sizes, of every row, and more draws of some settings.

    python benchmarks/further_forecasts.py DATA_FOLDER > benchmarks/results/further_forecasts.txt

DATA_FOLDER is that of extrapolation.py, and so are the columns. Printed are aggregates alone.
"""

import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import public_tables
from extrapolation import HEAD, Score, Scores, line, mean_of, of_splits, score
from predictors import by_forecast
from public_tables import CHOSEN_ON, repeated, tables
from simulated_tables import NEW, of_three_sizes, simulated, truths

from isoloss import cpu
from isoloss.distributions import t_quantile

SURE = 0.95
SEEN, FRESH = range(8), range(8, 72)
"""Seeds of extrapolation.py, and others."""
LEAST_HELD = (
    ("chinchilla", 20, 0.002),
    ("outer-exponent", 60, 0.01),
    ("without a floor", 60, 0.05),
    ("chinchilla, alpha = beta", 400, 0.05),
)
"""Of the 72 simulated settings of extrapolation.py those held below 85 %: truth, runs, noise."""
LEAST_HELD_OF_THREE = (40, 0.01)
MOST_EPOCHS = (16.0, 10_000.0)


def held_between(scores: Iterable[Score | None]) -> tuple[float, float]:
    """The share held in the long run, by t over tables: runs of one table are missed together."""
    held = np.array([one.held for one in scores if one])
    reach = t_quantile(SURE, len(held) - 1) * held.std(ddof=1) / np.sqrt(len(held))
    return float(held.mean() - reach), float(min(held.mean() + reach, 1.0))


def with_range(name: str, scores: Scores) -> str:
    """The line of so many tables, and the range of what is held."""
    low, high = held_between(scores)
    return f"{line(name, scores)}{low:>9.0%} to {high:.0%}"


def every_row(folder: Path) -> None:
    """Runs below one token a parameter too, which extrapolation.py leaves out."""
    print(f"\npublic tables with all their rows, top 15 % and 35 %\n{HEAD}")
    with mock.patch.object(public_tables, "LEAST_RATIO", 0.0):
        chosen_on = list(tables(folder, CHOSEN_ON))
    print(line("forecast", [mean_of(of_splits(of, by_forecast)) for of in chosen_on]), flush=True)


def three_sizes(folder: Path, seeds: int) -> None:
    print("\nruns over repeated data by N, D and unique tokens, top 15 % and 35 %")
    print(HEAD.replace("tables", "  runs"))
    for most in MOST_EPOCHS:
        of = repeated(folder, most)
        scores = [mean_of(of_splits(of, by_forecast))]
        print(line(f"{of.family}, {of.name}", scores, len(of.loss)), flush=True)
    print(f"\nsimulated runs of three sizes, {seeds} tables of {NEW} new ones each\n{HEAD}{'held, 95 %':>14}")
    every: dict[str, Scores] = {}
    for runs, noise in product((40, 120), (0.002, 0.01)):
        for name, scores in drawn_of_three(runs, noise, range(seeds)).items():
            print(with_range(f"{name}, {runs} runs, noise {noise:.1%}", scores), flush=True)
            every.setdefault(name, []).extend(scores)
    for name, scores in every.items():
        print(with_range(f"{name}: all", scores))
    three_sizes_again(seeds)


def three_sizes_again(seeds: int) -> None:
    """The number of runs and the noise that held least, by tables that did not choose it."""
    runs, noise = LEAST_HELD_OF_THREE
    print(f"\nother tables of {runs} runs, noise {noise:.1%}\n{HEAD}{'held, 95 %':>14}")
    for name, scores in drawn_of_three(runs, noise, range(seeds, 3 * seeds)).items():
        print(with_range(name, scores), flush=True)


def drawn_of_three(runs: int, noise: float, seeds: Iterable[int]) -> dict[str, Scores]:
    """Scores of each law over three sizes; one seed's tables share sizes and luck."""
    out: dict[str, Scores] = {}
    for seed in seeds:
        rng = np.random.default_rng([seed, runs, round(1e4 * noise)])
        for name, of in of_three_sizes(rng, runs, noise).items():
            out.setdefault(name, []).append(score(of, np.arange(len(of.loss)) >= runs, by_forecast))
    return out


def drawn(name: str, runs: int, noise: float, seeds: Iterable[int]) -> Scores:
    """The scores of one setting of extrapolation.py, drawn as it draws them."""
    out: Scores = []
    for seed in seeds:
        rng = np.random.default_rng([seed, runs, round(1e4 * noise)])
        for each, truth in truths(rng).items():
            of, hide = simulated(rng, runs, noise, truth)
            if each == name:
                out.append(score(of, hide, by_forecast))
                break
    return out


def drawn_again() -> None:
    print(f"\nthe simulated settings of extrapolation.py that held least\n{HEAD}{'held, 95 %':>14}")
    for name, runs, noise in LEAST_HELD:
        for said, seeds in (("there", SEEN), ("other draws", FRESH)):
            title = f"{name}, {runs} runs, noise {noise:.1%}, {said}"
            print(with_range(title, drawn(name, runs, noise, seeds)), flush=True)


def main(folder: Path) -> None:
    begin = time.process_time()
    print("# isoloss: forecasts of every row, of three sizes, and of more simulated tables, nominal 90 %")
    print(f"# {cpu.with_versions('numpy', 'scipy')}, 2 shared cores, one thread")
    print("# columns as in extrapolation.txt; held, 95 %: by t over tables")
    three_sizes(folder, 20)
    drawn_again()
    every_row(folder)
    print(f"\n{time.process_time() - begin:.0f} CPU-seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
