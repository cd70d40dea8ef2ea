"""The options that say which column of a table is what; every command that reads a table takes them."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss.errors import InputError

Table = Annotated[Path, typer.Argument(help="Runs: .csv, .parquet, .ndjson, or a study's folder.")]
Params = Annotated[str | None, typer.Option("--params", help="Column of parameters N, raw counts.")]
Tokens = Annotated[str | None, typer.Option("--tokens", help="Column of training tokens D, raw counts.")]
Flops = Annotated[str | None, typer.Option("--flops", help="Column of training FLOPs C.")]
Loss = Annotated[str | None, typer.Option("--loss", help="Column of the loss, nats a token.")]
Recurrence = Annotated[str | None, typer.Option("--recurrence", help="Column of loops.")]
Position = Annotated[str | None, typer.Option("--position", help="Column of the position in the context.")]
Others = Annotated[
    list[str] | None, typer.Option("--column", help="NAME=COLUMN for any other input of a law.")
]
Where = Annotated[
    str | None, typer.Option("--where", help="Rows to keep, in SQL: \"cooled AND family = 'lstm'\".")
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="Column naming rows that hang together: a size, or a run.")
]
Objective = Annotated[
    str, typer.Option("--objective", help="huber-log, squared-log, squared or huber-likelihood; summed.")
]
Delta = Annotated[float, typer.Option("--delta", help="Threshold of Huber's function, on log loss.")]
Level = Annotated[float, typer.Option("--level", help="Share of intervals that hold the truth.")]
Fixed = Annotated[list[str] | None, typer.Option("--fixed", help="NAME=VALUE holds a parameter.")]
Tied = Annotated[list[str] | None, typer.Option("--tied", help="A,B gives two exponents one value.")]
Free = Annotated[list[str] | None, typer.Option("--free", help="Frees a parameter that the law holds.")]


def mapping(
    params: str | None = None,
    tokens: str | None = None,
    flops: str | None = None,
    loss: str | None = None,
    recurrence: str | None = None,
    position: str | None = None,
    others: list[str] | None = None,
) -> dict[str, str]:
    """Our name -> column, for those given."""
    named = {
        "params": params, "tokens": tokens, "flops": flops, "loss": loss, "recurrence": recurrence,
        "position": position,
    }  # fmt: skip
    return {name: column for name, column in named.items() if column} | pairs(others, "--column")


def pairs(items: list[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE items. Raises InputError for one without a name or a value."""
    out = {}
    for item in items or []:
        name, equals, value = item.partition("=")
        if not (name and equals and value):
            raise InputError(f"{item!r} is not NAME=VALUE", where=option, mend="write NAME=VALUE")
        out[name.strip()] = value.strip()
    return out


def numbers(items: list[str] | None, option: str) -> dict[str, float]:
    """NAME=NUMBER items. Raises InputError."""
    out = {}
    for name, text in pairs(items, option).items():
        try:
            out[name] = float(text)
        except ValueError:
            raise InputError(f"{text!r} is not a number", where=f"{option} {name}", mend="give one") from None
    return out


def inputs(given: dict[str, float | None], others: list[str] | None) -> dict[str, float]:
    """The inputs that options and --input gave. Raises InputError for one given twice."""
    told = {name: value for name, value in given.items() if value is not None}
    more = numbers(others, "--input")
    if twice := set(told) & set(more):
        raise InputError(f"{min(twice)} is given twice", where="--input", mend="give it once")
    return told | more


def groups(items: list[str] | None) -> list[tuple[str, ...]]:
    """A,B items as groups of names."""
    return [tuple(part.strip() for part in item.split(",")) for item in items or []]
