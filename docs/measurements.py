"""Write docs/measurements.md and its figure from the JSON of `isoloss bench` in benchmarks/results.

isoloss bench cpu -o benchmarks/results/cpu-MACHINE.json
python docs/measurements.py
"""

import json
from pathlib import Path
from typing import Any

from isoloss import text
from isoloss.figures import growth, render
from isoloss.figures.figure import Figure

PAGE = Path(__file__).with_name("measurements.md")
PICTURE = PAGE.parent / "images" / "growth.svg"
RESULTS = PAGE.parents[1] / "benchmarks" / "results"

INTRO = """# Measurements

Made by [`isoloss bench`](commands.md). Each number was measured in turn with what stands beside it: another
program or a bound. `times`, their ratio, also holds on other machines or under load. Each table names its
machine; the figure draws the last table of `cpu`. No GPU was measured. Written by `docs/measurements.py`.

![{shown}](images/growth.svg)
"""


def page() -> str:
    benches = list(map(read, files()))
    intro = INTRO.format(shown=figure(benches).description)
    return "\n".join([intro, *map(section, benches)])


def files() -> list[Path]:
    return sorted(RESULTS.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def figure(benches: list[dict[str, Any]]) -> Figure:
    """Of one machine: ratios of several would make one line."""
    return growth.figure([bench["rows"] for bench in benches if bench["bench"] == "cpu"][-1])


def section(bench: dict[str, Any]) -> str:
    threads = text.plural(bench["threads"], "thread")
    where = f"{bench['versions']}; {bench['cores']} cores, load {bench['load']}, {threads}."
    lines = [
        f"## {bench['bench']}, {bench['machine']}\n",
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
    PICTURE.write_text(render.svg(figure(list(map(read, files())))), "utf-8")
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
