"""`isoloss bench`: how fast, measured here, beside what else one could run."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoloss.cli.app import AsJson, app, say, show_json
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.bench.rows import Row

KINDS = ("cpu", "gpu", "fit", "sweep", "report")


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.")] = "cpu",
    seconds: Annotated[float, typer.Option(min=0.001, help="Of each turn that something timed gets.")] = 0.3,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, to see that it runs.")] = False,
    device: Annotated[
        str | None, typer.Option(help="For gpu and sweep. Default: cuda for gpu, cpu for sweep.")
    ] = None,
    runs: Annotated[
        list[int] | None, typer.Option(help="For report: numbers of runs, rising. Default: 28, 112, 448.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="For fit: runs with params, tokens or flops, and loss. Default: synthetic."),
    ] = None,
    where: Annotated[str | None, typer.Option(help="For fit: rows to keep, in SQL.")] = None,
    starts: Annotated[int, typer.Option(help="For fit: starts of the plain grid beside it.")] = 1500,
    refits: Annotated[int, typer.Option(help="For fit: bootstrap refits to time.")] = 4000,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the JSON there too.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="For cpu: how cost grows, as FILE.svg, .pdf, .png or .csv."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time the package on this machine, each number beside a peer or a bound of the same call.

    isoloss bench cpu --figure growth.svg
    isoloss bench gpu -o gpu.json
    isoloss bench sweep
    isoloss bench report --runs 28 --runs 1000
    isoloss bench fit --starts 500 --table runs.csv
    """
    if what not in KINDS:
        raise InputError(f"there is no benchmark {what!r}", mend=f"use one of {', '.join(KINDS)}")
    if figure is not None and what != "cpu":
        raise InputError(
            f"{what} measures no growth to draw", where="--figure", mend="leave it out, or time cpu"
        )
    from isoloss import files
    from isoloss.bench.rows import document
    from isoloss.figures import export, growth
    from isoloss.training.device import find, one_core

    if figure is not None:
        export.check(figure, "screen", "single")
    for path in filter(None, (out, figure)):
        files.make_folder(path.parent)  # a place that is none is said before minutes of work
    place = find(device or ("cuda" if what == "gpu" else "cpu"))
    if place.type == "cpu":
        one_core("cpu")
    if quick:
        seconds, runs, starts, refits = 0.005, runs or [28], 6, 100
    sizes = runs or [28, 112, 448]
    rows: list[Row] = []
    try:
        for row in measured(what, str(place), seconds, quick, sizes, (table, where, starts, refits)):
            rows.append(row)
            if not as_json:
                say(row.line())
    finally:
        results = document(what, place, [row.to_json() for row in rows])
        if out is not None and rows:
            files.write_json(out, results)
    if figure is not None:
        export.write(growth.figure(results["rows"]), figure)
    if as_json:
        show_json(results)


def measured(
    what: str,
    device: str,
    seconds: float,
    quick: bool,
    runs: list[int],
    fit: tuple[Path | None, str | None, int, int],
) -> "Iterator[Row]":
    """Rows as they are found; each benchmark imports what it alone needs."""
    if what == "cpu":
        from isoloss.bench.cpu import time_cpu

        yield from time_cpu(seconds)
    elif what == "sweep":
        from isoloss.bench.sweep import time_sweep

        yield from time_sweep(device, seconds)
    elif what == "report":
        from isoloss.bench.report import time_report

        yield from time_report(runs)
    elif what == "fit":
        from isoloss.bench.fit import time_fit

        table, where, starts, refits = fit
        yield from time_fit(table, where=where, starts=starts, refits=refits)
    else:
        from isoloss.bench import gpu

        yield from gpu.check_exactness(device, gpu.TINY if quick else gpu.EXACT)
        designs = (gpu.TINY[:1], gpu.TINY[:1], gpu.TINY[1:2]) if quick else (gpu.SMALL, gpu.LARGE, gpu.LSTMS)
        yield from gpu.time_gpu(device, seconds, *designs)
