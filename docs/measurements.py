"""Write docs/measurements.md and its figure from the JSON of `isoloss bench` in benchmarks/results.

isoloss bench cpu -o benchmarks/results/cpu-MACHINE.json
python docs/measurements.py
"""

import json
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from isoloss import text
from isoloss.figures import render
from isoloss.figures.figure import Figure
from isoloss.figures.marks import chart_of
from isoloss.figures.style import PREDICTED, QUIET, REAL, log_axis

PAGE = Path(__file__).with_name("measurements.md")
PICTURE = PAGE.parent / "images" / "growth.svg"
RESULTS = PAGE.parents[1] / "benchmarks" / "results"

INTRO = """# Measurements

Made by [`isoloss bench`](commands.md), each number in turn with the peer or the bound beside it, so that the
ratio holds where the number does not: on another machine, or beside other work. Written by
`python docs/measurements.py`. No GPU has been measured yet.

![{shown}](images/growth.svg)
"""

GROWING = {"N": "parameters", "B": "batch", "D": "updates", "T": "context", "T_m": "loops"}
TIME, MEMORY, BOUND = "time, beside FLOPs", "memory, beside the estimate", "as its bound says"
LOOKS = {TIME: (REAL, []), MEMORY: (PREDICTED, []), BOUND: (QUIET, [4, 4])}


def page() -> str:
    benches = list(map(read, files()))
    intro = INTRO.format(shown=figure(benches).description)
    return "\n".join([intro, *map(section, benches)])


def files() -> list[Path]:
    return sorted(RESULTS.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def figure(benches: list[dict[str, Any]]) -> Figure:
    """What times as much of a symbol costs, over what its bound says; log-log, a panel a symbol."""
    table = growth([row for bench in benches if bench["bench"] == "cpu" for row in bench["rows"]])
    ends = table.group_by("symbol", "what", maintain_order=True).last()
    share = {
        what: ends.filter(what=what).select(pl.col("times") / pl.col("bound"))["times"] for what in LOOKS
    }
    time, memory = (f"{share[what].min():.2f} to {share[what].max():.2f} times" for what in (TIME, MEMORY))
    title = f"Grown to the end, time is {time} what FLOPs say, memory {memory} the estimate"
    says = {"bound": "times by the bound", "times": "times measured"}
    x, y = (
        log_axis(axis, name, says[name], 1.0, table["times"].max(), room=1.1)
        for axis, name in ((alt.X, "bound"), (alt.Y, "times"))
    )
    colours, dashes = map(list, zip(*LOOKS.values(), strict=True))
    chart = (
        chart_of(table)
        .mark_line(point=True)
        .encode(
            x,
            y,
            color=alt.Color("what:N", title=None).scale(domain=list(LOOKS), range=colours),
            strokeDash=alt.StrokeDash("what:N", title=None).scale(domain=list(LOOKS), range=dashes),
            facet=alt.Facet("symbol:N", title=None, columns=3, sort=[*GROWING.values()]),
        )
        .properties(width=190, height=190)
    )
    described = f"{title}. Panels for {', '.join(GROWING.values())}; lines of time, memory and the bound."
    return Figure("growth", chart, title, described, "", "", table, subtitle="isoloss bench cpu, one core")


def growth(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Each line from where it begins, (1, 1); the bound is the diagonal."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        symbol, what = row["what"].partition(":")[0], {"x time": TIME, "x memory": MEMORY}.get(row["unit"])
        if symbol in GROWING and what:
            ends = found.setdefault((GROWING[symbol], BOUND), [(1.0, 1.0), (1.0, 1.0)])
            ends[1] = max(ends[1], (row["other"], row["other"]))
            found.setdefault((GROWING[symbol], what), [(1.0, 1.0)]).append((row["other"], row["value"]))
    values = [(*key, *pair) for key, pairs in found.items() for pair in pairs]
    return pl.DataFrame(values, schema=["symbol", "what", "bound", "times"], orient="row")


def section(bench: dict[str, Any]) -> str:
    threads = text.plural(bench["threads"], "thread")
    where = f"{bench['versions']}; {bench['cores']} cores, load {bench['load']}, {threads}."
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
    PICTURE.write_text(render.svg(figure(list(map(read, files())))), "utf-8")
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
