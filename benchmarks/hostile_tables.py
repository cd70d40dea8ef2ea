"""Damaged tables through every command: each ends in an answer or a reason, and nothing half-written.

    python benchmarks/hostile_tables.py 500 > benchmarks/results/hostile_tables.txt

A second number is that of the first table.

A table is a sweep of five budgets with some fields, lines, headers or bytes damaged, as CSV, NDJSON or
Parquet, the same for the same number. A test runs the first few (`tests/cli/test_tables.py`).
"""

import contextlib
import io
import platform
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from isoloss import cli

COMMANDS = {
    "fit": ("--law", "chinchilla"),
    "compare": ("--laws", "chinchilla,power"),
    "backtest": ("--law", "chinchilla"),
    "isoflop": (),
    "forecast": ("--params", "1B", "--tokens", "20B"),
}
"""What is asked of a table; a fit is then asked for more."""
OF_A_FIT = {
    "predict": ("--params", "1B", "--tokens", "20B"),
    "plan": ("--flops", "1e21"),
    "design": ("--budget", "1e20", "--params", "1B", "--tokens", "20B"),
}
ODD = (
    "", "nan", "inf", "-1", "0", "1", "2", "1e400", "7B", "x", '"', "1,5", "\u20ac", "-0.0", "1e-300",
    "1e300", "NA", "True", "finished", "\x1b[31m", "=1+1", "9" * 30, "\u0661", "null", "{}", "[1]",
)  # fmt: skip
HEADERS = (
    "", "loss", "params", "status", "seed", "run_id", "step", "N", "tokens_B", "val_bpb", "vocab", "origin",
    "row", "family", "cooled", "learning_rate", "max_steps", "domain",
)  # fmt: skip


def sweep() -> pl.DataFrame:
    """Five compute budgets of seven sizes each."""
    rng, rows = np.random.default_rng(0), []
    for flops in np.geomspace(1e18, 1e20, 5):
        for params in 0.1 * (flops / 6) ** 0.5 * np.geomspace(0.2, 5, 7):
            tokens = flops / 6 / params
            loss = (1.8 + 480 * params**-0.35 + 2100 * tokens**-0.37) * np.exp(rng.normal(0, 5e-4))
            rows.append({"flops": flops, "params": params, "tokens": tokens, "loss": loss})
    return pl.DataFrame(rows)


def damaged(number: int, folder: Path) -> Path:
    """The table of that number, in a file of ``folder``."""
    rng = random.Random(number)  # noqa: S311 - to repeat it, not to hide it
    kind = rng.choice(("csv",) * 7 + ("ndjson",) * 2 + ("parquet",))
    if kind == "parquet":
        buffer = io.BytesIO()
        sweep().write_parquet(buffer)
        data = buffer.getvalue()
    else:
        table = _rows(sweep(), rng)
        data = (_csv(table) if kind == "csv" else _ndjson(table)).encode("utf-8", "surrogatepass")
    if kind == "parquet" or rng.random() < 0.05:
        data = _bytes(data, rng)
    path = folder / f"table.{kind}"
    path.write_bytes(data)
    return path


def _rows(table: pl.DataFrame, rng: random.Random) -> list[list[str]]:
    lines = [list(table.columns), *([str(value) for value in row] for row in table.iter_rows())]
    for _ in range(rng.randint(1, 3)):
        line, place, kind = rng.choice(lines[1:]), rng.randrange(4), rng.random()
        if kind < 0.3:  # a value that is wrong and looks right
            for row in lines[1 :: rng.choice((1, 2, 9, 40))]:
                with contextlib.suppress(ValueError):
                    row[place] = repr(float(row[place]) * rng.choice((1e-9, 1e-3, 0.1, 1.01, 3.0, 1e3, 1e6)))
        elif kind < 0.45:
            line[place] = rng.choice(ODD)
        elif kind < 0.65:  # a column more, whose name means something
            lines[0].append(rng.choice(HEADERS))
            values = [rng.choice(ODD) for _ in range(rng.randint(1, 3))]
            for row in lines[1:]:
                row.append(rng.choice(values))
        elif kind < 0.7:
            lines[0][place] = rng.choice(HEADERS)
        elif kind < 0.75:
            line.append(rng.choice(ODD))
        elif kind < 0.85:
            lines[1:] = rng.sample(lines[1:], rng.randint(1, len(lines) - 1))
        else:
            lines += [list(row) for row in lines[1 : rng.randint(1, len(lines))]]
    return lines


def _csv(lines: list[list[str]]) -> str:
    return "\n".join(",".join(line) for line in lines) + "\n"


def _ndjson(lines: list[list[str]]) -> str:
    """Numbers as they are, so that some lines are no JSON."""
    rows = (
        ", ".join(f'"{name}": {cell}' for name, cell in zip(lines[0], row, strict=False)) for row in lines[1:]
    )
    return "".join(f"{{{row}}}\n" for row in rows)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, and now and then the end torn off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.3 else changed)


def call(*arguments: str) -> tuple[int | str, str, str]:
    """Exit code, stdout and stderr of a command; a traceback in place of the code of one that ends so."""
    out, talk, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["isoloss", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(talk):
            cli.main()
        code: int | str = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # what a user would meet as a traceback, polars' panics too
        code = traceback.format_exc()
    finally:
        sys.argv = before
    return code, out.getvalue(), talk.getvalue()


def answers(path: Path) -> Iterator[tuple[str, int | str, str, str]]:
    """Command, exit code, stdout and stderr of every command on the table in ``path``."""
    fit = path.with_name("fit.json")
    for command, options in COMMANDS.items():
        more = ("-o", str(fit)) if command == "fit" else ()
        yield command, *call(command, str(path), *options, *more)
    yield "import", *call("import", "csv", str(path), "-o", str(path.with_name("out.csv")))
    if fit.exists():
        for command, options in OF_A_FIT.items():
            yield command, *call(command, str(fit), *options)


def faults(number: int) -> tuple[Counter[str], list[str]]:
    """How the commands ended on the table of that number, and what is wrong with that."""
    ends: Counter[str] = Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path = damaged(number, Path(folder))
        for command, code, said, talk in answers(path):
            ends[f"{command} {code if isinstance(code, int) else 'traceback'}"] += 1
            if code not in (0, 2, 3) or "Traceback" in talk:
                wrong.append(f"table {number}, {command}: {code}")
            elif code and (said or "To mend it" not in talk):
                wrong.append(f"table {number}, {command}: no reason, or an answer beside it: {talk[:200]}")
            elif not code and "nan" in said.lower().replace("–", " ").split():
                wrong.append(f"table {number}, {command}: nan in an answer")
        left = {file.name for file in Path(folder).iterdir()} - {path.name, "fit.json", "out.csv"}
        wrong += [f"table {number}: left {name}" for name in sorted(left)]
    return ends, wrong


def main(count: int, first: int = 0) -> None:
    start, ends = time.process_time(), Counter[str]()
    print(f"# isoloss: damaged tables {first} to {first + count - 1}; Python {platform.python_version()}")
    failed = 0
    for number in range(first, first + count):
        ended, wrong = faults(number)
        ends += ended
        failed += bool(wrong)
        for line in wrong:
            print(line, flush=True)
    commands = sorted({end.rpartition(" ")[0] for end in ends})
    for command in commands:
        codes = [
            f"{end.rpartition(' ')[2]}: {n}"
            for end, n in sorted(ends.items())
            if end.startswith(f"{command} ")
        ]
        print(f"{command:10} exit codes {', '.join(codes)}")
    print(f"tables with a fault: {failed} of {count}; {time.process_time() - start:.0f} CPU-seconds")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
