"""`isoloss compare`, `backtest`, `forecast`, `plan`, `design`: which law to trust, and what it says to do."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoloss.cli import options as o
from isoloss.cli.app import AsJson, app, progress, respond, say
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.figures.figure import Figure
    from isoloss.laws import Array, Fit
    from isoloss.plans.forecast import Forecaster
    from isoloss.plans.holdout import Mask
    from isoloss.sources.fitting import Columns

HOLDOUT = typer.Option(help="largest-params, largest-tokens, largest-flops, or COL=VALUE for rows to hide.")


@app.command()
@o.grouped
def compare(
    *,
    table: o.Table,
    laws: Annotated[str, typer.Option(help="Names of laws, separated by commas.")],
    columns: o.ColumnOptions,
    holdout: Annotated[str | None, HOLDOUT] = None,
    objective: o.ObjectiveOptions,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rank laws by their error on held-out runs, beside an information criterion.

    isoloss compare runs.csv --laws chinchilla,outer-exponent,kaplan-nd
    """
    from isoloss.analysis.results import comparison_parts
    from isoloss.plans.compare import compare as ranked

    names = [name.strip() for name in laws.split(",") if name.strip()]
    read, inputs, hidden = _read(names, table, columns, holdout or "")
    with read.warnings_in_refusal():
        comparison = ranked(
            names,
            inputs,
            read.loss,
            holdout=None if holdout is None else hidden,
            cluster=read.cluster,
            **vars(objective),
        )
    if out is not None:
        from isoloss.figures import compared_laws

        _draw(compared_laws.figure(comparison), out)
    comparison = replace(
        comparison,
        warnings=(*read.warnings, *_sweep_words(read, inputs, comparison.forecast), *comparison.warnings),
    )
    parts = comparison_parts(comparison)
    respond(as_json, comparison, parts, comparison.warnings, verbose=columns.verbose)


@app.command()
@o.grouped
def backtest(
    *,
    table: o.Table,
    law: Annotated[str, typer.Option(help="Which law.")],
    holdout: Annotated[str, HOLDOUT] = "largest-params",
    rungs: Annotated[int | None, typer.Option(help="How many of the largest values to hide.")] = None,
    columns: o.ColumnOptions,
    objective: o.ObjectiveOptions,
    held: o.HeldOptions,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figure.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hide the largest runs, predict them, and score error and intervals beside simple baselines.

    isoloss backtest runs.csv --law chinchilla --holdout largest-params
    isoloss backtest runs.csv --law chinchilla --holdout "dataset=c4"
    """
    from isoloss.analysis.results import backtest_parts
    from isoloss.plans.backtest import backtest as judged

    read, inputs, hidden = _read([law], table, columns, holdout)
    options = vars(objective) | held.options() | {"source": read.source}
    with read.warnings_in_refusal():
        result = judged(law, inputs, read.loss, holdout=hidden, rungs=rungs, cluster=read.cluster, **options)
    if out is not None:
        from isoloss.figures import backtest as figures

        _draw(figures.figure(result), out)
    result = replace(
        result, warnings=(*read.warnings, *_sweep_words(read, inputs, result.forecast), *result.warnings)
    )
    respond(as_json, result, backtest_parts(result), result.warnings, verbose=columns.verbose)


def _sweep_words(read: "Columns", inputs: "dict[str, Array]", forecast: object) -> list[str]:
    """That a forecast is scored on all runs, as laws are, though alone it keeps the best of a sweep."""
    if forecast is None or not read.sweep(tuple(inputs))[1]:
        return []
    return ["the forecast takes all runs here, as the law does; isoloss forecast keeps the best of each size"]


def _draw(figure: "Figure", out: Path) -> None:
    from isoloss.figures import render

    for path in render.write(figure, render.render(figure), out):
        progress().print(str(path))


def _read(
    laws: list[str], table: Path, columns: o.ColumnOptions, holdout: str
) -> "tuple[Columns, dict[str, Array], str | Mask]":
    """The table as the laws take it, their inputs alone, and what to hide: a rule's name or the rows."""
    from isoloss.sources import columns_for
    from isoloss.sources.fitting import equal_to

    column, equals, value = (part.strip() for part in holdout.partition("="))
    if equals and not (column and value):
        raise InputError(f"{holdout!r} is not COL=VALUE", where="--holdout", mend="write COL=VALUE")
    more = {"holdout": column} if equals else {}
    reading = columns.reading()
    reading["columns"] |= more
    read = columns_for(laws, table, **reading, cluster=columns.cluster, more=tuple(more))
    inputs = {name: values for name, values in read.inputs.items() if name not in more}
    return read, inputs, equal_to(read.runs.frame["holdout"], value, column) if equals else holdout


@app.command()
@o.grouped
def forecast(
    table: o.Table,
    params: Annotated[list[float] | None, o.number("Parameters N of a new run.", "params")] = None,
    tokens: Annotated[list[float] | None, o.number("Its training tokens D, such as 1.4T.", "tokens")] = None,
    flops: Annotated[list[float] | None, o.number("FLOPs C = 6 N D, in place of N or D.", "flops")] = None,
    others: o.MoreInputs = None,
    *,
    runs: o.RunsOptions,
    level: o.Level = 0.9,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the forecast here, as JSON.")] = None,
    verbose: o.Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Predict runs that nobody has made from a table of runs, with intervals that hold out there.

    isoloss forecast runs.csv --params 7B --tokens 140B
    isoloss forecast runs.csv --column params=N --flops 1e22 --tokens 1e11 -o forecast.json
    """
    from isoloss import files
    from isoloss.analysis.results import forecast_parts
    from isoloss.plans.forecast import forecaster_at

    sizes = {"params": params or None, "tokens": tokens or None, "flops": flops or None}
    known, at = forecaster_at(table, o.law_inputs(sizes, others), **runs.reading())
    result = known.at(at, level)
    if out is not None:
        files.write_json(out, result.to_json())
    respond(as_json, result, forecast_parts(result), result.warnings, verbose=verbose)
    if out is not None and not as_json:
        say(f"Written to {out}.")


@dataclass(frozen=True)
class PlanOptions:
    """What to plan: the options of ``isoloss.plans.plan``."""

    flops: Annotated[float | None, o.number("Training budget C, such as 1e21 or 300PF-days.", "flops")] = None
    loss: Annotated[float | None, typer.Option(help="Target loss, in place of a budget.")] = None
    params: Annotated[float | None, o.number("Fixes N; tokens follow.", "params")] = None
    tokens: Annotated[float | None, o.number("Fixes D; parameters follow.", "tokens")] = None
    serve_tokens: Annotated[
        float | None, o.number("Tokens that the model will process in its life, to count their cost.")
    ] = None
    unique_tokens: Annotated[float | None, o.number("Tokens at hand; more than that repeat them.")] = None
    max_epochs: Annotated[float | None, typer.Option(help="Repeat them at most so often.")] = None
    recurrence: Annotated[float | None, typer.Option(help="Loops of a looped model.")] = None
    recurrent_share: Annotated[
        float | None, typer.Option(help="Share of the parameters inside the loop.")
    ] = None
    flops_per_token: Annotated[float, typer.Option(help="k in C = k N D.")] = 6.0
    gpu: Annotated[str, typer.Option(help="Accelerator, for hours.")] = "h100"
    mfu: Annotated[float, typer.Option(help="Share of its dense bf16 peak that training reaches.")] = 0.4
    price_per_gpu_hour: Annotated[float | None, typer.Option(help="For money.")] = None
    level: o.Level = 0.9
    seed: Annotated[int, typer.Option(help="Of the draws behind the intervals.")] = 0


@app.command()
@o.grouped
def plan(
    source: o.FitOrNone = None,
    forecast: o.Forecast = None,
    *,
    question: PlanOptions,
    runs: o.RunsOptions,
    verbose: o.Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Which model for how many tokens: at a budget, to a target loss, or with one of them fixed.

    isoloss plan --forecast runs.csv --flops 1e21
    isoloss plan fit.json --flops 1e21 --gpu h100 --price-per-gpu-hour 2.5
    isoloss plan chinchilla-epoch --loss 2.0
    isoloss plan fit.json --loss 2.2 --serve-tokens 1e13
    isoloss plan muennighoff --flops 1e22 --unique-tokens 1e11
    """
    from isoloss.analysis.results import plan_parts, read_parts
    from isoloss.plans import plan as planned
    from isoloss.plans.forecast import forecaster_of

    if source is None and forecast is not None:
        known: Fit | Forecaster = forecaster_of(forecast, **runs.reading())
    else:
        known = _fit(source, forecast)
    result = planned(known, **vars(question))
    parts = [*plan_parts(result, known.loss_unit), *read_parts(known)]
    respond(as_json, result, parts, result.warnings, verbose=verbose)


def _fit(source: str | None, table: str | None) -> "Fit":
    """The fit of that name. Raises InputError where a table is given too, and where neither is."""
    from isoloss.sources.fits import read_fit

    if source is None or table is not None:
        what = "there is neither a fit nor a table" if table is None else "a fit and a table are given"
        raise InputError(what, where="--forecast", mend="give a fit, or --forecast with a table")
    return read_fit(source)


@app.command()
@o.grouped
def design(
    source: o.FitOrNone = None,
    forecast: o.Forecast = None,
    *,
    budget: Annotated[float, o.number("FLOPs to spend on the next runs.", "flops", "--budget")],
    params: Annotated[float | None, o.number("N of the prediction that matters.", "params")] = None,
    tokens: Annotated[float | None, o.number("D of the prediction that matters.", "tokens")] = None,
    recurrence: Annotated[float | None, o.number("Its loops.")] = None,
    others: o.MoreInputs = None,
    at_most: Annotated[int, typer.Option(help="Runs to propose at most.")] = 8,
    seed: Annotated[int, typer.Option(help="Of the draws and the random choices.")] = 20260422,
    runs: o.RunsOptions,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the figure.")] = None,
    verbose: o.Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Which runs to buy next, so that one prediction becomes surest for the money.

    isoloss design fit.json --budget 1e20 --params 7e9 --tokens 1.4e11
    isoloss design --forecast runs.csv --budget 1e20 --params 7e9 --tokens 1.4e11
    """
    from isoloss.analysis.results import design_parts, read_parts
    from isoloss.plans.design import design as designed
    from isoloss.plans.forecast import forecaster_at
    from isoloss.sources.fits import inputs_for

    inputs = o.law_inputs({"params": params, "tokens": tokens, "recurrence": recurrence}, others)
    if source is None and forecast is not None:
        known, at = forecaster_at(forecast, inputs, **runs.reading())
        target = {name: float(size[0]) for name, size in at.items()}
    else:
        known = _fit(source, forecast)
        target = inputs_for(known, inputs)
    result = designed(known, budget_flops=budget, target=target, at_most=at_most, seed=seed)
    if out is not None:
        from isoloss.figures import design as figures

        _draw(figures.figure(known, result), out)
    parts = [*design_parts(result), *read_parts(known)]
    respond(as_json, result, parts, result.warnings, verbose=verbose)
