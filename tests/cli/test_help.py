"""Which commands there are, and that each has help with an example."""

import pytest
import typer
from typer.testing import CliRunner

from isoloss import cli


def commands():
    def walk(command, path):
        if not hasattr(command, "commands"):
            yield path
            return
        for name, child in command.commands.items():
            yield from walk(child, [*path, name])

    return list(walk(typer.main.get_command(cli.app), []))


def test_the_commands_are_these():
    assert {" ".join(path) for path in commands()} == {
        "backtest",
        "bench",
        "compare",
        "corpus add",
        "corpus list",
        "corpus tokenize",
        "data fetch",
        "data list",
        "deck",
        "demo",
        "design",
        "export",
        "fit",
        "forecast",
        "import",
        "isoflop",
        "laws",
        "plan",
        "plot",
        "predict",
        "report",
        "run",
        "serve",
        "status",
    }


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(path):
    result = CliRunner().invoke(cli.app, [*path, "--help"])
    assert result.exit_code == 0
    assert f"isoloss {' '.join(path)} " in " ".join(result.output.split()).replace(
        f"Usage: isoloss {' '.join(path)} ", ""
    )
    assert "--json" in result.output


def test_help_alone_says_how_to_start():
    result = CliRunner().invoke(cli.app, [])
    assert "isoloss run architectures --scale mini" in result.output
