"""`isoloss import` and `isoloss export`: other people's logs as one loss table, and a study as theirs."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.cli import options as o
from isoloss.cli.app import AsJson, app, plain, progress, respond
from isoloss.errors import InputError


@app.command("import")
def import_logs(
    source: Annotated[
        str, typer.Argument(help="wandb, tensorboard, huggingface, mlflow, lightning, nanogpt or csv.")
    ],
    path: Annotated[str, typer.Argument(help="Its file or folder; of wandb also ENTITY/PROJECT.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="TABLE.parquet or TABLE.csv. Default: CSV on stdout.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Key of the loss, where several are logged.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--column", help="NAME=KEY for any other.")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--value", help="NAME=NUMBER that holds for all runs.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Table with a row a run, for its sizes.")] = None,
    last: Annotated[bool, typer.Option("--last", help="Keep the last evaluation of each run.")] = False,
    pattern: Annotated[str | None, typer.Option(help="Of text logs; default: what finds most.")] = None,
    bytes_per_token: Annotated[float | None, typer.Option(help="From bits per byte to nats a token.")] = None,
    as_json: AsJson = False,
) -> None:
    """Turn the logs of a tracker or a trainer into one loss table, with where each number came from.

    isoloss import wandb wandb/ -o runs.parquet
    isoloss import huggingface out/ --value batch_tokens=0.5M --last -o runs.csv
    isoloss import wandb panel.csv --table sizes.csv -o runs.csv
    """
    from isoloss.sources import logs

    if out is not None:
        logs.check_name(out)
    imported = logs.loss_table(
        source,
        path,
        columns=o.pairs(columns, "--column") | ({"loss": loss} if loss else {}),
        values=o.numbers(values, "--value"),
        table=table,
        last=last,
        pattern=pattern,
        bytes_per_token=bytes_per_token,
    )
    if out is None and not as_json:
        for line in (*imported.lines(), *(f"warning: {doubt}" for doubt in imported.doubts)):
            progress().print(plain(line), markup=False, highlight=False, soft_wrap=True)
        print(imported.frame.write_csv(), end="")
        return
    if out is not None:
        logs.write(imported.frame, out)
    lines = [*imported.lines(), f"Written to {out}. {imported.next_step(out)}"]
    respond(as_json, imported.summary() | {"path": str(out) if out else None}, lines, imported.doubts)


@app.command("export")
def export_study(
    study: Annotated[Path, typer.Argument(help="A study's folder.")],
    target: Annotated[str, typer.Option("--to", help="wandb, tensorboard, mlflow, parquet or transformers.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder or file; of parquet also .csv.")],
    run: Annotated[str | None, typer.Option(help="Of transformers: the run whose weights to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a study for a tracker, as a table, or one run's weights for the library transformers.

    isoloss export studies/architectures-mini --to tensorboard -o events
    isoloss export studies/architectures-mini --to transformers --run RUN_ID -o model
    """
    from isoloss.records import load
    from isoloss.records.store import run_folder
    from isoloss.records.weights import export_weights
    from isoloss.sources import logs

    if target == "transformers":
        if run is None:
            raise InputError("which run?", where="--run", mend="name one of the run_id in the study's table")
        export_weights(run_folder(study, run), out)
    else:
        logs.export(load(study), target, out)
    respond(as_json, {"path": str(out)}, [f"Written to {out}."])
