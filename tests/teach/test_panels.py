"""All panels together: their settings, their words, their recordings, and that showing needs no torch."""

import pkgutil
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from isoloss import files
from isoloss.errors import InputError
from isoloss.teach import panels, result, words
from isoloss.teach.deck import study as deck_study
from isoloss.teach.panel import run

NAMES = [panel.name for panel in panels.PANELS]
RECORDED = Path(str(resources.files("isoloss.teach").joinpath("recorded")))
SLIDES = sorted(Path(str(resources.files("isoloss.teach.deck").joinpath("slides"))).glob("*.html"))
BY_NAME = pytest.mark.parametrize("panel", panels.PANELS, ids=NAMES)


def test_the_panels_are_these_in_the_order_of_the_slides():
    assert [
        *["machine", "reach", "first-letter", "random-place", "binding"],
        *["steps", "untrained", "trained", "right-slot", "training", "race", "bill", "showdown"],
    ] == NAMES
    shown = [name for slide in SLIDES for name in re.findall(r'panel\("([a-z-]+)"', slide.read_text("utf-8"))]
    assert sorted(shown) == sorted(NAMES)
    assert [slide.name[:2] for slide in SLIDES if slide.name[0] != "A"] == [f"{n:02}" for n in range(1, 14)]
    assert {panel.demo for panel in panels.PANELS} == set(panels.DEMOS)


@BY_NAME
def test_every_setting_has_a_default_a_bound_and_a_description(panel):
    panel.settings()
    schema = panel.settings.model_json_schema()
    for name, part in schema["properties"].items():
        assert part.get("description"), name
        assert "default" in part, name
        assert part.get("items", part)["type"] in ("integer", "number", "string", "boolean"), "has a field"
        text = str(part)
        bounded = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "enum", "boolean", "$ref")
        assert any(word in text for word in bounded), f"{name} has no upper bound"


@BY_NAME
def test_what_measures_a_panel_is_where_it_says(panel):
    assert callable(pkgutil.resolve_name(f"isoloss.teach.{panel.measured_by}"))


@BY_NAME
def test_unknown_and_ill_typed_settings_are_refused(panel):
    first = next(iter(panel.settings.model_fields))
    for values in ({"poker": 1}, {first: {"a": 1}}, {first: None}):
        with pytest.raises(InputError, match=f"panel {panel.name}"):
            panel.settings_from(values)


@BY_NAME
def test_what_a_panel_says_of_itself_may_be_said(panel):
    for text in (panel.title, panel.question, panel.doubt):
        assert text
        assert words.faults(text) == []
    for text in (panel.beware, panel.guess):
        assert words.short_faults(text) == []


@pytest.mark.parametrize("slide", SLIDES, ids=lambda path: path.name)
def test_what_a_slide_says_may_be_said(slide):
    assert {
        text: faults for text in paragraphs(slide.read_text("utf-8")) if (faults := words.faults(text))
    } == {}


def paragraphs(html):
    """What each paragraph, cell or point of a page says: none may lean on the numbers of another."""
    html = re.sub(r"\{[{%].*?[%}]\}", " ", html)
    parts = re.split(r"</?(?:p|li|t[dhr]|d[dt]|h2|summary|text|title|desc|aside|div)\b[^>]*>", html)
    return [text for part in parts if (text := " ".join(re.sub(r"<[^>]+>", " ", part).split()))]


def test_a_paragraph_has_no_n_of_the_next_one():
    texts = paragraphs("<p>It is <b>98%</b> right.</p> <p>Of n = 20 strings.</p>")
    assert texts == ["It is 98% right.", "Of n = 20 strings."]
    assert [bool(words.faults(text)) for text in texts] == [True, False]


@BY_NAME
def test_the_recording_is_there_and_its_code_has_not_changed(panel):
    held = result.read(RECORDED / f"{panel.name}.json")
    assert held.panel == panel.name
    mend = "python benchmarks/recordings.py --prove, or record it again as docs/teaching.md says"
    assert held.experiment == panel.experiment(), mend
    assert held.settings == panel.settings_from(panel.full).model_dump(mode="json"), mend


def test_the_recorded_study_is_what_todays_code_trains():
    proof = files.read_json(RECORDED / "proofs.json")["study"]
    assert proof["experiment"] == deck_study.experiment(), "python benchmarks/recordings.py --prove"


@BY_NAME
def test_the_recorded_sentences_are_what_the_recorded_numbers_say(panel):
    held = result.read(RECORDED / f"{panel.name}.json")
    settings = panel.settings_from(held.settings)
    assert panel.sentences(settings, held.tables) == held.sentences
    assert panel.basis(settings, held.tables) == held.basis
    assert panel.lines(settings, held.tables) or panel.name == "machine"


@BY_NAME
def test_a_recording_has_something_short_to_say(panel):
    """Fourteen words and one number are checked wherever a sentence is made."""
    held = result.read(RECORDED / f"{panel.name}.json")
    short = [sentence for sentence in held.sentences if sentence.short]
    assert short
    assert all(len(sentence.short) < len(sentence.text) for sentence in short)
    for sentence in short:
        assert sentence.ahead in sentence.short, "who is ahead is said"


@BY_NAME
def test_what_figures_and_markup_say_may_be_said(panel):
    held = result.read(RECORDED / f"{panel.name}.json")
    settings = panel.settings_from(held.settings)
    figures = panel.tell.figures(settings, held.tables)
    texts = [text for f in figures for text in (f.title, f.shows, f.would_change, f.description)]
    if hasattr(panel.tell, "html"):
        # What a model wrote is quoted, not said: the showdown's samples may hold any word.
        ours = re.sub(
            r'(?s)<span class="written">.*?</span>', "", str(panel.tell.html(settings, held.tables))
        )
        texts.append(re.sub(r"<[^>]+>", " ", ours))
    assert {text: faults for text in texts if (faults := words.faults(text))} == {}


def test_the_words_are_a_step_of_their_own():
    """A spinner says what is under way, not the measurement that has ended."""
    one, heard = panels.panel("steps"), []
    run(one, one.settings(), lambda done, text, tables=None: heard.append((done, text)))
    assert heard[-1] == (1.0, "putting it into words")


def test_the_hash_of_an_experiment_follows_what_measures_alone():
    one = panels.panel("binding")
    same = one.model_copy(update={"title": "Other words"})
    other = one.model_copy(update={"measured_by": panels.panel("reach").measured_by})
    assert one.experiment() == same.experiment()
    assert one.experiment() != other.experiment()


SHOWS = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
from isoloss.teach.deck import page
html = page.build()
print(len(html), html.count("<section"))
"""


def test_the_deck_with_recorded_results_needs_no_torch():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SHOWS], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == str(len(SLIDES))


WORDS = "\n".join(" ".join(f"w{i * 16 + j:04}" for j in range(12)) for i in range(270))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("reach", {"length": 512, "strings": 512}),
        (
            "first-letter",
            {"seeds": 20, "widths": [96] * 4, "lengths": [256] * 4, "cap": 10_000, "batch": 256},
        ),
        ("first-letter", {"every": 5, "cap": 10_000}),
        ("random-place", {"seeds": 20, "lengths": [256]}),
        ("binding", {"seeds": 20, "pairs": [32], "keys": [128], "batch": 256, "cap": 1}),
        ("right-slot", {"seeds": 20, "pairs": 12, "updates": 2_000, "batch": 128}),
        ("training", {"seeds": 20, "d_model": 64, "updates": 1_000, "corpus": WORDS, "prompt": "w0000"}),
        ("training", {"seeds": 20, "updates": 10, "corpus": WORDS, "prompt": "w0000", "samples": 2_000}),
    ],
)
def test_settings_that_are_harmless_one_by_one_are_refused_where_they_take_hours_together(name, values):
    with pytest.raises(InputError, match=r"together|at most"):
        panels.panel(name).settings_from(values | ({"split_seed": 3} if name == "training" else {}))
