"""docs/measurements.md is what the kept results say."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import measurements


def test_the_page_is_written_from_the_results_of_today():
    assert measurements.PAGE.read_text("utf-8") == measurements.page(), "run python docs/measurements.py"
    assert len(measurements.files()) >= 3


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
    assert "EPYC, torch 2; 2 cores, load 1.5, 1 thread(s)." in said
    assert "| a loop | 12,346 tokens/s | 2.00 | a peer | 0.5 tokens/s |" in said
