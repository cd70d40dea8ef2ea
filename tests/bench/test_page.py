"""docs/measurements.md is what the kept results say."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import measurements

from isoloss.figures import growth, render


def test_the_page_is_written_from_the_results_of_today():
    assert measurements.PAGE.read_text("utf-8") == measurements.page(), "run python docs/measurements.py"
    assert len(measurements.files()) >= 3


def test_the_figure_is_that_of_the_results_of_today():
    figure = measurements.figure([measurements.read(path) for path in measurements.files()])
    drawn = " ".join(re.findall(r">([^<>]+)<", measurements.PICTURE.read_text("utf-8")))
    assert measurements.PICTURE.read_text("utf-8") == render.svg(figure), "run python docs/measurements.py"
    assert set(figure.table["symbol"]) == set(growth.GROWING.values())
    assert all(name in drawn for name in [*growth.GROWING.values(), *growth.LOOKS])


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
        "machine": "EPYC",
        "versions": "EPYC, torch 2",
        "cores": 2,
        "load": 1.5,
        "threads": 1,
        "rows": [row],
    }
    section = measurements.section(json.loads(json.dumps(bench)))
    assert section.startswith("## cpu, EPYC\n")
    assert "EPYC, torch 2; 2 cores, load 1.5, 1 thread." in section
    assert "| a loop | 12,346 tokens/s | 2.00 | a peer | 0.5 tokens/s |" in section
