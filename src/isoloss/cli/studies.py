"""`isoloss run`, `isoloss status`, `isoloss serve` and `isoloss report`."""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoloss import text
from isoloss.cli.app import AsJson, app, progress, respond, show, show_json
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.studies.launch import DryRun
    from isoloss.studies.runner import StudyOutcome


@app.command()
def run(
    study: Annotated[
        str, typer.Argument(help="A shipped study, such as architectures or looped, or a .toml file.")
    ],
    scale: Annotated[str, typer.Option(help="Which scale of the study: mini, evening, gpu, paper.")] = "mini",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study. Default: studies/NAME-SCALE.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Where to train: local, ray or slurm.")] = "local",
    engine_settings: Annotated[
        list[str] | None,
        typer.Option("--engine-set", help="KEY=VALUE for ray or slurm, e.g. partition=gpu."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at once. Default: cores, or GPUs.")
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds between a run's checkpoints: what a kill can cost.")
    ] = 30.0,
    keep_weights: Annotated[
        bool, typer.Option("--keep-weights", help="Keep each run's last weights, for isoloss export.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every run with its cost; train nothing.")
    ] = False,
    gpus: Annotated[
        list[str] | None, typer.Option("--gpu", help="With --dry-run: hours on an accelerator, as h100.")
    ] = None,
    price_per_gpu_hour: Annotated[float | None, typer.Option(help="With --gpu: for money.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE changes to the scale, e.g. --set 'seeds=[0,1,2]'."),
    ] = None,
    families: Annotated[
        list[Path] | None,
        typer.Option("--family", help="A Python file of yours that registers a model family."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a study: every run that its folder does not hold yet.

    Stop it at any moment and run it again: it goes on where it was. Ctrl-C keeps a checkpoint first.

      isoloss run architectures --scale mini
      isoloss run architectures --scale gpu --dry-run
      isoloss run my-study.toml --family my_family.py --set 'seeds=[0,1,2]'
      isoloss run architectures --scale gpu --engine slurm --engine-set partition=gpu
    """
    from isoloss.studies.stop import StopSignal

    if gpus and not dry_run:
        raise InputError("--gpu only costs a plan", where="--gpu", mend="add --dry-run")
    if dry_run:
        with StopSignal() as stop:  # as below
            from isoloss.studies import launch
        if stop.asked:
            raise KeyboardInterrupt
        cost = launch.dry_run(
            study,
            scale,
            changes or [],
            families or [],
            out=out,
            engine=engine,
            engine_settings=engine_settings or [],
            gpu=bool(gpus),
        )
        show_plan(cost, hours_on(cost, gpus or [], price_per_gpu_hour), workers, as_json)
        return
    with StopSignal() as stop:  # torch, while it is imported, loses a Ctrl-C
        from isoloss.studies import launch

        outcome = launch.launch(
            study,
            scale=scale,
            out=out,
            changes=changes or [],
            engine=engine,
            engine_settings=engine_settings or [],
            workers=workers,
            family_files=families or [],
            checkpoint_seconds=checkpoint_seconds,
            keep_weights=keep_weights,
            console=progress(),
            stop=stop,
        )
    show_outcome(outcome, as_json)
    if outcome.failed or outcome.stopped:
        raise typer.Exit(1)


def hours_on(dry_run: "DryRun", gpus: Sequence[str], price: float | None) -> list[dict[str, Any]]:
    """What the study takes of each accelerator, all at the same share of their peaks."""
    from isoloss.plans.cost import hardware
    from isoloss.studies.estimate import GPU_MFU, GPU_PEAK

    hours = sum(run.seconds for run in dry_run.runs) / 3600
    machines = [hardware(gpu, GPU_MFU) for gpu in gpus]
    return [
        {
            "gpu": machine.gpu,
            "hours": (at := hours * GPU_PEAK / machine.peak_flops),
            "money": price and at * price,
        }
        for machine in machines
    ]


def show_plan(
    dry_run: "DryRun", hours: Sequence[Mapping[str, Any]], workers: int | None, as_json: bool
) -> None:
    from isoloss.cli import plan_words

    if as_json:
        answer = {"study": dry_run.study, "scale": dry_run.scale, "families": dry_run.families}
        show_json(answer | {"runs": [run.as_row() for run in dry_run.runs], "hours": hours})
        return
    plan_words.show(dry_run, hours, workers or dry_run.workers)


def show_outcome(outcome: "StudyOutcome", as_json: bool) -> None:
    if as_json:
        print(json.dumps(vars(outcome) | {"folder": str(outcome.folder)}))
        return
    if outcome.stopped:
        # A second Ctrl-C must not cut the last words short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    show(outcome_lines(outcome))


def outcome_lines(outcome: "StudyOutcome") -> Iterator[str]:
    if outcome.already == outcome.planned:
        yield f"Nothing to do: all {outcome.planned} runs of {outcome.folder} are there."
    else:
        there = outcome.already + outcome.ended
        yield f"{there} of {outcome.planned} runs are in {outcome.folder} ({outcome.ended} new)."
    if outcome.queued:
        yield f"{outcome.queued} runs are queued: isoloss status {outcome.folder}"
    if outcome.diverged:
        yield f"{text.plural(len(outcome.diverged), 'run')} diverged, in no figure, law or finding:"
    yield from (f"diverged: {run_id}: {reason}" for run_id, reason in outcome.diverged.items())
    yield from (f"failed: {run_id}: {reason}" for run_id, reason in outcome.failed.items())
    if outcome.failed:
        yield "Run the same command again to retry what failed."
    if outcome.stopped:
        yield "Stopped. Run the same command again to go on where it was."


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="A study's folder, as `isoloss run` names it.")],
    as_json: AsJson = False,
) -> None:
    """Say which runs of a study are done, running, queued, failed or waiting, whoever trains them.

    isoloss status studies/architectures-gpu
    """
    from isoloss.studies.progress import facts
    from isoloss.studies.status import STATES, status

    runs = status(folder)
    count = {state: sum(run.state == state for run in runs) for state in STATES}
    lines = [", ".join(f"{number} {state}" for state, number in count.items() if number)]
    for run in runs:
        if run.state == "running":
            lines.append(f"running: {run.run_id}{f': {facts(run.progress)}' if run.progress else ''}")
        elif run.reason:
            lines.append(f"{run.state}: {run.run_id}: {run.reason}")
    respond(as_json, count | {"runs": [run.to_json() for run in runs]}, lines)


@app.command()
def serve(
    folders: Annotated[
        list[str] | None,
        typer.Argument(help="Studies' folders. Default: all in ./studies and ./runs.", metavar="[DIR]..."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser; print the address.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch studies while they train, on a live page of this machine alone. Ctrl-C ends it.

    isoloss serve studies/architectures-mini
    isoloss serve studies/architectures-mini studies/looped-mini
    """
    if as_json:
        raise InputError("a live page has no result", where="--json", mend="use isoloss status DIR --json")
    from isoloss.serve import find, server

    server.serve(find.studies(folders or []), port, open_browser=not no_open)


@app.command()
def report(
    source: Annotated[
        str,
        typer.Argument(
            help="A study's folder, `reference`, a FIT.json of `isoloss fit -o`, or a published law."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the report. Default: beside the source.")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="Published laws to draw beside it, e.g. 'kaplan-context-*' or chinchilla-epoch."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page of a study or a fit, with each figure as SVG, PNG, PDF and CSV.

    isoloss report studies/architectures-mini
    isoloss report reference
    isoloss report fit.json
    isoloss report fit.json --beside kaplan-n
    """
    from isoloss import report as reports
    from isoloss.analysis.findings import LEFT_OUT
    from isoloss.records import reference

    shipped = not Path(source).exists() and reference.is_name(source)
    if shipped or Path(source).is_dir():
        folder = reference.folder(source) if shipped else source
        result = reports.write(
            folder, out or (Path("reports") / source if shipped else None), notify=progress().print
        )
        lines = [f"{number}. {finding.sentence}" for number, finding in enumerate(result.findings, start=1)]
        lines += [
            f"   {run}" for finding in result.findings if finding.key == LEFT_OUT for run in finding.caveats
        ]
    else:
        from isoloss.sources.published import matching, names

        if not Path(source).exists() and source not in names():
            raise InputError(
                "holds no study and is no fit",
                where=source,
                mend="name a study's folder, a FIT.json of isoloss fit -o, or a law from isoloss laws",
            )
        others = [law for pattern in beside or [] for law in matching(pattern)]
        result = reports.write_fit(source, out, others=others, notify=progress().print)
        lines = [result.summary]
    findings = [{"key": f.key, "sentence": f.sentence, "numbers": f.numbers} for f in result.findings]
    state = "" if result.written else " (up to date)"
    answer = {"path": str(result.path), "findings": findings}
    respond(as_json, answer, [f"Report: {result.path.resolve()}{state}", *lines])
