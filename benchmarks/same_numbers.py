"""Every number of a fixed script, before and after a change that should change none.

    python benchmarks/same_numbers.py record DATA_FOLDER OUT.json [--only demo,laws]
    python benchmarks/same_numbers.py compare BEFORE.json AFTER.json

``record`` trains one small study of all three families and writes its report; fits, predicts, plans,
compares, backtests, reads IsoFLOPs and designs on the public tables in DATA_FOLDER; measures the demos; and
keeps each number that the commands print, under the path where it stands. ``compare`` names the numbers
that differ in any digit and exits with 1 if there are any; sentences that differ are counted, and listed
with ``--words``. Compare records of one machine: another processor rounds otherwise.
"""

import argparse
import csv
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What differs from run to run: clocks, places, machines, and hashes of the code.
VOLATILE = {
    "made",
    "seconds",
    "cpu_seconds",
    "wall_seconds",
    "wall",
    "cpu",
    "machine",
    "experiment",
    "path",
    "report",
    "folder",
    "file",
    "figures",
    "basis",
    "memory_bytes",
    "code_version",
    "environment",
    "source",
    "page",
    "version",
    "started",
    "ended",
    "tokens_per_second",
    "place",
    "flops_per_second",
    "study",
    "to",
}
# A blind tasting shows its two texts in an order drawn anew each time.
SHUFFLED = ("demo/showdown[0].tables.steps", "demo/showdown[0].tables.texts", "demo/showdown[0].tables.order")

STUDY = """
name = "numbers"
title = "All three families, small"

[scale.mini]
corpus = "starter"
vocabulary = 512
context = 32
batch_size = 4
tokens = [8_192, 16_384, 32_768]
seeds = [0, 1]
evaluation = { windows = 16, final_windows = 64, trace_windows = 8 }
"""

SHAPES = {
    "transformer": [
        {"n_layer": 1, "d_model": 16, "n_head": 2},
        {"n_layer": 2, "d_model": 24, "n_head": 2},
        {"n_layer": 2, "d_model": 48, "n_head": 2},
    ],
    "lstm": [{"n_layer": n_layer, "d_model": d_model} for n_layer in (1, 2) for d_model in (12, 24, 48)],
    "looped": [
        {"n_layer": 1, "d_model": d_model, "n_head": 1, "recurrence": recurrence}
        for d_model in (16, 24)
        for recurrence in (1, 2)
    ],
}


def study_text() -> str:
    """The study as TOML."""
    models = []
    for family, shapes in SHAPES.items():
        rows = ", ".join(
            "{ " + ", ".join(f"{key} = {value}" for key, value in shape.items()) + " }" for shape in shapes
        )
        models.append(
            f'[[scale.mini.models]]\nfamily = "{family}"\nshapes = [{rows}]\nlearning_rates = [0.01]\n'
        )
    return STUDY + "\n" + "\n".join(models)


EPOCH = """{data}/epoch-chinchilla/svg_extracted_data.csv --params 'Model Size' --flops 'Training FLOP'"""
GADRE = """{data}/gadre-overtraining/runs_104.csv --loss loss_c4_val --where "dataset = 'c4_original'" """
TAKANO = "{data}/kyo-takano-chinchilla/df.csv"
ISOFLOPS = """{data}/openathena-isoflops/isoflops_transform.csv --flops budget
    --where "NOT outlier AND experiment = 'epochai_chinchilla__massivetext__chinchilla'" """
TARGET = "--params 7e10 --tokens 1.4e12"

# A line a command: its name, then its words.
SCRIPT = f"""
study/plan: run numbers.toml --dry-run
study/run: run numbers.toml --out numbers
study/report: report numbers
study/loops: fit numbers --law loop-total --where "cooled AND family = 'looped'"
laws/report: report epoch-chinchilla.json --out fit-report
laws/design: design epoch-chinchilla.json --budget 1e21 {TARGET}
laws/target: plan epoch-chinchilla.json --loss 2.1
laws/serve: plan epoch-chinchilla.json --flops 1e22 --serve-tokens 1e13
laws/squared: fit {EPOCH} --law chinchilla --objective squared
laws/squared-log: fit {EPOCH} --law chinchilla --objective squared-log
laws/huber-likelihood: fit {EPOCH} --law chinchilla --objective huber-likelihood
laws/profile: fit {TAKANO} --law chinchilla --objective squared-log --intervals profile
laws/bootstrap: fit {TAKANO} --law chinchilla --objective squared-log --bootstrap 200 --intervals bootstrap
laws/tied: fit {GADRE} --law chinchilla --tied alpha,beta
laws/data-constrained: fit {{data}}/datablations/runs.csv --loss val_loss --law data-constrained
laws/compare: compare {GADRE} --laws chinchilla,outer-exponent,kaplan-nd
laws/isoflop: isoflop {ISOFLOPS} --out isoflop
laws/parabola: isoflop {ISOFLOPS} --method parabola
laws/published: predict chinchilla-epoch {TARGET}
laws/published-plan: plan chinchilla-epoch --flops 1e22
laws/list: laws
demo/amnesia: demo amnesia --seeds 3
demo/attention: demo attention --seeds 3
demo/training: demo training --seeds 3
demo/showdown: demo showdown --seeds 3
""".replace("\n    ", " ")


def commands(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command of the script by a name; files are relative to its folder."""
    for name, words in sorted(_lines(), key=lambda line: line[0].split("/")[0] == "demo"):
        yield name, [*shlex.split(words.format(data=data)), "--json"]


def _lines() -> Iterator[tuple[str, str]]:
    script = [line.partition(": ")[::2] for line in SCRIPT.strip().splitlines()]
    yield from (line for line in script if line[0].startswith("study"))
    for law in ("power", "power-floor", "chinchilla", "outer-exponent", "kaplan-nd"):
        for family in ("transformer", "lstm"):
            rows = f"cooled AND family = '{family}'"
            yield f"study/{law}-{family}", f'fit numbers --law {law} --where "{rows}"'
    for table, words in {"epoch": EPOCH, "gadre": GADRE, "takano": TAKANO}.items():
        for law in ("chinchilla", "outer-exponent", "kaplan-nd"):
            name = f"{table}-{law}"
            yield f"laws/{name}", f"fit {words} --law {law} -o {name}.json"
            yield f"laws/predict-{name}", f"predict {name}.json {TARGET}"
            yield f"laws/plan-{name}", f"plan {name}.json --flops 1e22 --gpu h100"
        yield f"laws/backtest-{table}", f"backtest {words} --law chinchilla --out backtest-{table}"
    yield from (line for line in script if not line[0].startswith("study"))


def record(data: Path, only: list[str]) -> dict[str, Any]:
    """Run the script in a fresh folder; every number and text by its path."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "numbers.toml").write_text(study_text(), "utf-8")
        for title, words in commands(data):
            if only and title.split("/")[0] not in only and title not in only:
                continue
            print(title, file=sys.stderr, flush=True)
            done = subprocess.run(  # fixed words, no shell
                [sys.executable, "-m", "isoloss.cli", *words],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            out[f"{title}: exit code"] = done.returncode
            if done.returncode not in (0, 3):
                print(done.stderr, file=sys.stderr)
            if done.stdout.startswith(("{", "[")):
                out |= dict(_flat(title, json.loads(done.stdout)))
        for path in sorted(folder.rglob("*.csv")):
            with path.open(encoding="utf-8") as lines:
                for number, row in enumerate(csv.reader(lines)):
                    out |= {
                        f"{path.relative_to(folder)}:{number}:{i}": _value(cell) for i, cell in enumerate(row)
                    }
    return out


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in VOLATILE:
                yield from _flat(f"{path}.{key}", item)
    elif isinstance(value, list):
        yield f"{path}: length", len(value)
        for index, item in enumerate(value):
            yield from _flat(f"{path}[{index}]", item)
    else:
        yield path, value


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def compare(before: dict[str, Any], after: dict[str, Any], words: bool) -> int:
    """Print what differs; the number of numbers that do, of those in both or in one alone."""
    numbers, texts = [], []
    for path in sorted(before.keys() | after.keys()):
        if path.startswith(SHUFFLED):
            continue
        old, new = before.get(path), after.get(path)
        if old != new or (path in before) != (path in after):
            is_text = isinstance(old, str) and isinstance(new, str)
            (texts if is_text else numbers).append(f"{path}: {old!r} -> {new!r}")
    print("\n".join(numbers))
    if words:
        print("\n".join(texts))
    print(f"{len(before)} values, {len(numbers)} numbers differ, {len(texts)} texts differ")
    return len(numbers)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("data", type=Path)
    recording.add_argument("out", type=Path)
    recording.add_argument("--only", default="", help="parts: study, laws, demo, or single names, by commas")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--words", action="store_true", help="list the texts that differ too")
    given = parser.parse_args()
    if given.verb == "record":
        values = record(given.data.resolve(), [part for part in given.only.split(",") if part])
        given.out.write_text(json.dumps(values, indent=0), "utf-8")
        print(f"{len(values)} values in {given.out}", file=sys.stderr)
        return
    before, after = (json.loads(path.read_text("utf-8")) for path in (given.before, given.after))
    recorded = {path.removesuffix(": exit code") for path in after if path.endswith(": exit code")}
    kept = {
        path: value
        for path, value in before.items()
        if path in after or re.split(r"[.\[:]", path)[0] in recorded
    }
    sys.exit(1 if compare(kept, after, given.words) else 0)


if __name__ == "__main__":
    main()
