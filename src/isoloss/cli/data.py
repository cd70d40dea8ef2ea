"""`isoloss data list|fetch`: public run tables, from their own repositories."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli.app import AsJson, Group, app, respond

data_app = typer.Typer(
    cls=Group, name="data", help="Public tables of runs: list, fetch.", no_args_is_help=True
)
app.add_typer(data_app)


@data_app.command("list")
def data_list(as_json: AsJson = False) -> None:
    """List the public tables of runs that can be fetched, with licence and citation, and those that cannot.

    isoloss data list
    """
    from isoloss.sources import public

    tables = dict(public.tables())
    lines = [
        f"{table.about}\n    cannot be fetched: {table.reason}" if table.reason else table.about
        for table in tables.values()
    ]
    respond(as_json, tables, lines)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A table from `isoloss data list`.")],
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for it. Default: the shared cache.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a public table of runs from its own repository, and check its hash.

    isoloss data fetch epoch-chinchilla
    """
    from isoloss.sources import public

    path, table = public.fetch(name, folder), public.tables()[name]
    options = " ".join(f"--column {ours}='{theirs}'" for ours, theirs in table.columns.items())
    where = f' --where "{table.where}"' if table.where else ""
    lines = [str(path), f"To fit it: isoloss fit {path} --law chinchilla {options}{where}"]
    respond(as_json, {"path": str(path), "columns": table.columns, "where": table.where}, lines)
