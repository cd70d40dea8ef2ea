"""CPU seconds of commands, of their libraries alone and of data-constrained fits; beside other sources.

    python benchmarks/commands.py
    python benchmarks/commands.py --base OTHER_CHECKOUT/src --turns 9

Each turn runs everything once, so that what else the machine does falls on all alike; the least and the
median of user and system time of whole processes are printed, for fits after their imports.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1] / "src"
LIBRARIES = "import numpy, polars, typer, pydantic; pydantic.TypeAdapter(int)"
FIT = """
import resource, sys, time
import numpy as np
from isoloss.laws import fit
from isoloss.sources import published
rng = np.random.default_rng(0)
rows = int(sys.argv[1])
N, U = 10 ** rng.uniform(7, 10, rows), 10 ** rng.uniform(8, 11, rows)
x = {"params": N, "tokens": U * np.exp(rng.uniform(0, 4, rows)), "unique_tokens": U}
loss = published("muennighoff").predict(**x).loss * np.exp(0.01 * rng.standard_normal(rows))
start = time.process_time()
fit("data-constrained", x, loss, objective="huber-log")
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
"""
FORECAST = """
import time
import numpy as np
from isoloss.plans.forecast import forecast_table
import polars as pl
rng = np.random.default_rng(0)
N, D = 10 ** rng.uniform(7, 9, 240), 10 ** rng.uniform(9, 11, 240)
loss = (1.8 + 480 * N**-0.35 + 2000 * D**-0.37) * np.exp(0.005 * rng.standard_normal(240))
table = pl.DataFrame({"params": N, "tokens": D, "loss": loss})
start = time.process_time()
forecast_table(table, params=7e10, tokens=1.4e12)
print(time.process_time() - start, 0)
"""


def runs(path: Path) -> Path:
    """A table of 240 runs about a law of N and D."""
    rng = np.random.default_rng(0)
    N, D = 10 ** rng.uniform(7, 9, 240), 10 ** rng.uniform(9, 11, 240)
    loss = (1.8 + 480 * N**-0.35 + 2000 * D**-0.37) * np.exp(0.005 * rng.standard_normal(240))
    table = np.stack([N, D, loss], axis=1)
    np.savetxt(path, table, delimiter=",", header="params,tokens,loss", comments="", fmt="%.10g")
    return path


def measured(words: list[str], source: Path) -> tuple[float, float, str]:
    """Seconds of one process, those of which it speaks itself where it does, and MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = done.stdout.split() if words[0] == "-c" else []
    whole = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return (float(own[0]), float(own[1]), "after imports") if own else (whole, 0.0, "whole process")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="src of another checkout, measured in turn")
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    sources = {"here": HERE} | ({"base": chosen.base.resolve()} if chosen.base else {})
    costs = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "isoloss.cli", "fit"]
        asked = {
            "libraries alone": ["-c", LIBRARIES],
            "fit --help": [*command, "--help"],
            "fit of 240 runs": [*command, str(runs(Path(folder) / "runs.csv")), "--law", "chinchilla"],
            "data-constrained, 2,000 rows": ["-c", FIT, "2000"],
            "data-constrained, 20,000 rows": ["-c", FIT, "20000"],
            "forecast of 240 runs": ["-c", FORECAST],
        }
        for _ in range(chosen.turns + 1):
            for what, words in asked.items():
                for name, source in sources.items():
                    costs[what, name].append(measured(words, source))
    for (what, name), (_, *turns) in costs.items():  # the first writes bytecode
        seconds, most = [turn[0] for turn in turns], max(turn[1] for turn in turns)
        memory = f", {most:.0f} MB" if most else ""
        print(
            f"{what:<30} {name}: {min(seconds):.3f} (median {statistics.median(seconds):.3f}) CPU-s "
            f"{turns[0][2]}{memory}"
        )


if __name__ == "__main__":
    main()
