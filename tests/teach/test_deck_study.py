"""A study in the deck: each finding with its figure or why there is none; the last slide's evidence."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from markupsafe import escape

from isoloss.analysis.families import Versus
from isoloss.analysis.findings import LEFT_OUT, findings_of
from isoloss.analysis.study import analyse
from isoloss.errors import InputError, Refusal
from isoloss.records import load
from isoloss.teach.deck import study as slide
from isoloss.teach.words import check_short


@pytest.fixture(scope="module")
def small(ran):
    """A study of one size a family, which can answer little."""
    return load(ran.folder)


def section(folder):
    return slide.section(slide.analysis_of(folder), shipped=folder is None)


def test_every_finding_has_its_figure_or_its_reason(ahead):
    analysis = analyse(ahead)
    answers = slide.questions(analysis)
    assert [answer["finding"].key for answer in answers] == [finding.key for finding in findings_of(analysis)]
    *questions, gone = answers
    assert (gone["finding"].key, gone["picture"], gone["missing"]) == (LEFT_OUT, None, None), (
        "a list, no question"
    )
    for answer in questions:
        assert (answer["picture"] is None) == isinstance(answer.get("missing"), Refusal)
    drawn = [answer["picture"] for answer in answers if answer["picture"] is not None]
    assert len(drawn) >= 2, "control: this study can answer"


def test_what_a_study_cannot_answer_is_said_with_what_would_lift_it(ran, monkeypatch):
    def unanswered(measured, plane):
        raise Refusal("one size & one seed say nothing", mend="train <two> sizes")

    monkeypatch.setattr(slide.loss_by_params, "figure", unanswered)
    page = section(ran.folder)
    assert "one size &amp; one seed say nothing" in page
    assert "train &lt;two&gt; sizes" in page
    monkeypatch.undo()
    assert "one size" not in section(ran.folder), "control: this study can answer"


def test_only_finished_runs_are_counted(small):
    statuses = [record.status for record in small.records]
    assert statuses.count("diverged") == 1
    assert slide.basis(small).startswith("n = 5 runs of tiny-study, scale mini, ")


def record(machine, day, status="finished"):
    return SimpleNamespace(
        status=status,
        environment=SimpleNamespace(device_name=machine),
        events=[SimpleNamespace(time=f"{day}T12:00:00+00:00")],
    )


def test_all_machines_and_the_span_of_days_are_named():
    plan = {"study": "mine", "scale": "gpu"}
    runs = [record("B", "2026-01-02"), record("A", "2026-01-05"), record("C", "2026-01-09", "diverged")]
    study = SimpleNamespace(records=runs, plan=plan)
    assert slide.basis(study) == "n = 2 runs of mine, scale gpu, A, B, 2026-01-02 to 2026-01-05"
    study.records = runs[:1]
    assert slide.basis(study) == "n = 1 runs of mine, scale gpu, B, 2026-01-02"


def test_a_folder_that_holds_no_study_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="holds no study") as caught:
        slide.analysis_of(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_the_study_that_ships_is_marked_as_recorded_elsewhere(ran):
    shipped, own = section(None), section(ran.folder)
    assert "n = " in shipped
    assert shipped != own


def moved(gaps, *, sign=1, slope=-0.05, zero=None):
    """A pair's gaps by tokens whose lead and change are set; ``sign``: 1, the rival is ahead."""
    line = SimpleNamespace(zero=lambda: None)
    size = SimpleNamespace(params=332_000, gaps={1 << 16: None, 1 << 19: None}, zero=zero, line=line)
    change = None if slope is None else (slope > 0) - (slope < 0)
    return SimpleNamespace(versus=gaps.versus, change=change, lead=sign, sizes=(size,))


def test_what_longer_training_does_is_said_of_whichever_family_leads(ahead):
    analysis = analyse(ahead)
    (gaps, *_) = (pair for pair in analysis.gaps.pairs.values() if not isinstance(pair, Refusal))
    first, rival = (slide.name_of(family) for family in (gaps.versus.reference, gaps.versus.rival))
    end = {"value": 400_000.0}
    gap_of = {
        f"Trained longer, the {rival}'s lead shrinks.": moved(gaps),
        f"Trained longer, the {first}'s lead shrinks.": moved(gaps, sign=-1, slope=0.05),
        f"Trained longer, the {rival}'s lead grows.": moved(gaps, slope=0.05),
        f"Trained longer, the {rival}'s lead shrinks: gone at 332K parameters.": moved(
            gaps, zero=SimpleNamespace(**end)
        ),
        f"Training longer helps the {first} more.": moved(gaps, sign=0),
        f"Training longer helps the {rival} more.": moved(gaps, sign=0, slope=0.05),
        "Trained longer, the gap shows no clear change.": moved(gaps, slope=0.0),
        "One seed is too few to tell.": moved(gaps, slope=None),
    }
    for sentence, pair in gap_of.items():
        assert slide.gap_sentence(pair) == check_short(sentence)
    beyond = moved(gaps, zero=SimpleNamespace(value=10.0**7))
    assert slide.gap_sentence(beyond) == f"Trained longer, the {rival}'s lead shrinks.", (
        "not gone within the runs"
    )


@pytest.mark.parametrize(
    ("change", "end", "said"),
    [
        (-1, 1, "After token 16 the {0} gains more; the {1} still leads."),
        (1, -1, "After token 16 the {1} gains more; the {0} still leads."),
        (-1, -1, "After token 16 the {0} gains more and leads."),
        (1, 0, "After token 16 the {1} gains more."),
        (0, 1, "After token 16 neither clearly gains more."),
        (None, 1, "One text is too few to tell."),
    ],
)
def test_who_gains_from_context_is_said_with_who_leads(change, end, said):
    versus = Versus("transformer", "lstm", ("transformer", "lstm"), first=True)
    pair = SimpleNamespace(change=SimpleNamespace(sign=change), ends=(None, SimpleNamespace(sign=end)))
    data = SimpleNamespace(versus=versus, pairs=(None, pair))
    assert slide.positions_sentence(data) == check_short(said.format("Transformer", "LSTM"))


def test_the_last_slides_evidence_is_that_of_the_study_that_ships():
    analysis = slide.analysis_of(None)
    for key in ("gap", "positions"):
        html = slide.evidence(analysis, key, {"at": 3, "gone": None})
        assert "<svg" in html
        assert "RECORDED" in html
        (finding,) = (finding for finding in findings_of(analysis) if finding.key == key)
        assert str(escape(finding.sentence)) in html
        assert 'data-at="3"' in html
        assert ("since tokens 9–16" in html) == (key == "positions"), "what the sentence counts is drawn"
        assert "data-gone" not in html


def test_a_study_without_two_families_has_no_evidence(ahead):
    alone = replace(analyse(ahead), gaps=Refusal("one family", mend="train two"))
    html = slide.evidence(alone, "gap", {"at": 1, "gone": 2})
    assert "does not compare two families" in html
    assert "<svg" not in html
