"""What the checks say of twenty public tables known to be good: every finding that is not true is a fault.

    python benchmarks/table_warnings.py DATA_FOLDER > benchmarks/results/table_warnings.txt

DATA_FOLDER holds the tables as their authors publish them (`isoloss data list` names some). Printed are kinds
of findings and counts, and no row of a table.
"""

import platform
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars

from isoloss.errors import Refusal
from isoloss.sources import columns_for, fit_table

SETTINGS = (
    ("rw", "base", "long", "kaplan", "standard"),
    ("rw", "base", "long", "kaplan", "attention"),
    ("rw", "base", "short", "chinchilla", "standard"),
    ("rw", "base", "short", "kaplan", "standard"),
    ("rw", "tuned", "long", "const", "kaplan"),
    ("rw", "tuned", "short", "const", "attention"),
    ("owt2", "base", "long", "kaplan", "standard"),
    ("owt2", "base", "short", "chinchilla", "standard"),
    ("owt2", "base", "short", "kaplan", "standard"),
    ("owt2", "tuned", "short", "const", "standard"),
)
"""Of the optima of Porian et al. 2024: data, hyper-parameters, warm-up, decay, counting rule."""
MARIN = {
    "params": "parameter_count", "tokens": "throughput/total_tokens", "loss": "eval/paloma/macro_loss",
}  # fmt: skip


def tables() -> Iterator[tuple[str, str, dict[str, str], str | None]]:
    """Name, file, columns that have no well-known name, rows of one experiment."""
    yield "epoch chinchilla", "epoch-chinchilla/svg_extracted_data.csv", {}, "loss < 3.41"
    yield "takano chinchilla", "kyo-takano-chinchilla/df.csv", {}, None
    for corpus in ("rpj", "c4_original", "rw_original"):
        columns = {"loss": "loss_c4_val"}
        yield f"gadre {corpus}", "gadre-overtraining/runs_104.csv", columns, f"dataset = '{corpus}'"
    for name in ("comma", "dclm", "nemotron"):
        yield f"marin {name}", f"openathena-isoflops/isoflop-{name}.csv", MARIN, None
    yield "steplaw dense", "steplaw/dense_lr_bs_loss.csv", {}, "loss < 3.2"
    yield "steplaw moe", "steplaw/moe_lr_bs_loss.csv", {}, None
    keys = ("dataset", "hparams", "warmup", "decay", "param_count")
    for setting in SETTINGS:
        where = " AND ".join(f"{key} = '{value}'" for key, value in zip(keys, setting, strict=True))
        columns = {"params": "n", "tokens": "t"}
        yield f"porian {' '.join(setting)}", "porian/isoflop_points.csv", columns, where


def main(folder: Path) -> None:
    print(
        "# isoloss: findings of the checks on public tables known to be good, and doubts of a Chinchilla fit"
    )
    print(f"# Python {platform.python_version()}, polars {polars.__version__}")
    total: Counter[str] = Counter()
    for name, file, columns, where in tables():
        read = columns_for("chinchilla", folder / file, columns=columns, where=where)
        kinds = [issue.kind for issue in read.runs.findings] + [
            f"left out: {excluded.reason.split(':')[0]}" for excluded in read.runs.excluded
        ]
        total.update(set(kinds))
        try:
            fit = fit_table("chinchilla", folder / file, columns=columns, where=where)
            doubts = f"{len(fit.warnings) - len(read.warnings)} doubts of the fit"
        except Refusal as reason:
            doubts = f"refused: {reason.what.rpartition('; ')[2]}"
        said = ", ".join(f"{kind} x{count}" for kind, count in sorted(Counter(kinds).items())) or "none"
        print(f"{name:44}{read.runs.frame.height:6} rows  findings: {said}; {doubts}")
    print(f"tables with a finding, by kind: {dict(sorted(total.items())) or 'none'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
