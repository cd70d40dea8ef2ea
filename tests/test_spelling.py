"""One spelling of numbers in all that is said: reports, figures' titles, recordings, the docs."""

import re
from pathlib import Path

import fitted
import pytest
import story
import telling

from isoloss import text
from isoloss.report import fit_page
from isoloss.teach.deck.page import recordings
from isoloss.teach.panels import PANELS

ROOT = Path(__file__).parents[1]
NUMBER = r"[+\-−]?\d[\d,.]*(e[\-−]?\d+)?[KMBT]?%?"
STRAYS = {
    "a space before %": re.compile(r"\d[ \u00a0\u202f]%"),
    "an interval in brackets": re.compile(rf"\[({NUMBER}|open), ({NUMBER}|open)\]"),
    "no interval in brackets": re.compile(r"\[no interval\]"),
    "a count in G": re.compile(r"\d[kG]\b"),
    "the plus of an exponent": re.compile(r"\de\+\d"),
}


def strays(words: str) -> list[str]:
    return [f"{name}: {match[0]!r}" for name, pattern in STRAYS.items() if (match := pattern.search(words))]


@pytest.mark.parametrize(
    "words",
    ["12 % of it", "0.5 [0.4, 0.6]", "a loss of 3 [no interval]", "7G tokens", "12k tokens", "1e+21 FLOPs",
     "N = 6.2M [3.2M, open]", "−0.1 [−0.2, +0.3]", "12 [10%, 20%]"],
)  # fmt: skip
def test_another_spelling_is_seen(words):
    assert strays(words)


def test_the_spelling_of_the_package_is_not_a_stray():
    ends = (0.0123, 0.4)
    words = [text.count(7e9), text.size(7e9), text.power(1e21), text.percent(0.12), text.percent(0.998, 1)]
    words += [text.interval(ends), text.interval(ends, text.percent), text.interval(None), text.level(0.95)]
    assert not [stray for one in words for stray in strays(one)]


def shown(path):
    """What a page shows, its pictures' words included."""
    words = re.sub(r"<style>.*?</style>|<[^>]*>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    assert len(words) > 10_000
    return words


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return telling.reported(telling.on_disk(tmp_path_factory.mktemp("story"), story.LSTM_AHEAD))


def test_a_report_and_its_figures_keep_to_it(report):
    assert strays(shown(report.path)) == []


@pytest.mark.parametrize("law", ["chinchilla", "power-floor", "loop-total", "optimal-params"])
def test_a_report_of_a_fit_and_its_figures_keep_to_it(law, tmp_path):
    written = fit_page.write(fitted.fitted(law), tmp_path)
    assert strays(shown(written.path)) == []


def test_findings_keep_to_it(report):
    sentences = [words for finding in report.findings for words in (finding.sentence, *finding.caveats)]
    assert sentences
    assert [stray for words in sentences for stray in strays(words)] == []


RECORDED = recordings(PANELS, None)


@pytest.mark.parametrize("panel", [panel for panel in PANELS if panel.name in RECORDED], ids=lambda p: p.name)
def test_recordings_keep_to_it(panel):
    recording = RECORDED[panel.name]
    settings = panel.settings_from(recording.settings)
    figures = panel.tell.figures(settings, recording.tables)
    sentences = [sentence.text for sentence in recording.sentences] + [
        recording.basis.line(),
        panel.doubt,
        panel.question,
    ]
    sentences += [words for f in figures for words in (f.title, f.subtitle, f.shows, f.would_change)]
    sentences += panel.lines(settings, recording.tables)
    assert [stray for words in sentences for stray in strays(words)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_the_docs_keep_to_it(path):
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    prose = "\n".join(
        line for line in prose.splitlines() if not line.lstrip().startswith((">>>", "...", "["))
    )
    assert strays(prose) == []
