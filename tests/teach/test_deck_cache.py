"""The live page is kept between starts, and drawn anew when anything that decides it changes."""

import pytest

from isoloss import files
from isoloss.errors import InputError
from isoloss.teach.deck import cache, page


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """How often a page was drawn, with a home of its own."""
    calls = []

    def build(results, study, *, live):
        calls.append((results, study, live))
        return f"page {len(calls)}"

    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(page, "build", build)
    return calls


def test_a_page_is_drawn_once(drawn):
    assert [cache.live_page(None, None) for _ in range(3)] == ["page 1"] * 3
    assert drawn == [(None, None, True)]


def test_other_results_or_another_study_draw_it_anew_and_only_the_newest_stays(drawn, tmp_path):
    results = tmp_path / "results"
    files.write_text(results / "binding.json", "{}")
    files.write_text(tmp_path / "study" / "study.json", "{}")
    assert cache.live_page(None, None) == "page 1"
    assert cache.live_page(results, None) == "page 2"
    files.write_text(results / "binding.json", "{ }")
    assert cache.live_page(results, None) == "page 3"
    assert cache.live_page(results, tmp_path / "study") == "page 4"
    assert len(list((tmp_path / "home" / "deck").iterdir())) == 1


def test_the_key_follows_the_package(monkeypatch):
    before = cache.key(None, None)
    monkeypatch.setattr(cache.cache, "code", lambda: "another package")
    assert cache.key(None, None) != before


def test_a_home_that_cannot_be_written_only_costs_time(drawn, monkeypatch, tmp_path):
    files.write_text(tmp_path / "file", "")
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "file"))
    assert [cache.live_page(None, None) for _ in range(2)] == ["page 1", "page 2"]


def test_an_error_keeps_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path))
    with pytest.raises(InputError):
        cache.live_page(tmp_path / "missing", None)
    assert not (tmp_path / "deck").exists()
