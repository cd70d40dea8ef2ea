"""`isoloss data list|fetch`: public run tables, from their own repositories."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli.app import AsJson, app, say, show_json

data_app = typer.Typer(name="data", help="Public tables of runs: list, fetch.", no_args_is_help=True)
app.add_typer(data_app)


@data_app.command("list")
def data_list(as_json: AsJson = False) -> None:
    """List the public tables of runs that can be fetched, with licence and citation, and those that cannot.

    isoloss data list
    """
    from dataclasses import asdict

    from isoloss.sources import public

    tables = public.tables()
    if as_json:
        show_json({name: asdict(table) for name, table in tables.items()})
        return
    for table in tables.values():
        say(table.about)
        if table.reason:
            say(f"    cannot be fetched: {table.reason}")


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

    path = public.fetch(name, folder)
    table = public.tables()[name]
    if as_json:
        show_json({"path": str(path), "columns": dict(table.columns), "where": table.where})
        return
    say(str(path))
    options = " ".join(f"--column {ours}='{theirs}'" for ours, theirs in table.columns.items())
    where = f' --where "{table.where}"' if table.where else ""
    say(f"To fit it: isoloss fit {path} --law chinchilla {options}{where}")
