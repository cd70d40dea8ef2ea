"""`isoloss bench`: how fast, measured here, beside what else one could run."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli.app import AsJson, app, progress, respond
from isoloss.errors import InputError


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help="Only 'fit' exists so far.")] = "fit",
    table: Annotated[
        Path | None,
        typer.Option(help="Runs with params, tokens or flops, and loss. Default: synthetic."),
    ] = None,
    where: Annotated[str | None, typer.Option(help="Rows to keep, in SQL.")] = None,
    starts: Annotated[int, typer.Option(help="Starts of the plain grid that it is compared with.")] = 4500,
    refits: Annotated[int, typer.Option(help="Bootstrap refits to time.")] = 4000,
    as_json: AsJson = False,
) -> None:
    """Time one fit and its bootstrap beside a plain SciPy grid of starts: CPU seconds and objective.

    isoloss bench fit
    isoloss bench fit --starts 500 --table runs.csv
    """
    from isoloss.cli.fit_benchmark import time_fit

    if what != "fit":
        raise InputError(f"there is no benchmark {what!r} yet", mend="isoloss bench fit")
    rows = time_fit(table, where=where, starts=starts, refits=refits, say=progress.print)
    respond(as_json, rows, (row.line() for row in rows))
