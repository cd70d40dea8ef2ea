"""What a reader meets first is short: at most 30 words and three numbers a sentence, in every case."""

import re

import fitted
import numpy as np
import pytest
import spec
import story
from brevity import sentences, too_long, too_much

from isoloss.analysis import refits
from isoloss.analysis.findings import findings_of
from isoloss.analysis.fit_findings import findings as fit_findings
from isoloss.errors import attempt
from isoloss.figures import gallery
from isoloss.laws import FORMS, fit
from isoloss.plans.compare import compare
from isoloss.records import reference

SHIPPED = reference.names()[1:]
STORIES = [name for name, one in vars(story).items() if isinstance(one, story.Story)]

NAMES = {*FORMS, *(name for form in FORMS.values() for name in form.parameters), "d_ff", "d_model", "d_head"}
WHOLE = 25
"""Words of a whole finding that stands first on a page: of a study that ships, or of a fit."""


def of_figure(figure):
    """Sentences that say too much: of its title, of its caption and of the paragraphs beside it."""
    paragraphs = (figure.subtitle, figure.shows.removeprefix(figure.title), figure.would_change)
    return too_much(figure.title) + [sentence for text in paragraphs for sentence in too_long(text)]


@pytest.mark.parametrize("name", [*SHIPPED, *STORIES])
def test_findings_of_studies_are_short(analysed, name):
    for finding in findings_of(analysed(name)):
        assert too_much(finding.sentence) == [], finding.key
        if name in SHIPPED:
            assert len(finding.sentence.split()) <= WHOLE, finding.key
        if finding.key != "left-out":  # whose caveats hold what a user wrote
            assert [words for caveat in finding.caveats for words in too_much(caveat)] == [], finding.key


@pytest.mark.parametrize("name", [*SHIPPED, *STORIES])
def test_words_of_study_figures_are_short(figures_of, name):
    drawn = figures_of(name)
    assert len(drawn) >= 3
    for figure in (figure for figures in drawn.values() for figure in figures):
        assert of_figure(figure) == [], figure.name


def test_the_trend_of_context_is_said_with_its_interval(analysed):
    (finding,) = findings_of(analysed("reference/context"))
    assert re.search(r"−0\.\d+ \(−0\.\d+ to −0\.\d+\) for tenfold N", finding.sentence)


@pytest.fixture(scope="module")
def laws():
    """Every form fitted to its own runs, and two with some of their losses spoilt."""
    out = {law: fitted.fitted(law) for law in fitted.TRUTH}
    for law in ("chinchilla", "data-constrained"):
        inputs, loss = fitted.runs_of(law)
        spoilt = np.where(np.arange(len(loss)) % 20 == 3, 1.3 * loss, loss)
        out[f"{law}, spoilt"] = fit(law, inputs, spoilt, curve_only=True)
    return out


def test_findings_of_fits_are_short(laws):
    """With two refits that move the exponents, as of two objectives."""
    seen = set()
    for name, law in laws.items():
        findings = fit_findings(law, [("squared", None, law)] * 2, attempt(refits.leave_one_out, law))
        seen |= {finding.key for finding in findings}
        assert [finding.key for finding in findings[:3] if len(finding.sentence.split()) > WHOLE] == [], name
        for finding in findings:
            texts = (finding.sentence, *finding.caveats)
            assert [words for text in texts for words in too_much(text)] == [], (name, finding.key)
    assert {"against", "certainty", "entropy-bonus", "objective", "influence"} <= seen


@pytest.mark.parametrize("kind", ["law", "real-against-predicted", "residuals"])
def test_words_about_every_law_are_short(laws, kind):
    for name, law in laws.items():
        (figure,) = gallery.fit_figures_of(law, kind)
        assert of_figure(figure) == [], name


def test_words_of_the_gallery_are_short(examples):
    for kind, (_, figure) in examples.items():
        assert of_figure(figure) == [], kind


def digits(text):
    """The most significant digits of a number in the text; ends of 1e21 and of 110,000 count none."""
    matches = re.findall(r"(?<![\w.])\d[\d,]*\.?\d*", text)
    return max((len(one.replace(",", "").replace(".", "").strip("0")) for one in matches), default=0)


def test_titles_and_labels_have_three_digits_at_most(examples, laws, page):
    drawn = [figure for _, figure in examples.values()]
    drawn += [gallery.fit_figures_of(law, "law")[0] for law in laws.values()]
    seen = 0
    for figure in drawn:
        labels = list(spec.written(figure))
        seen += len(labels)
        assert [text for text in (figure.title, *labels) if digits(text) > 3] == [], figure.name
    assert seen > 100


def test_digits_that_a_number_pretends_to_have_are_counted():
    assert digits("L = 1.8913 + 496 N^-0.35") == 5
    assert digits("270 to 813.8") == 4
    assert digits("N = 55.3K and C = 1e21, 110,000 in 2-layer, 0.0349") == 3


def test_sentences_of_the_gallery_begin_with_a_capital(examples):
    """But for names: of a law, of its parameters, and of a ratio of the shape."""
    for kind, (_, figure) in examples.items():
        texts = (figure.subtitle, figure.description, figure.shows, figure.would_change)
        begun = [sentence for text in texts for sentence in sentences(text) if sentence[:1].islower()]
        assert [one for one in begun if one.split()[0].rstrip(":") not in NAMES] == [], kind


def test_verdicts_on_hidden_runs_are_short():
    law = fitted.fitted("chinchilla")
    assert too_much(refits.hidden_runs(law).verdict()) == []
    ranked = compare(["chinchilla", "kaplan-nd", "power"], law.data.inputs, law.data.loss)
    assert too_much(ranked.verdict()) == []


def test_a_long_sentence_and_one_of_many_numbers_are_found():
    assert too_much("word " * 31 + "end.")
    assert too_much("It is 0.1 at 1K, 0.2 at 2K and 0.3 at 3K.")
    assert not too_much("The 4-layer LSTM is ahead by 0.1 nats (0.05 to 0.15) at N = 1K. It is so at D = 2K.")
    assert not too_much("L = 1.8 + 480 N^-0.34 + 2000 D^-0.37, runs scatter 0.1%")
