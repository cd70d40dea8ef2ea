"""`isoloss compare`, `isoloss backtest`: laws judged on runs that they did not see."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli import columns as c
from isoloss.cli.app import AsJson, app, doubts, progress, show, show_json
from isoloss.errors import InputError

Holdout = Annotated[
    str | None,
    typer.Option(help="largest-params, largest-tokens, largest-flops, or COL=VALUE for rows to hide."),
]


@app.command()
def compare(
    table: c.Table,
    laws: Annotated[str, typer.Option(help="Names of laws, separated by commas.")],
    params: c.Params = None,
    tokens: c.Tokens = None,
    flops: c.Flops = None,
    loss: c.Loss = None,
    recurrence: c.Recurrence = None,
    position: c.Position = None,
    others: c.Others = None,
    where: c.Where = None,
    cluster: c.Cluster = None,
    holdout: Holdout = None,
    objective: c.Objective = "huber-log",
    delta: c.Delta = 1e-3,
    level: c.Level = 0.9,
    as_json: AsJson = False,
) -> None:
    """Rank laws by their error on held-out runs, beside an information criterion.

    isoloss compare runs.csv --laws chinchilla,outer-exponent,kaplan-nd
    """
    from isoloss.cli.results import comparison_lines
    from isoloss.plans.compare import compare as ranked
    from isoloss.sources import columns_for

    names = [name.strip() for name in laws.split(",") if name.strip()]
    mapped = c.mapping(params, tokens, flops, loss, recurrence, position, others)
    hidden, more = _hidden(holdout)
    read = columns_for(names, table, columns=mapped | more, where=where, cluster=cluster, more=tuple(more))
    found = ranked(
        names,
        {name: values for name, values in read.inputs.items() if name not in more},
        read.loss,
        holdout=hidden(read.runs.frame),
        cluster=read.cluster,
        objective=objective,
        delta=delta,
        level=level,
    )
    if as_json:
        show_json(found.to_json())
        return
    show(comparison_lines(found))
    doubts([*found.warnings, *read.warnings])


@app.command()
def backtest(
    table: c.Table,
    law: Annotated[str, typer.Option(help="Which law.")],
    holdout: Holdout = "largest-params",
    rungs: Annotated[int | None, typer.Option(help="How many of the largest values to hide.")] = None,
    params: c.Params = None,
    tokens: c.Tokens = None,
    flops: c.Flops = None,
    loss: c.Loss = None,
    recurrence: c.Recurrence = None,
    position: c.Position = None,
    others: c.Others = None,
    where: c.Where = None,
    cluster: c.Cluster = None,
    objective: c.Objective = "huber-log",
    delta: c.Delta = 1e-3,
    level: c.Level = 0.9,
    fixed: c.Fixed = None,
    tied: c.Tied = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hide the largest runs, predict them, and score error and intervals beside simple baselines.

    isoloss backtest runs.csv --law chinchilla --holdout largest-params
    isoloss backtest runs.csv --law chinchilla --holdout "dataset=c4"
    """
    from isoloss.cli.results import backtest_lines
    from isoloss.plans.backtest import backtest as judged
    from isoloss.sources import columns_for

    hidden, more = _hidden(holdout)
    mapped = c.mapping(params, tokens, flops, loss, recurrence, position, others)
    read = columns_for(law, table, columns=mapped | more, where=where, cluster=cluster, more=tuple(more))
    found = judged(
        law,
        {name: values for name, values in read.inputs.items() if name not in more},
        read.loss,
        holdout=hidden(read.runs.frame),
        rungs=rungs,
        cluster=read.cluster,
        objective=objective,
        delta=delta,
        level=level,
        fixed=c.numbers(fixed, "--fixed"),
        tied=c.groups(tied),
    )
    if out is not None:
        from isoloss.figures import backtest as figures
        from isoloss.figures import render

        picture = figures.figure(found)
        for path in render.write(picture, render.render(picture), out):
            progress.print(str(path))
    if as_json:
        show_json(found.to_json())
        return
    show(backtest_lines(found))
    doubts([*found.warnings, *read.warnings])


def _hidden(holdout: str | None):
    """What to hide, once the table is read, and the column that it needs."""
    if holdout is None or "=" not in holdout:
        return (lambda frame: holdout), {}
    column, _, value = holdout.partition("=")
    if not (column.strip() and value.strip()):
        raise InputError(f"{holdout!r} is not COL=VALUE", where="--holdout", mend="write COL=VALUE")

    def mask(frame):
        from isoloss.sources.fitting import equal_to

        return equal_to(frame["holdout"], value.strip(), column.strip())

    return mask, {"holdout": column.strip()}
