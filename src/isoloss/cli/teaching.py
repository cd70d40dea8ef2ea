"""`isoloss demo` and `isoloss deck`: why Transformers replaced LSTMs, measured here."""

import shutil
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoloss.cli.app import AsJson, app, progress, respond, say, show, show_json
from isoloss.errors import InputError

if TYPE_CHECKING:
    from isoloss.teach.panel import Panel, Report, Settings
    from isoloss.teach.result import Result

PLAIN_SECONDS = 5.0


@app.command()
def demo(
    name: Annotated[
        str,
        typer.Argument(help="amnesia, attention, training, race, showdown, machine, or all of them: all."),
    ],
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=20, help="Random seeds of each panel. Default: the deck's, 3 to 5."),
    ] = None,
    only: Annotated[str | None, typer.Option("--panel", help="Only this panel of the demo.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE changes to panels' settings, e.g. --set 'lengths=[20,64]'."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The sizes of the shipped recording: more seeds, wider sweeps.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for PANEL.json, which `deck --results` shows.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a demo here and now, and say what came out, with seeds and intervals.

    isoloss demo amnesia
    isoloss demo attention --set "sentence=the bank of the river"
    isoloss demo showdown --set "prompt=It was a dark night"
    isoloss demo all --full -o results
    """
    from isoloss.teach import result as recordings
    from isoloss.teach.panel import run
    from isoloss.teach.start import prepare, select_panels

    if out is not None and out.exists() and not out.is_dir():
        raise InputError("is a file", where=str(out), mend="name a folder: each panel gets a file in it")
    results = []
    for panel, settings in select_panels(name, only=only, seeds=seeds, changes=changes or [], full=full):
        prepare(panel)
        with ticker(panel.name) as tick:
            result = run(panel, settings, tick)
        if out is not None:
            recordings.write(result, out)
        if as_json:
            results.append(result.model_dump(mode="json"))
        else:
            show_result(panel, settings, result)
    if as_json:
        show_json(results)


def show_result(panel: "Panel", settings: "Settings", result: "Result") -> None:
    say(f"\n{panel.title}\n{panel.question}\n")
    blind, reveal = (getattr(panel.tell, f"{step}_lines", None) for step in ("blind", "reveal"))
    if blind is not None and reveal is not None:
        show(blind(settings, result.tables))
        vote()
        show(reveal(settings, result.tables))
    show(panel.lines(settings, result.tables))
    for sentence in result.sentences:
        show(fold(f"{sentence.badge('LIVE'):<8} {sentence.text}", " " * 9))
    show(fold(f"What this does not show: {panel.doubt}"))
    basis = f"[{result.basis.line()}; {result.cpu_seconds:.1f} CPU-seconds; {result.machine.line()}]"
    show(fold(basis))


def fold(text: str, indent: str = "") -> list[str]:
    """Whole words in the terminal's width; one line for a pipe, so that it can be searched."""
    if not sys.stdout.isatty():
        return [text]
    return textwrap.wrap(text, shutil.get_terminal_size().columns, subsequent_indent=indent)


def vote() -> None:
    """A vote before the reveal, where somebody is there to cast it."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        try:
            cast = typer.prompt("Which text is better? (a, b, or s for the same)", default="s")
        except typer.Abort:  # nobody answers: what was measured is still shown
            say("No vote. The names:")
            return
        say(f"Your vote: {cast.strip()[:1].upper() or 'S'}. Now the names:")


@contextmanager
def ticker(name: str) -> Generator["Report"]:
    """Progress on stderr: one live line on a terminal, a line now and then elsewhere."""
    begin = last = time.monotonic()
    status = progress().status(f"{name}: starting") if progress().is_terminal else None

    def tick(done: float, text: str, tables: object = None) -> None:
        nonlocal last
        now = time.monotonic()
        left = (now - begin) * (1 - done) / done if done > 0.02 and now - begin > 2 else None
        line = f"{name} {done:4.0%}{'' if left is None else f', about {left:.0f} s left'}: {text}"
        if status:
            from rich.text import Text

            status.update(Text(line))
        elif now - last >= PLAIN_SECONDS:
            last = now
            progress().print(line, highlight=False, soft_wrap=True, markup=False)

    with status or nullcontext():
        yield tick


@app.command()
def deck(
    build: Annotated[
        Path | None,
        typer.Option(help="Write one self-contained HTML file with recorded results and serve nothing."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Results of yours: a folder of `isoloss demo all -o`, or the deck's export."),
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="A study of yours for slide A4. Default: the recorded one.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser; print the address.")] = False,
    as_json: AsJson = False,
) -> None:
    """The slides "The Great Shift", live: its panels train and measure on this machine. Ctrl-C ends it.

    isoloss deck
    isoloss deck --build the-great-shift.html
    isoloss deck --study studies/architectures-mini
    """
    if build is not None:
        from isoloss import files
        from isoloss.teach.deck import page

        files.write_text(build, page.build(results=results, study=study))
        respond(as_json, {"path": str(build)}, [f"Deck: {build.resolve()}"])
        return
    if as_json:
        raise InputError("a live deck has no result", where="--json", mend="give --build FILE as well")
    from isoloss.teach.deck import cache, page, server

    progress().print("Drawing the slides ...")

    def save(measured: "list[Result]") -> str:
        return page.build(results, study, measured=measured)

    server.serve(cache.live_page(results, study), port, open_browser=not no_open, save=save)
