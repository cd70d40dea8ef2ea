"""The command line's root, and what its commands share: where results and talk go."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

from isoloss import text
from isoloss.errors import RunError
from isoloss.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from isoloss.table import Table


class Group(TyperGroup):
    """A flag that was not given is False: to make None of it the library loads pydantic, which is slow."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False) and param.default is None:
                param.default = False
        return params


app = typer.Typer(
    cls=Group,
    name="isoloss",
    help="A laboratory for neural scaling laws: train, measure, fit, doubt, predict, plan, report.\n\n"
    "Train:  isoloss run architectures --scale mini  then  isoloss report studies/architectures-mini\n\n"
    "Fit:  isoloss fit runs.csv --law chinchilla -o fit.json  then  isoloss plan fit.json --flops 1e21",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"isoloss {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run(words: Sequence[str]) -> None:
    """The command line. Of the commands only the one that is asked for is built: all would take a while."""
    commands, groups = app.registered_commands, app.registered_groups
    named = [command for command in commands if words and words[0] == _name(command)]
    if named:
        app.registered_commands, app.registered_groups = named, groups[:0]
    try:
        app()
    finally:
        app.registered_commands, app.registered_groups = commands, groups


def _name(command: CommandInfo) -> str:
    return command.name or get_command_name(getattr(command.callback, "__name__", ""))


@cache
def progress() -> "Console":
    """Where talk goes that is no result: stderr."""
    from rich.console import Console  # slow to import, and a fit needs none

    return Console(stderr=True)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


_SCREEN = 10
"""Findings that fit on a screen beside a result; each may take two lines."""


def strict_json(value: Any, indent: int | None = 1) -> str:
    """``value`` as JSON. Raises RunError where a number of it is not finite: that is no answer."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        raise RunError(
            "a number of the result is not finite",
            mend="ask for sizes nearer to the data, or fit the law again",
        ) from None


def show_json(value: Any) -> None:
    """Strict JSON on stdout."""
    print(strict_json(value))


def say(line: str) -> None:
    """A line on stdout. What a file holds may not steer the terminal: control characters become '?'."""
    print(plain(line))


def plain(line: str) -> str:
    return _CONTROL.sub("?", line)


def show(parts: "Iterable[str | Table]") -> None:
    """Lines as they are; tables with an empty line before them and before what follows."""
    from isoloss.table import Table, lines  # polars is slow to import, and --help needs none

    after_table = False
    for index, part in enumerate(parts):
        table = isinstance(part, Table)
        if after_table or (table and index):
            say("")
        for line in lines(part, terminal_width()) if table else (part,):
            say(line)
        after_table = table


def terminal_width() -> int:
    """Columns of the terminal; where stdout is none nothing is folded."""
    from isoloss.table import WIDE

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def respond(
    as_json: bool,
    value: Any,
    parts: "Iterable[str | Table]",
    warnings: Iterable[str] = (),
    *,
    verbose: bool = False,
) -> None:
    """The result on stdout: ``value`` as JSON, or in words with the reasons to doubt it.

    Each is a line, and its detail one below it. The gravest come first; unless ``verbose``, those beyond a
    screen are counted. Raises RunError for a number that is not finite, in words as in JSON.
    """
    from isoloss.plain import json_values  # pydantic is slow to import, and --help needs none

    plain_values = value.to_json() if hasattr(value, "to_json") else json_values(value)
    written = strict_json(plain_values, 1 if as_json else None)  # without an indent in a tenth of the time
    if as_json:
        print(written)
        return
    show(parts)
    messages = list(dict.fromkeys(warnings))
    shown = messages if verbose else messages[:_SCREEN]
    for first, detail in map(text.headline, shown):
        show([f"warning: {first}", *([f"    {detail}"] if detail else [])])
    if len(messages) > len(shown):
        say(f"warning: and {len(messages) - len(shown)} more, with --verbose")
