"""The command line as its users meet it."""

import sys

import pytest

from isoloss import cli


@pytest.fixture
def isoloss(monkeypatch, capsys):
    """isoloss('run', ...) -> (exit code, stdout, stderr), through the entry point."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["isoloss", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        return (code, *capsys.readouterr())

    return call
