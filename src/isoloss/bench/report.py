"""What reading and reporting a study costs, against its number of runs."""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isoloss import files, report
from isoloss.bench.rows import Row
from isoloss.records import Record, load, reference
from isoloss.records.store import read_plan, read_record, run_folder

SOURCE = "reference"
"""The study whose records are copied, with losses that differ as those of seeds do."""

NOISE = 0.01


def time_report(counts: Sequence[int]) -> Iterator[Row]:
    """CPU seconds and peak memory: of reading beside the bare JSON, of the report beside its growth."""
    first: tuple[float, float, float] | None = None
    with tempfile.TemporaryDirectory() as home:
        if len(counts) > 1:  # imports and caches would count as the first report's
            write_copies(Path(home) / "warm", counts[0])
            report.write(Path(home) / "warm")
        for count in counts:
            folder = Path(home) / str(count)
            runs = write_copies(folder, count)
            records = sorted(folder.glob("runs/*/record.json"))
            bare = cpu_seconds(lambda paths=records: [json.loads(path.read_bytes()) for path in paths])
            read = cpu_seconds(lambda place=folder: load(place).table())
            report_seconds = cpu_seconds(lambda place=folder: report.write(place))
            yield Row(f"{runs} runs: load().table()", read, "s", "their JSON alone", bare)
            yield Row(f"{runs} runs: report", report_seconds, "s", "load().table()", read)
            now = (float(runs), report_seconds, peak_bytes())
            first = first or now
            yield Row(f"{runs} runs: peak memory", now[2] / 1e6, "MB", "with the fewest", first[2] / 1e6)
            if now != first:
                growth = now[0] / first[0]
                yield Row(f"{runs} runs: report", report_seconds / first[1], "x time", "their number", growth)


def cpu_seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def peak_bytes() -> float:
    """Of this process so far; the largest study comes last."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)


def write_copies(folder: Path, count: int) -> int:
    """A study of about so many runs: each of the reference as often as the others. Says how many."""
    source = reference.folder(SOURCE)
    plan, rng = read_plan(source), np.random.default_rng(0)
    runs: list[dict[str, Any]] = []
    for copy in range(max(1, round(count / len(plan["runs"])))):
        for run in plan["runs"]:
            run_id = f"{run['run_id']}-{copy}"
            settings = run["settings"] | {"seed": run["settings"]["seed"] + 1000 * copy}
            origin, place = run_folder(source, run["run_id"]), run_folder(folder, run_id)
            for path in origin.glob("*.parquet"):
                files.write_bytes(place / path.name, path.read_bytes())
            record = shifted(read_record(origin), 0.0 if copy == 0 else NOISE * rng.standard_normal())
            record = record.sealed(run_id=run_id, seed=settings["seed"], settings=settings)
            files.write_json(place / "record.json", record.model_dump(mode="json"))
            runs.append(run | {"run_id": run_id, "settings": settings})
    files.write_json(folder / "study.json", plan | {"runs": runs})
    return len(runs)


def shifted(record: Record, by: float) -> Record:
    """With other losses, as another seed would have."""
    evaluations = [
        one.model_copy(
            update={
                "loss": one.loss + by,
                "expected": one.expected + by,
                "total": one.total + by,
                "exits": [loss + by for loss in one.exits],
            }
        )
        for one in record.evaluations
    ]
    return record.model_copy(update={"evaluations": evaluations})
