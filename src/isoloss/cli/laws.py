"""`isoloss fit`, `isoloss predict`, `isoloss isoflop`."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss import files, text
from isoloss.cli import columns as c
from isoloss.cli.app import AsJson, app, doubts, say, show, show_json


@app.command()
def fit(
    table: c.Table,
    law: Annotated[str, typer.Option(help="Which law: see `isoloss laws`.")],
    params: c.Params = None,
    tokens: c.Tokens = None,
    flops: c.Flops = None,
    loss: c.Loss = None,
    recurrence: c.Recurrence = None,
    position: c.Position = None,
    others: c.Others = None,
    where: c.Where = None,
    cluster: c.Cluster = None,
    weights: Annotated[str | None, typer.Option(help="Column of relative precisions.")] = None,
    objective: c.Objective = "huber-log",
    delta: c.Delta = 1e-3,
    level: c.Level = 0.9,
    intervals: Annotated[str, typer.Option(help="t, profile or bootstrap.")] = "t",
    bootstrap: Annotated[int, typer.Option(help="Refits of resampled runs or clusters, e.g. 1000.")] = 0,
    fixed: c.Fixed = None,
    tied: c.Tied = None,
    free: c.Free = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    bytes_per_token: Annotated[
        float | None, typer.Option(help="Turns bits per byte into nats a token.")
    ] = None,
    count: Annotated[
        str, typer.Option(help="Which count is N: params, params_total or params_executed.")
    ] = "params",
    tied_embeddings: Annotated[
        bool | None,
        typer.Option(
            "--tied-embeddings/--untied-embeddings",
            help="Lets one count follow from another.",
        ),
    ] = None,
    allow_negative: Annotated[
        bool, typer.Option("--allow-negative", help="For losses minus a baseline; needs squared.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the fit here, as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a law to a table of runs, or say why the runs do not determine it.

    isoloss fit runs.csv --law chinchilla --params N --tokens D -o fit.json
    isoloss fit studies/architectures-mini --law power-floor --where "cooled AND family = 'lstm'"
    isoloss fit runs.parquet --law chinchilla --tied alpha,beta --bootstrap 1000 --cluster run
    """
    from isoloss.sources import fit_table

    found = fit_table(
        law,
        table,
        columns=c.mapping(params, tokens, flops, loss, recurrence, position, others),
        where=where,
        cluster=cluster,
        weights=weights,
        bytes_per_token=bytes_per_token,
        count=count,
        tied_embeddings=tied_embeddings,
        allow_negative=allow_negative,
        objective=objective,
        delta=delta,
        level=level,
        fixed=c.numbers(fixed, "--fixed"),
        tied=c.groups(tied),
        free=free or [],
        intervals=intervals,
        bootstrap=bootstrap,
        seed=seed,
    )
    if out is not None:
        files.write_json(out, found.to_json())
    if as_json:
        show_json(found.to_json())
        return
    from isoloss.cli.results import fit_lines

    show(fit_lines(found))
    doubts(found.warnings)
    if out is not None:
        say(
            f"Written to {out}. Next: isoloss report {out}, isoloss predict {out} ..., isoloss plan {out} ..."
        )


Fit = Annotated[str, typer.Argument(help="FIT.json, or a published law: see `isoloss laws`.")]


@app.command()
def predict(
    source: Fit,
    params: Annotated[float | None, typer.Option(help="Parameters N.")] = None,
    tokens: Annotated[float | None, typer.Option(help="Training tokens D.")] = None,
    flops: Annotated[float | None, typer.Option(help="Training FLOPs C.")] = None,
    recurrence: Annotated[float | None, typer.Option(help="Loops.")] = None,
    position: Annotated[float | None, typer.Option(help="Position in the context, from 1.")] = None,
    others: Annotated[list[str] | None, typer.Option("--input", help="NAME=VALUE for other inputs.")] = None,
    level: Annotated[float | None, typer.Option(help="Of the interval. Default: the fit's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the loss of a new run, with the interval that it should fall in.

    isoloss predict fit.json --params 7e9 --tokens 1.4e11
    isoloss predict chinchilla-epoch --params 7e10 --tokens 1.4e12
    """
    from isoloss.sources.fits import inputs_for, read_fit

    found = read_fit(source)
    given = {
        "params": params,
        "tokens": tokens,
        "flops": flops,
        "recurrence": recurrence,
        "position": position,
    }
    told = c.inputs(given, others)
    answer = found.predict(level=level, **inputs_for(found, told))
    what = found.form.gives
    if as_json:
        show_json(
            {
                what: answer.loss,
                "interval": answer.interval and list(answer.interval),
                "band": answer.band and list(answer.band),
                "level": answer.level,
                "extrapolation": answer.extrapolation,
                "warnings": list(answer.warnings),
                "law": found.law,
                "source": found.source,
            }
        )
        return
    if what != "loss":
        say(f"{what} {text.count(answer.loss)}, by {found.formula()}")
    else:
        say(f"loss {answer.loss:.4f} nats a token, by {found.formula()}")
    if answer.interval is not None:
        say(f"a new run: {answer.interval[0]:.4f} to {answer.interval[1]:.4f} ({answer.level:.0%})")
        say(f"the law's mean: {answer.band[0]:.4f} to {answer.band[1]:.4f}")
    doubts(answer.warnings)


@app.command("laws")
def laws(as_json: AsJson = False) -> None:
    """List the laws that can be fitted, and those that papers printed.

    isoloss laws
    """
    from isoloss.laws import FORMS
    from isoloss.sources.published import names, published, unpublished

    printed = {name: published(name) for name in names()}
    if as_json:
        show_json(
            {
                "laws": {
                    law.name: {"formula": law.formula, "inputs": law.inputs, "source": law.source}
                    for law in FORMS.values()
                },
                "published": {name: one.source | {"law": one.law} for name, one in printed.items()},
                "unpublished": unpublished(),
            }
        )
        return
    for law in FORMS.values():
        say(f"{law.name}: {law.formula}\n    of {', '.join(law.inputs)}; {law.source}")
    say("\nPublished, for predict and plan:")
    for name, one in printed.items():
        say(f"{name}: {one.formula()}\n    {one.source['citation']}")
    say("\nOf these, papers print the form alone:")
    for name, reason in unpublished().items():
        say(f"{name}: {reason}")


@app.command()
def isoflop(
    table: c.Table,
    params: c.Params = None,
    tokens: c.Tokens = None,
    flops: c.Flops = None,
    loss: c.Loss = None,
    where: c.Where = None,
    run: Annotated[
        str | None, typer.Option(help="Column naming runs, where rows are points of training curves.")
    ] = None,
    method: Annotated[str, typer.Option(help="akima or parabola.")] = "akima",
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of one run's loss. Default: estimated.")
    ] = None,
    level: c.Level = 0.9,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read the best size at each compute off the runs, by budget, by envelope and by law, side by side.

    isoloss isoflop runs.csv --flops budget --params N --loss loss
    """
    from isoloss.cli.results import isoflop_lines
    from isoloss.plans.methods import exponents_by_method
    from isoloss.sources import columns_for

    read = columns_for(
        [],
        table,
        columns=c.mapping(params, tokens, flops, loss),
        where=where,
        cluster=run,
        more=("flops", "params", *(("tokens",) if tokens else ())),
    )
    found = exponents_by_method(
        read.inputs["flops"],
        read.inputs["params"],
        read.loss,
        tokens=read.inputs.get("tokens"),
        run=None if run is None else read.cluster.tolist(),
        method=method,
        noise=noise,
        level=level,
    )
    if out is not None:
        from isoloss.figures import isoflop as figures
        from isoloss.figures import render

        for figure in figures.pictures(found):
            render.write(figure, render.render(figure), out)
    if as_json:
        show_json(found.to_json())
        return
    show(isoflop_lines(found))
    doubts(read.warnings)
