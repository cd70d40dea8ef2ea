"""The script of the explorer's page is bundled once and kept; where it cannot be kept, nothing fails."""

import pytest

from isoloss.report import interactive


@pytest.fixture
def bundled(monkeypatch, tmp_path):
    """How often it was bundled so far."""
    calls = []
    monkeypatch.setattr(
        interactive.vl_convert,
        "javascript_bundle",
        lambda *_, **__: calls.append(1) or "let vega = '</script>';",
    )
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    interactive.library.cache_clear()
    yield calls
    interactive.library.cache_clear()


def test_it_is_bundled_once_for_all_processes_and_ends_no_script(bundled):
    first = interactive.library()
    interactive.library.cache_clear()  # as another process begins
    assert interactive.library() == first == "let vega = '<\\/script>';"
    assert bundled == [1]


def test_a_home_that_takes_nothing_is_no_reason_to_fail(bundled, tmp_path):
    (tmp_path / "home").write_text("a file stands where the folder would be")
    assert interactive.library() == "let vega = '<\\/script>';"
    assert bundled == [1]
