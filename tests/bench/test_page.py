"""docs/measurements.md is what the kept results say."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import measurements


def test_the_page_is_written_from_the_results_of_today():
    assert measurements.PAGE.read_text("utf-8") == measurements.page(), "run python docs/measurements.py"
    assert len(measurements.files()) >= 3


def rows_of(symbol, unit, pairs):
    return [
        {"what": f"{symbol}: one", "unit": unit, "value": value, "other": other} for value, other in pairs
    ]


def test_the_figure_is_that_of_the_results_of_today():
    figure = measurements.figure([measurements.read(path) for path in measurements.files()])
    drawn = " ".join(re.findall(r">([^<>]+)<", measurements.PICTURE.read_text("utf-8")))
    assert figure.title in drawn, "run python docs/measurements.py"
    assert set(figure.table["symbol"]) == set(measurements.GROWING.values())
    assert all(name in drawn for name in [*measurements.GROWING.values(), *measurements.LOOKS])


def test_a_line_of_growth_begins_at_one_beside_its_bound():
    rows = [*rows_of("N", "x time", [(2.0, 3.0), (3.0, 8.0)]), *rows_of("N", "x memory", [(9.0, 4.0)])]
    other = [
        {"what": "N: one", "unit": "tokens/s", "value": 1.0, "other": 1.0},
        *rows_of("Q", "x time", [(2, 2)]),
    ]
    table = measurements.growth([*rows, *other])
    lines = {what: part.select("bound", "times").rows() for (what,), part in table.group_by("what")}
    assert lines == {
        measurements.BOUND: [(1.0, 1.0), (8.0, 8.0)],
        measurements.TIME: [(1.0, 1.0), (3.0, 2.0), (8.0, 3.0)],
        measurements.MEMORY: [(1.0, 1.0), (4.0, 9.0)],
    }
    title = measurements.figure([{"bench": "cpu", "rows": rows}]).title
    assert title == (
        "Grown to the end, time is 0.38 to 0.38 times what FLOPs say, memory 2.25 to 2.25 times the estimate"
    )


def test_a_section_names_the_machine_and_both_numbers():
    row = {
        "what": "a loop",
        "value": 12345.6,
        "unit": "tokens/s",
        "beside": "a peer",
        "other": 0.5,
        "ratio": 2.0,
    }
    bench = {
        "bench": "cpu",
        "versions": "EPYC, torch 2",
        "cores": 2,
        "load": 1.5,
        "threads": 1,
        "rows": [row],
    }
    said = measurements.section(json.loads(json.dumps(bench)))
    assert "EPYC, torch 2; 2 cores, load 1.5, 1 thread." in said
    assert "| a loop | 12,346 tokens/s | 2.00 | a peer | 0.5 tokens/s |" in said
