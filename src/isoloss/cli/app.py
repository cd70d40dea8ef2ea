"""The command line's root, and what its commands share: where results and talk go."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

app = typer.Typer(
    name="isoloss",
    help="A laboratory for neural scaling laws: train, measure, fit, doubt, predict, plan, report.\n\n"
    "Train:  isoloss run architectures --scale mini  then  isoloss report studies/architectures-mini\n\n"
    "Fit:  isoloss fit runs.csv --law chinchilla -o fit.json  then  isoloss plan fit.json --flops 1e21",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

progress = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def show_json(value: Any) -> None:
    """Strict JSON on stdout."""
    print(json.dumps(value, indent=1, allow_nan=False))


def doubts(warnings: tuple[str, ...] | list[str]) -> None:
    """Reasons to doubt the result, a line each."""
    for warning in warnings:
        print(f"mind: {warning}")
