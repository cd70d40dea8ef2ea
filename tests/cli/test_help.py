"""Which commands there are, and that each has help with an example."""

import sys

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


@pytest.mark.parametrize(
    ("words", "alone"), [(["fit"], True), (["import"], True), (["corpus", "list"], False)]
)
def test_the_command_that_is_asked_for_is_built_alone(words, alone, monkeypatch, capsys):
    build, built = typer.main.get_command_from_info, []

    def counted(command_info, **options):
        built.append(command_info)
        return build(command_info, **options)

    monkeypatch.setattr(typer.main, "get_command_from_info", counted)
    monkeypatch.setattr(sys, "argv", ["isoloss", *words, "--help"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert f"isoloss {' '.join(words)} [OPTIONS]" in " ".join(capsys.readouterr().out.split())
    assert len(built) == (1 if alone else len(commands()))
    built.clear()
    assert len(commands()) == len(built) > 20  # none is lost for the next call
