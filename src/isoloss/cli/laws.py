"""`isoloss fit`, `isoloss predict`, `isoloss laws`, `isoloss isoflop`."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli import options as o
from isoloss.cli.app import AsJson, app, respond, say
from isoloss.errors import Refusal


@app.command()
@o.grouped
def fit(
    *,
    table: o.Table,
    law: Annotated[str, typer.Option(help="Which law: see `isoloss laws`.")],
    columns: o.ColumnOptions,
    weights: Annotated[str | None, typer.Option(help="Column of relative precisions.")] = None,
    objective: o.ObjectiveOptions,
    intervals: Annotated[str, typer.Option(help="t, profile or bootstrap.")] = "t",
    bootstrap: Annotated[int, typer.Option(help="Refits of resampled runs or clusters, e.g. 1000.")] = 0,
    held: o.HeldOptions,
    free: Annotated[list[str] | None, typer.Option(help="Frees a parameter that the law holds.")] = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
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
    from isoloss.analysis.fit_doubts import doubted
    from isoloss.analysis.results import fit_parts
    from isoloss.sources import fit_table

    fitted = fit_table(
        law,
        table,
        **columns.reading(),
        cluster=columns.cluster,
        weights=weights,
        free=free or [],
        intervals=intervals,
        bootstrap=bootstrap,
        seed=seed,
        allow_negative=allow_negative,
        **vars(objective),
        **held.options(),
    )
    fitted = doubted(fitted)
    if out is not None:
        from isoloss import files

        files.write_json(out, fitted.to_json())
    respond(as_json, fitted, fit_parts(fitted), fitted.warnings, verbose=columns.verbose)
    if out is not None and not as_json:
        say(
            f"Written to {out}. Next: isoloss report {out}, isoloss predict {out} ..., isoloss plan {out} ..."
        )


@app.command()
def predict(
    source: o.Fit,
    params: Annotated[float | None, o.number("Parameters N, such as 70B.", "params")] = None,
    tokens: Annotated[float | None, o.number("Training tokens D, such as 1.4T.", "tokens")] = None,
    flops: Annotated[float | None, o.number("Training FLOPs C, such as 3e21.", "flops")] = None,
    recurrence: Annotated[float | None, o.number("Loops.")] = None,
    position: Annotated[float | None, o.number("Position in the context, from 1.")] = None,
    others: o.MoreInputs = None,
    level: Annotated[float | None, typer.Option(help="Of the interval. Default: the fit's.")] = None,
    verbose: o.Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Predict the loss of a new run, with the interval that it should fall in.

    isoloss predict fit.json --params 7e9 --tokens 1.4e11
    isoloss predict chinchilla-epoch --params 70B --tokens 1.4T
    """
    from isoloss.analysis.results import prediction_parts
    from isoloss.plans.forecast import predicted
    from isoloss.sources.fits import inputs_for, read_fit

    fitted = read_fit(source)
    sizes = {"params": params, "tokens": tokens, "flops": flops}
    inputs = o.law_inputs(sizes | {"recurrence": recurrence, "position": position}, others)
    at = inputs_for(fitted, inputs)
    prediction, forecast = predicted(fitted, at, level)
    answer = vars(prediction) | {"law": fitted.law, "source": fitted.source}
    if isinstance(forecast, Refusal):
        answer |= {"forecast": None, "forecast_refused": forecast.what}
    elif forecast is not None:
        answer["forecast"] = forecast.to_json()
    answer = {fitted.form.gives: answer.pop("loss")} | answer
    parts = prediction_parts(fitted, prediction, forecast)
    respond(as_json, answer, parts, prediction.warnings, verbose=verbose)


@app.command("laws")
def laws(as_json: AsJson = False) -> None:
    """List the laws that can be fitted, and those that papers printed.

    isoloss laws
    """
    from isoloss.analysis.results import laws_parts
    from isoloss.laws import FORMS
    from isoloss.sources.published import names, published, unpublished

    printed = {name: published(name) for name in names()}
    answer = {
        "laws": {
            law.name: {"formula": law.formula, "inputs": law.inputs, "source": law.source}
            for law in FORMS.values()
        },
        "published": {name: {**law.source, "law": law.law} for name, law in printed.items()},
        "unpublished": unpublished(),
    }
    respond(as_json, answer, laws_parts(printed, unpublished()))


@app.command()
@o.grouped
def isoflop(
    *,
    table: o.Table,
    columns: o.SizeColumnOptions,
    run: Annotated[
        str | None, typer.Option(help="Column naming runs, where rows are points of training curves.")
    ] = None,
    method: Annotated[str, typer.Option(help="akima or parabola.")] = "akima",
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of one run's loss. Default: estimated.")
    ] = None,
    level: o.Level = 0.9,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read the best size at each compute off the runs, by budget, by envelope and by law, side by side.

    isoloss isoflop runs.csv --flops budget --params N --loss loss
    """
    from isoloss.analysis.results import isoflop_parts
    from isoloss.plans.methods import exponents_by_method
    from isoloss.sources import columns_for

    read = columns_for(
        [], table, **columns.reading(), cluster=run, more=("flops", "params"), optional=("tokens",)
    )
    with read.warnings_in_refusal():
        exponents = exponents_by_method(
            read.inputs["flops"],
            read.inputs["params"],
            read.loss,
            tokens=read.inputs.get("tokens"),
            run=None if run is None or read.cluster is None else read.cluster.tolist(),
            method=method,
            noise=noise,
            level=level,
        )
    if out is not None:
        from isoloss.figures import isoflop as figures
        from isoloss.figures import render

        for figure in figures.pictures(exponents, read.runs.loss_unit):
            render.write(figure, render.render(figure), out)
    written = exponents.to_json() | {"warnings": read.warnings}
    parts = isoflop_parts(exponents, read.rows_of)
    respond(as_json, written, parts, read.warnings, verbose=columns.verbose)
