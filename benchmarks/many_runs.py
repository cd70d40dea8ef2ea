"""Ten thousand runs in one study: CPU seconds to plan, list, read and report them, and the cost of a run.

    python benchmarks/many_runs.py --runs 10000 --trained 200

Some runs are trained for real on the local engine; the rest of the folder is filled with copies of their
records, whose losses differ as those of seeds do. Prints JSON, a line a stage.
"""

import argparse
import io
import json
import os
import resource
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console

from isoloss import files, load, report
from isoloss.records.schema import Record
from isoloss.records.store import read_record, run_folder
from isoloss.serve.board import Board
from isoloss.studies import launch
from isoloss.studies.status import status

WIDTHS = (8, 12, 16, 24)
"""Of one-layer LSTMs and Transformers: eight designs."""

STUDY = """
name = "many"
title = "Very many small runs"

[scale.mini]
vocabulary = 300
context = 16
batch_size = 4
tokens = [640, 1280]
seeds = {seeds}
evaluation = {{ windows = 4, final_windows = 8, trace_windows = 2, targets = 64 }}

[[scale.mini.models]]
family = "lstm"
shape = {{ n_layer = 1 }}
shapes = {widths}
learning_rates = [0.01]

[[scale.mini.models]]
family = "transformer"
shape = {{ n_layer = 1, n_head = 2 }}
shapes = {widths}
learning_rates = [0.01]
"""


def written(folder: Path, runs: int) -> str:
    """A study of at least so many runs, as a file."""
    seeds = list(range(-(-runs // (2 * len(WIDTHS)))))
    widths = "[" + ", ".join(f"{{ d_model = {width} }}" for width in WIDTHS) + "]"
    path = folder / f"many-{runs}.toml"
    files.write_text(path, STUDY.format(seeds=seeds, widths=widths))
    return str(path)


def fill(folder: Path, planned: list[launch.PlannedRun]) -> None:
    """A folder with a record for every planned run, copied from the trained one of the same shape."""
    rng = np.random.default_rng(0)
    trained: dict[str, Path] = {}
    for run in planned:
        place, shape = run_folder(folder, run.run_id), run.label
        if place.is_dir():
            trained[shape] = place
            continue
        source = trained[shape]
        place.mkdir(parents=True)
        for path in source.glob("*.parquet"):
            os.link(path, place / path.name)
        record = read_record(source).model_dump(mode="json")
        shift = 0.01 * rng.standard_normal()
        for one in record["evaluations"]:
            one["loss"] += shift
            for name in ("expected", "total"):
                one[name] += shift
            one["exits"] = [loss + shift for loss in one["exits"]]
        settings = run.settings.model_dump(mode="json")
        record |= {"run_id": run.run_id, "seed": run.settings.seed, "settings": settings}
        record.pop("digest", None)
        sealed = Record.model_validate_json(json.dumps(record)).sealed()
        (place / "record.json").write_text(json.dumps(sealed.model_dump(mode="json")), "utf-8")


@contextmanager
def timed(stage: str, runs: int):
    begin, wall = time.process_time(), time.monotonic()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    seconds = {
        "cpu_seconds": round(time.process_time() - begin, 2),
        "wall": round(time.monotonic() - wall, 2),
    }
    print(json.dumps({"stage": stage, "runs": runs, **seconds, "peak_mib": round(peak)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--trained", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="many-runs-"))
    os.environ["ISOLOSS_HOME"] = str(home / "home")
    quiet = Console(file=io.StringIO())
    try:
        launch.launch(written(home, 8), out=home / "out", workers=given.workers, console=quiet)
        with timed("train", given.trained):
            study = written(home, given.trained)
            launch.launch(study, out=home / "out", workers=given.workers, console=quiet)
        study = written(home, given.runs)
        with timed("plan", given.runs):
            planned = launch.dry_run(study, "mini", []).runs
        with timed("fill", given.runs):
            fill(home / "out", planned)
        with timed("find nothing to do", given.runs):
            launch.launch(study, out=home / "out", console=quiet)
        with timed("status", given.runs):
            states = {run.state for run in status(home / "out")}
        with timed("load and table", given.runs):
            rows = load(home / "out").table().height
        if states != {"done"} or rows <= given.runs:
            raise RuntimeError(f"not all runs are there: {states}, {rows} rows")
        board = Board([home / "out"])
        with timed("look, a live page's first", given.runs):
            board.put(board.look())
        with timed("look again", given.runs):
            board.put(board.look())
        print(json.dumps({"stage": "live page", "bytes": len(board.page().encode())}), flush=True)
        with timed("report", given.runs):
            report.write(home / "out")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
