"""What a study costs whoever reads it, against its number of runs."""

import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from isoloss.bench.report import write_copies
from isoloss.bench.rows import Row, over_first, rates
from isoloss.records import load

COUNTS = (52, 104, 208)


def more_runs(counts: Sequence[int], seconds: float) -> Iterator[Row]:
    """Time of reading copies of a study's runs and making their table, and bytes that these then hold."""
    with tempfile.TemporaryDirectory() as home:
        folders = [Path(home) / str(count) for count in counts]
        runs = [float(write_copies(folder, count)) for folder, count in zip(folders, counts, strict=True)]
        sides = [partial(read, folder) for folder in folders]
        times = over_first([1.0 / speed for speed in rates(sides, seconds, time.process_time)])
        memory = over_first([held(folder) for folder in folders])
    for number, bound in list(enumerate(over_first(runs)))[1:]:
        what = f"runs: {runs[number]:.0f} read over {runs[0]:.0f}"
        yield Row(what, times[number], "x time", "their number", bound)
        yield Row(what, memory[number], "x memory", "their number", bound)


def read(folder: Path) -> float:
    """Once."""
    load(folder).table()
    return 1.0


def held(folder: Path) -> float:
    """Bytes of a study and its table while they are in use, as Python counts them."""
    tracemalloc.start()
    try:
        study = load(folder)
        table = study.table()
        size = float(tracemalloc.get_traced_memory()[0])
        del study, table
        return size
    finally:
        tracemalloc.stop()
