"""What counting, schedules and tuning do to the exponent of N*(C), from two public sweeps.

    python benchmarks/counting_rules.py DATA_FOLDER

DATA_FOLDER holds porian/ and nanochat/. The first table follows Porian et al. 2024 (arXiv 2406.19146) from
Kaplan's setting to Chinchilla's, one choice a row: a read off the same losses as published, by Akima
interpolation per budget, noise of 0.002 nats (RefinedWeb) or 0.01 (OpenWebText2) as in the authors' results,
minima on an edge left out. The second fits nanochat's published optima under three counting rules.
"""

import sys
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from isoloss.laws.frontier import Frontier, frontier
from isoloss.laws.isoflop import IsoFlop, isoflop

LEVEL = 0.9
KEYS = ("file", "dataset", "hparams", "warmup", "decay", "param_count", "val")
NOISE = {"rw": 0.002, "owt2": 0.01}
CORPORA = {"rw": "RefinedWeb", "owt2": "OpenWebText2"}
STEPS = {
    ("base", "long", "kaplan", "kaplan"): "Kaplan: no head in N and C, long warm-up",
    ("base", "long", "kaplan", "standard"): "+ count the output head",
    ("base", "short", "kaplan", "standard"): "+ warm-up that grows with N",
    ("base", "short", "chinchilla", "standard"): "+ cosine matched to the budget",
    ("tuned", "short", "const", "standard"): "+ rate, batch, beta2 tuned by size",
    ("base", "long", "kaplan", "attention"): "head and attention, long warm-up",
    ("base", "short", "kaplan", "attention"): "+ warm-up that grows with N",
    ("base", "short", "chinchilla", "attention"): "+ cosine matched to the budget",
    ("tuned", "short", "const", "attention"): "+ rate, batch, beta2 tuned by size",
    ("tuned", "long", "const", "kaplan"): "tuned, but Kaplan's counting and warm-up",
}
RULES = {
    "kaplan_projections_plus_lm_head": "blocks and output head",
    "chinchilla_all": "all parameters",
    "transformer_only": "blocks alone",
}
PUBLISHED_NANOCHAT = {
    "kaplan_projections_plus_lm_head": (0.54, 0.49),
    "chinchilla_all": (0.37, 0.50),
    "transformer_only": (0.70, 0.41),
}


def porian(folder: Path) -> list[tuple[str, str, IsoFlop, float, float]]:
    """Corpus, step, what is read off here, and the published exponents, plain and weighted."""
    points = pl.read_csv(folder / "porian" / "isoflop_points.csv")
    published = pl.read_csv(folder / "porian" / "published_power_law_fits.csv")
    out = []
    for row in published.iter_rows(named=True):
        own = points.filter([pl.col(key) == row[key] for key in KEYS])
        reading = isoflop(
            own["flops"], own["n"], own["loss"], tokens=own["t"], noise=NOISE[row["dataset"]], level=LEVEL
        )
        step = STEPS[row["hparams"], row["warmup"], row["decay"], row["param_count"]]
        out.append((CORPORA[row["dataset"]], step, reading, row["n_exponent"], row["w_n_exponent"]))
    return out


def nanochat(folder: Path) -> list[tuple[str, Frontier, Frontier, float]]:
    """Counting rule, N*(C), D*(C), and tokens per parameter at the largest budget."""
    table = pl.read_csv(folder / "nanochat" / "isoflop_optima_three_counting_modes.csv")
    out = []
    for rule in RULES:
        own = table.filter(pl.col("counting") == rule).sort("flops")
        N, D = (frontier(own["flops"], own[name], level=LEVEL) for name in ("opt_params", "opt_tokens"))
        out.append((rule, N, D, own["opt_tokens"][-1] / own["opt_params"][-1]))
    return out


def _words(line: Frontier) -> str:
    return f"{line.exponent:.3f} ({line.interval[0]:.3f}, {line.interval[1]:.3f})"


def main(folder: Path) -> None:
    console = Console(width=170)
    shown = Table(title=f"Exponent a of N* = G C^a, with {100 * LEVEL:g}% t intervals over budgets")
    for name in ("choice", "a, plain", "published", "a, weighted", "published", "budgets", "left out at C ="):
        shown.add_column(name, no_wrap=True)
    before = ""
    for corpus, step, reading, plain, weighted in porian(folder):
        if corpus != before:
            shown.add_section()
            shown.add_row(f"[bold]{corpus}[/bold]")
        before = corpus
        weighed = reading.params_weighted
        shown.add_row(
            step,
            _words(reading.params),
            f"{plain:.3f}",
            "" if weighed is None else _words(weighed),
            f"{weighted:.3f}",
            f"{len(reading.used)}/{len(reading.budgets)}",
            ", ".join(f"{one.flops:.3g}" for one in reading.budgets if not one.used),
        )
    console.print(shown)
    shown = Table(title="One nanochat sweep under three counting rules")
    for name in ("N counts", "a of N*", "published", "b of D*", "published", "a + b", "D*/N* at 1e19"):
        shown.add_column(name, no_wrap=True)
    for rule, N, D, ratio in nanochat(folder):
        a, b = PUBLISHED_NANOCHAT[rule]
        total = N.exponent + D.exponent
        shown.add_row(
            RULES[rule], _words(N), f"{a:.2f}", _words(D), f"{b:.2f}", f"{total:.2f}", f"{ratio:.1f}"
        )
    console.print(shown)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
