"""`isoloss plot`: one figure of a study or a fit, for a screen or a paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoloss.cli import options as o
from isoloss.cli.app import AsJson, app, respond
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.figures.figure import Figure


@app.command()
@o.grouped
def plot(
    kind: Annotated[str, typer.Argument(help="Which figure: see `isoloss plot list`.")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="A study's folder, `reference`, a FIT.json, a law or a table; others are drawn beside it.",
        ),
    ] = None,
    *,
    style: Annotated[str, typer.Option(help="screen or paper.")] = "screen",
    width: Annotated[
        str, typer.Option(help="With --style paper: single column (3.25 inches) or double (6.75).")
    ] = "single",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="FILE.svg, .pdf, .png or .csv. Default: KIND.svg.")
    ] = None,
    runs: o.RunsOptions,
    as_json: AsJson = False,
) -> None:
    """Draw one figure. With --style paper: a column's width, 8-point text, no title, the caption beside it.

    isoloss plot list
    isoloss plot gap-by-tokens reference
    isoloss plot iso-loss fit.json --style paper -o iso-loss.pdf
    isoloss plot iso-loss fit.json runs.csv --column params=N
    """
    from isoloss.figures import export, gallery

    if kind == "list":
        return respond(as_json, *gallery.listing())
    if not sources:
        raise InputError(
            "needs a source", where=kind, mend="name a study's folder, a FIT.json, a law or a table"
        )
    export.check(out or Path(f"{kind}.svg"), style, width)
    if runs != type(runs)() and not any(map(gallery.is_table, sources)):
        raise InputError(
            "options of a table were given, and no source is one", where=kind, mend="leave them out"
        )
    drawn = gallery.of_sources(kind, sources, **runs.reading())
    written = [
        path for figure in drawn for path in export.write(figure, place(figure, kind, out), style, width)
    ]
    answer = {"paths": [str(path) for path in written], "titles": [figure.title for figure in drawn]}
    respond(as_json, answer, [*(figure.title for figure in drawn), *(f"Written: {path}" for path in written)])


def place(figure: "Figure", kind: str, out: Path | None) -> Path:
    """Where a figure goes; of several of one kind each keeps what its name adds to the kind's."""
    if out is None:
        return Path(f"{figure.name}.svg")
    return out.with_stem(out.stem + figure.name.removeprefix(kind)) if figure.name.startswith(kind) else out
