"""The command line: one function a verb, no logic. Results on stdout, progress on stderr.

Exit codes: 0 done, 1 failed or stopped, 2 wrong usage or input, 3 refused.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from isoloss import units
from isoloss.errors import InputError, IsolossError

app = typer.Typer(
    name="isoloss",
    help="A laboratory for neural scaling laws: train, measure, fit, doubt, report.\n\n"
    "Start with:  isoloss run architectures --scale mini  then  isoloss report studies/architectures-mini",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
corpus_app = typer.Typer(name="corpus", help="Text to train on: list, add, tokenize.", no_args_is_help=True)
app.add_typer(corpus_app)

progress = Console(stderr=True)

INTERRUPTED = 130
"""What the command-line library exits with after Ctrl-C."""


@app.command()
def run(
    study: Annotated[
        str, typer.Argument(help="A shipped study (architectures, learning-rates) or a .toml file.")
    ],
    scale: Annotated[str, typer.Option(help="Which scale of the study: mini, gpu, paper.")] = "mini",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study. Default: studies/NAME-SCALE.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Where to train. Only 'local' exists so far.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at once. Default: cores, or GPUs.")
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds between a run's checkpoints: what a kill can cost.")
    ] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every run with its cost; train nothing.")
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE changes to the scale, e.g. --set seeds=[0,1,2]."),
    ] = None,
    families: Annotated[
        list[Path] | None,
        typer.Option("--family", help="A Python file of yours that registers a model family."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a study: every run that its folder does not hold yet.

    Stop it at any moment and run it again: it goes on where it was. Ctrl-C keeps a checkpoint first.

      isoloss run architectures --scale mini
      isoloss run architectures --scale gpu --dry-run
      isoloss run my-study.toml --family my_family.py --set seeds=[0,1,2]
    """
    from isoloss.studies import start

    if engine != "local":
        raise InputError(f"there is no engine {engine!r} yet", where="--engine", mend="use local")
    if dry_run:
        show_plan(start.foresee(study, scale, changes or [], families or []), workers, as_json)
        return
    outcome = start.start(
        study,
        scale=scale,
        out=out,
        changes=changes or [],
        workers=workers,
        family_files=families or [],
        checkpoint_seconds=checkpoint_seconds,
        console=progress,
    )
    show_outcome(outcome, as_json)
    if outcome.failed or outcome.stopped:
        raise typer.Exit(1)


def show_plan(foreseen, workers: int | None, as_json: bool) -> None:
    from isoloss.studies import runner

    if as_json:
        rows = [run.as_row() for run in foreseen.runs]
        print(json.dumps({"study": foreseen.study, "scale": foreseen.scale, "runs": rows}, indent=1))
        return
    table = Table(title=f"{foreseen.study}, scale {foreseen.scale}: {len(foreseen.runs)} runs")
    columns = "run seed params total executed tokens 6ND exact-FLOPs rate time memory"
    for name in columns.split():
        table.add_column(name, justify="left" if name == "run" else "right")
    for run in foreseen.runs:
        row = run.as_row()
        counts = ("params", "params_total", "params_executed", "tokens", "flops_6nd", "flops_exact")
        table.add_row(
            row["label"],
            str(row["seed"]),
            *[units.human(row[name]) for name in counts],
            f"{row['learning_rate']:g}",
            runner.clock(row["seconds"]),
            units.human(row["memory_bytes"], "B"),
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    count = workers or foreseen.workers
    print(f"about {runner.estimated_wall(foreseen.runs, count)} on {count} worker(s); {foreseen.basis}")
    for warning in foreseen.warnings:
        print(f"mind: {warning}")


def show_outcome(outcome, as_json: bool) -> None:
    if as_json:
        print(
            json.dumps(
                {
                    "folder": str(outcome.folder),
                    "planned": outcome.planned,
                    "already": outcome.already,
                    "ended": outcome.ended,
                    "failed": outcome.failed,
                    "diverged": outcome.diverged,
                    "stopped": outcome.stopped,
                }
            )
        )
        return
    if outcome.already == outcome.planned:
        print(f"Nothing to do: all {outcome.planned} runs of {outcome.folder} are there.")
        return
    there = outcome.already + outcome.ended
    print(f"{there} of {outcome.planned} runs are in {outcome.folder} ({outcome.ended} new).")
    for run_id, reason in outcome.diverged.items():
        print(f"diverged: {run_id}: {reason}")
    for run_id, reason in outcome.failed.items():
        print(f"failed: {run_id}: {reason}")
    if outcome.failed:
        print("Run the same command again to retry what failed.")
    if outcome.stopped:
        # A second Ctrl-C must not cut the last words short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("Stopped. Run the same command again to go on where it was.")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A study's folder, as written by `isoloss run`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print paths and findings as JSON.")] = False,
) -> None:
    """Write one self-contained HTML page from a study, with each figure as SVG, PNG, PDF and CSV beside it.

    isoloss report studies/architectures-mini
    """
    from isoloss import report as reports

    result = reports.write(folder)
    if as_json:
        findings = [{"key": f.key, "sentence": f.sentence, "numbers": f.numbers} for f in result.findings]
        print(json.dumps({"path": str(result.path), "findings": findings}, indent=1, allow_nan=False))
        return
    print(f"Report: {result.path.resolve()}" + ("" if result.written else " (up to date)"))
    for number, finding in enumerate(result.findings, start=1):
        print(f"{number}. {finding.sentence}")


@corpus_app.command("list")
def corpus_list(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the corpora at hand, with their sizes and hashes.

    isoloss corpus list
    """
    from dataclasses import asdict

    from isoloss.corpus import library

    infos = [library.info(name) for name in library.names()]
    if as_json:
        print(json.dumps([asdict(info) for info in infos], indent=1))
        return
    for info in infos:
        print(
            f"{info.name}: {info.train_documents} training documents ({units.human(info.train_bytes, 'B')}), "
            f"{info.validation_documents} for validation ({units.human(info.validation_bytes, 'B')}), "
            f"hash {info.corpus_hash[:12]}"
        )


@corpus_app.command("add")
def corpus_add(
    name: Annotated[str, typer.Argument(help="What to call it: a-z, 0-9 and '-'.")],
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Text, JSONL or Parquet files, folders of them, .gz/.xz/.zst too; or hf:OWNER/NAME."
        ),
    ],
    text_column: Annotated[str, typer.Option(help="The column or key that holds the text.")] = "text",
    separator: Annotated[
        str | None,
        typer.Option(help=r"Cuts a text file into documents, e.g. '\n\n\n'. Default: one document a file."),
    ] = None,
    validation: Annotated[
        float, typer.Option(help="Share of the bytes held out, by whole documents.")
    ] = 0.08,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Read text, split it by document into training and validation, and keep it under a name.

    isoloss corpus add novels novels/ more.jsonl.zst
    isoloss run architectures --set corpus=novels
    """
    from dataclasses import asdict

    from isoloss.corpus import library

    if separator is not None:
        separator = separator.replace("\\n", "\n").replace("\\t", "\t")
    info = library.add(
        name, paths, text_column=text_column, separator=separator, validation_fraction=validation
    )
    if as_json:
        print(json.dumps(asdict(info), indent=1))
        return
    print(f"{info.name}: {'there already, unchanged' if info.already_there else 'added'}")
    print(f"  training    {info.train_documents} documents, {units.human(info.train_bytes, 'B')}")
    print(f"  validation  {info.validation_documents} documents, {units.human(info.validation_bytes, 'B')}")
    print(
        f"  removed     {info.duplicates_removed} repeated documents, "
        f"{info.paragraphs_removed} shared paragraphs"
    )


@corpus_app.command("tokenize")
def corpus_tokenize(
    name: Annotated[str, typer.Argument(help="A corpus from `isoloss corpus list`.")],
    vocabulary: Annotated[int, typer.Option(help="Entries of the byte-level BPE to train.")] = 1024,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to use instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Make the token files of a corpus now; `isoloss run` does it by itself when needed.

    isoloss corpus tokenize starter --vocabulary 2048
    """
    from isoloss.corpus import library

    made = library.tokenize(name, vocabulary, tokenizer)
    facts = {
        "folder": str(made.tokenizer_path.parent),
        "vocab": made.vocab,
        "train_tokens": made.train.tokens,
        "validation_tokens": made.validation.tokens,
        "train_bytes_per_token": made.train.bytes_per_token,
        "validation_bytes_per_token": made.validation.bytes_per_token,
        "corpus_hash": made.corpus_hash,
        "tokenizer_hash": made.tokenizer_hash,
    }
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    for key, value in facts.items():
        print(f"{key}: {value}")


def main() -> None:
    """Entry point: errors of ours become one message and their exit code."""
    try:
        app()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        print("isoloss: stopped. Run the same command again to go on.", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print("isoloss: training needs PyTorch\n  To mend it: pip install 'isoloss[train]'", file=sys.stderr)
        sys.exit(2)
    except IsolossError as error:
        print(f"isoloss: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:  # disk full, no permission: the system's own words and the place
        place = f"{error.filename}: " if error.filename else ""
        print(f"isoloss: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
