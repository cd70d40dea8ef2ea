"""`isoloss compare`, `isoloss backtest`: laws judged on runs that they did not see."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoloss.cli import options as o
from isoloss.cli.app import AsJson, app, progress, respond
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.laws import Array
    from isoloss.plans.holdout import Mask
    from isoloss.sources.fitting import Columns

HOLDOUT = typer.Option(help="largest-params, largest-tokens, largest-flops, or COL=VALUE for rows to hide.")


@app.command()
@o.grouped
def compare(
    *,
    table: o.Table,
    laws: Annotated[str, typer.Option(help="Names of laws, separated by commas.")],
    columns: o.Columns,
    holdout: Annotated[str | None, HOLDOUT] = None,
    objective: o.Objective,
    as_json: AsJson = False,
) -> None:
    """Rank laws by their error on held-out runs, beside an information criterion.

    isoloss compare runs.csv --laws chinchilla,outer-exponent,kaplan-nd
    """
    from isoloss.cli.results import comparison_lines
    from isoloss.plans.compare import compare as ranked

    names = [name.strip() for name in laws.split(",") if name.strip()]
    read, inputs, hidden = _read(names, table, columns, holdout or "")
    comparison = ranked(
        names,
        inputs,
        read.loss,
        holdout=None if holdout is None else hidden,
        cluster=read.cluster,
        **vars(objective),
    )
    respond(as_json, comparison, comparison_lines(comparison), [*comparison.warnings, *read.warnings])


@app.command()
@o.grouped
def backtest(
    *,
    table: o.Table,
    law: Annotated[str, typer.Option(help="Which law.")],
    holdout: Annotated[str, HOLDOUT] = "largest-params",
    rungs: Annotated[int | None, typer.Option(help="How many of the largest values to hide.")] = None,
    columns: o.Columns,
    objective: o.Objective,
    held: o.Held,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hide the largest runs, predict them, and score error and intervals beside simple baselines.

    isoloss backtest runs.csv --law chinchilla --holdout largest-params
    isoloss backtest runs.csv --law chinchilla --holdout "dataset=c4"
    """
    from isoloss.cli.results import backtest_lines
    from isoloss.plans.backtest import backtest as judged

    read, inputs, hidden = _read([law], table, columns, holdout)
    options = vars(objective) | held.options()
    result = judged(law, inputs, read.loss, holdout=hidden, rungs=rungs, cluster=read.cluster, **options)
    if out is not None:
        from isoloss.figures import backtest as figures
        from isoloss.figures import render

        picture = figures.figure(result)
        for path in render.write(picture, render.render(picture), out):
            progress.print(str(path))
    respond(as_json, result, backtest_lines(result), [*result.warnings, *read.warnings])


def _read(
    laws: list[str], table: Path, columns: o.Columns, holdout: str
) -> "tuple[Columns, dict[str, Array], str | Mask]":
    """The table as the laws take it, their inputs alone, and what to hide: a rule's name or the rows."""
    from isoloss.sources import columns_for
    from isoloss.sources.fitting import equal_to

    column, equals, value = (part.strip() for part in holdout.partition("="))
    if equals and not (column and value):
        raise InputError(f"{holdout!r} is not COL=VALUE", where="--holdout", mend="write COL=VALUE")
    more = {"holdout": column} if equals else {}
    read = columns_for(
        laws,
        table,
        columns=columns.mapping | more,
        where=columns.where,
        cluster=columns.cluster,
        more=tuple(more),
    )
    inputs = {name: values for name, values in read.inputs.items() if name not in more}
    return read, inputs, equal_to(read.runs.frame["holdout"], value, column) if equals else holdout
