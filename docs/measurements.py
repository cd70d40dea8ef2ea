"""Write docs/measurements.md from the JSON of `isoloss bench` in benchmarks/results.

isoloss bench cpu -o benchmarks/results/cpu-MACHINE.json
python docs/measurements.py
"""

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("measurements.md")
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"

INTRO = """# Measurements

Made by [`isoloss bench`](commands.md), each number in turn with the peer or the bound beside it, so that the
ratio holds where the number does not: on another machine, or beside other work. Written by
`python docs/measurements.py`. No GPU has been measured yet.
"""


def page() -> str:
    return "\n".join([INTRO, *(section(json.loads(path.read_text("utf-8"))) for path in files())])


def files() -> list[Path]:
    return sorted(RESULTS.glob("*.json"))


def section(bench: dict[str, Any]) -> str:
    where = (
        f"{bench['versions']}; {bench['cores']} cores, load {bench['load']}, {bench['threads']} thread(s)."
    )
    lines = [
        f"## {bench['bench']}\n",
        f"{where}\n",
        "| what | measured | times | beside | measured |",
        "| --- | --: | --: | --- | --: |",
    ]
    for row in bench["rows"]:
        ours, theirs = (f"{number(row[key])} {row['unit']}" for key in ("value", "other"))
        lines.append(f"| {row['what']} | {ours} | {row['ratio']:.2f} | {row['beside']} | {theirs} |")
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
