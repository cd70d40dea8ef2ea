"""Groups of options: a command takes them as one record, a user one by one and in their place."""

from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from isoloss.cli import options
from isoloss.errors import InputError


@dataclass(frozen=True)
class Pair:
    left: Annotated[str, typer.Option(help="One side.")] = "l"
    right: Annotated[int, typer.Option(help="The other.")] = 0


@pytest.fixture
def calls():
    return []


@pytest.fixture
def app(calls):
    app = typer.Typer()

    @app.command()
    @options.grouped
    def join(*, name: str, pair: Pair, last: bool = False) -> None:
        """Join.

        join one
        """
        calls.append((name, pair, last))

    return app


def test_fields_of_a_group_are_options_where_the_group_stands():
    @options.grouped
    def join(*, name: str, pair: Pair, last: bool = False) -> None: ...

    assert list(signature(join).parameters) == ["name", "left", "right", "last"]
    assert signature(join).parameters["left"].default == "l"


def test_a_command_gets_its_group_as_one_record(app, calls):
    assert CliRunner().invoke(app, ["a", "--right", "3", "--last"]).exit_code == 0
    assert calls == [("a", Pair("l", 3), True)]
    assert CliRunner().invoke(app, ["a", "--pair", "3"]).exit_code == 2
    assert len(calls) == 1


def test_columns_map_what_is_given_and_nothing_else():
    assert options.SizeColumnOptions(params="N").mapping == {"params": "N"}
    given = options.ColumnOptions(loss="L", others=["unique_tokens=U"], where="N > 1", cluster="run")
    assert given.mapping == {"loss": "L", "unique_tokens": "U"}
    with pytest.raises(InputError, match="NAME=VALUE"):
        assert options.ColumnOptions(others=["U"]).mapping


def test_held_parameters_are_numbers_and_ties_are_groups():
    held = options.HeldOptions(fixed=["E=1.7"], tied=["alpha, beta"])
    assert held.options() == {"fixed": {"E": 1.7}, "tied": [("alpha", "beta")]}
    with pytest.raises(InputError, match="not a number"):
        options.HeldOptions(fixed=["E=much"]).options()


def test_an_input_given_twice_is_refused():
    assert options.law_inputs({"params": 1e9, "tokens": None}, ["context=8"]) == {"params": 1e9, "context": 8}
    with pytest.raises(InputError, match="twice"):
        options.law_inputs({"params": 1e9}, ["params=2e9"])


@pytest.mark.parametrize("items", [["a=1", "a=2"], ["a=1", " a =1"], ["b=1", "a=1", "a=1"]])
def test_a_name_is_given_once(items):
    for read in (options.pairs, options.numbers):
        with pytest.raises(InputError, match=r"--input: a is given twice\n  To mend it: give it once"):
            read(items, "--input")
    assert options.pairs(["a=1", "b=1"], "--input") == {"a": "1", "b": "1"}


def test_a_column_is_mapped_by_its_option_or_by_column_but_not_by_both():
    with pytest.raises(InputError, match="--column: params is given twice"):
        _ = options.SizeColumnOptions(params="N", others=["params=M"]).mapping
