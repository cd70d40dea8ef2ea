"""Options that several commands share. A command takes a group of them as one argument, a frozen record."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from isoloss import amounts
from isoloss.errors import InputError

T = TypeVar("T")

Table = Annotated[Path, typer.Argument(help="Runs: .csv, .parquet, .ndjson, or a study's folder.")]
Fit = Annotated[str, typer.Argument(help="FIT.json, or a published law: see `isoloss laws`.")]
FitOrNone = Annotated[str | None, typer.Argument(help="FIT.json, or a published law: see `isoloss laws`.")]
Forecast = Annotated[
    str | None, typer.Option(help="In place of a fit, a table of runs, or what forecast -o wrote.")
]
Where = Annotated[str | None, typer.Option(help="Rows to keep, in SQL: \"cooled AND family = 'lstm'\".")]
Level = Annotated[float, typer.Option(help="Share of intervals that hold the truth.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Say every finding, not only the gravest.")]
Accept = Annotated[
    list[str] | None, typer.Option(help="Kind of finding that shall warn in place of refusing.")
]
BytesPerToken = Annotated[float | None, typer.Option(help="Turns bits per byte into nats a token.")]
Count = Annotated[str, typer.Option(help="Which count is N: params, params_total or params_executed.")]
TiedEmbeddings = Annotated[
    bool | None,
    typer.Option("--tied-embeddings/--untied-embeddings", help="Lets one count follow from another."),
]
MoreInputs = Annotated[list[str] | None, typer.Option("--input", help="NAME=VALUE for other inputs.")]


def number(what: str, kind: str = "", option: str = "", **options: Any) -> Any:
    """An option that takes 70B, 1.4T or 3e21; of params, tokens or flops, such as a model may have.

    ``option`` is its name where that is not its kind.
    """

    def read(text: str) -> float:
        value = amounts.number(text)
        return amounts.plausible(kind, value, option or f"--{kind}") if kind else value

    return typer.Option(help=what, parser=read, metavar="NUMBER", **options)


MAPPED = ("params", "tokens", "flops", "loss", "recurrence", "position")
"""Options of the columns that are named after what they hold."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with each field of its groups as an option of its own, in the place of the group."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    options: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if not dataclasses.is_dataclass(group := hints[name]):
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = group
        kinds = get_type_hints(group, include_extras=True)
        options += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name])
            for field in dataclasses.fields(group)
        ]

    @wraps(command)
    def with_options(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    vars(with_options)["__signature__"] = Signature(options)
    return with_options


@dataclass(frozen=True)
class SizeColumnOptions:
    """Which column of a table is which size and which the loss, what they count, and which rows are kept."""

    params: Annotated[str | None, typer.Option(help="Column of parameters N, raw counts.")] = None
    tokens: Annotated[str | None, typer.Option(help="Column of training tokens D, raw counts.")] = None
    flops: Annotated[str | None, typer.Option(help="Column of training FLOPs C.")] = None
    loss: Annotated[str | None, typer.Option(help="Column of the loss, nats a token.")] = None
    others: Annotated[
        list[str] | None, typer.Option("--column", help="NAME=COLUMN for any other input of a law.")
    ] = None
    where: Where = None
    bytes_per_token: BytesPerToken = None
    count: Count = "params"
    tied_embeddings: TiedEmbeddings = None
    accept: Accept = None
    verbose: Verbose = False

    def reading(self) -> dict[str, Any]:
        """How to read a table, as ``sources.columns_for`` and ``fit_table`` take it. Raises InputError."""
        return {
            "columns": self.mapping,
            "where": self.where,
            "bytes_per_token": self.bytes_per_token,
            "count": self.count,
            "tied_embeddings": self.tied_embeddings,
            "accepted": self.accept or (),
        }

    @property
    def mapping(self) -> dict[str, str]:
        """Our name -> column, for those given. Raises InputError."""
        columns = {name: column for name in MAPPED if (column := getattr(self, name, None))}
        others = pairs(self.others, "--column")
        if twice := set(columns) & set(others):
            raise _twice(min(twice), "--column")
        return columns | others


@dataclass(frozen=True)
class ColumnOptions(SizeColumnOptions):
    """The other inputs of laws too, and which rows hang together."""

    recurrence: Annotated[str | None, typer.Option(help="Column of loops.")] = None
    position: Annotated[str | None, typer.Option(help="Column of the position in the context.")] = None
    cluster: Annotated[
        str | None, typer.Option(help="Column naming rows that hang together: a size, or a run.")
    ] = None


@dataclass(frozen=True)
class RunsOptions:
    """How the runs of a forecast are read."""

    columns: Annotated[list[str] | None, typer.Option("--column", help="NAME=COLUMN, as in fit.")] = None
    where: Where = None
    cluster: Annotated[str | None, typer.Option(help="Column naming rows that hang together.")] = None
    bytes_per_token: BytesPerToken = None
    count: Count = "params"
    tied_embeddings: TiedEmbeddings = None
    accept: Accept = None

    def reading(self) -> dict[str, Any]:
        """As ``plans.forecast.forecaster_of`` takes it. Raises InputError."""
        own = {name: value for name, value in vars(self).items() if name != "accept"}
        return own | {"columns": pairs(self.columns, "--column"), "accepted": self.accept or ()}


@dataclass(frozen=True)
class ObjectiveOptions:
    """What a fit minimises, and the level of its intervals."""

    objective: Annotated[
        str | None,
        typer.Option(
            help="huber-log, squared-log, squared or huber-likelihood; summed. Default: huber-log, or "
            "squared-log where that refuses."
        ),
    ] = None
    delta: Annotated[float, typer.Option(help="Threshold of Huber's function, on log loss.")] = 1e-3
    level: Level = 0.9


@dataclass(frozen=True)
class HeldOptions:
    """Parameters that a fit holds or ties, and whether the curve will do without them."""

    fixed: Annotated[list[str] | None, typer.Option(help="NAME=VALUE holds a parameter.")] = None
    tied: Annotated[list[str] | None, typer.Option(help="A,B gives two exponents one value.")] = None
    curve_only: Annotated[
        bool, typer.Option("--curve-only", help="Keep the curve where the runs leave its parameters open.")
    ] = False

    def options(self) -> dict[str, Any]:
        """As ``laws.fit`` takes them. Raises InputError."""
        groups = [tuple(name.strip() for name in item.split(",")) for item in self.tied or []]
        held = {"fixed": numbers(self.fixed, "--fixed"), "tied": groups}
        return held | ({"curve_only": True} if self.curve_only else {})


def pairs(items: list[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE items. Raises InputError for one without a name or a value, and for a name given twice."""
    out: dict[str, str] = {}
    for item in items or []:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name and equals and value):
            raise InputError(f"{item!r} is not NAME=VALUE", where=option, mend="write NAME=VALUE")
        if name in out:
            raise _twice(name, option)
        out[name] = value
    return out


def _twice(name: str, option: str) -> InputError:
    return InputError(f"{name} is given twice", where=option, mend="give it once")


def numbers(items: list[str] | None, option: str) -> dict[str, float]:
    """NAME=NUMBER items. Raises InputError."""
    out: dict[str, float] = {}
    for name, text in pairs(items, option).items():
        try:
            out[name] = amounts.number(text)
        except InputError as error:
            raise InputError(error.what, where=f"{option} {name}", mend=error.mend) from None
    return out


def law_inputs(given: Mapping[str, T | None], others: list[str] | None) -> dict[str, T | float]:
    """The inputs that options and --input gave. Raises InputError for one given twice."""
    inputs: dict[str, T | float] = {name: value for name, value in given.items() if value is not None}
    more = numbers(others, "--input")
    if twice := set(inputs) & set(more):
        raise _twice(min(twice), "--input")
    return inputs | more
