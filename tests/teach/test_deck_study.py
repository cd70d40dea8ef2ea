"""The last slide: what a study found, each finding with its figure or with the reason why there is none."""

from types import SimpleNamespace

import pytest

from isoloss.analysis.findings import LEFT_OUT, findings_of
from isoloss.analysis.study import analyse
from isoloss.errors import InputError, Refusal
from isoloss.records import load
from isoloss.teach.deck import study as slide


@pytest.fixture(scope="module")
def small(ran):
    """A study of one size a family, which can answer little."""
    return load(ran.folder)


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
    def unanswered(measured):
        raise Refusal("one size & one seed say nothing", mend="train <two> sizes")

    monkeypatch.setattr(slide.loss_by_params, "figure", unanswered)
    page = slide.section(ran.folder)
    assert "one size &amp; one seed say nothing" in page
    assert "train &lt;two&gt; sizes" in page
    monkeypatch.undo()
    assert "one size" not in slide.section(ran.folder), "control: this study can answer"


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
        slide.section(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_the_study_that_ships_is_marked_as_recorded_elsewhere(ran):
    shipped, own = slide.section(None), slide.section(ran.folder)
    assert "n = " in shipped
    assert shipped != own
