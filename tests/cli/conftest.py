"""For tests of commands: a folder to stand in."""

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to stand in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
