"""The public face: what a fit does beyond its law, however it came to be."""

import json
from types import SimpleNamespace

import fitted
import polars as pl
import pytest

import isoloss
from isoloss.analysis.fit_rows import brief_formula
from isoloss.errors import InputError, RunError
from isoloss.laws import Fit
from isoloss.plans import plan


@pytest.fixture(scope="module")
def law():
    inputs, loss = fitted.runs_of("chinchilla")
    return isoloss.fit("chinchilla", pl.DataFrame(inputs | {"loss": loss}))


def test_a_fit_plans_as_the_function_does(law):
    assert law.plan(flops=1e19) == plan(law, flops=1e19)


def test_a_fit_read_back_is_the_same_and_still_plans(law):
    read = Fit.from_json(json.loads(json.dumps(law.to_json())))
    assert type(read) is type(law) is Fit
    assert read == law
    assert read.plan(flops=1e19) == law.plan(flops=1e19)


def test_a_fit_and_a_printed_law_draw_themselves(law):
    printed = isoloss.published("chinchilla-epoch")
    assert printed.plan(flops=1e21) == plan(printed, flops=1e21)
    title = " ".join(law.plot().to_dict(validate=False)["title"]["text"]).replace("\u00a0", " ")
    assert brief_formula(law) in title


# Studies


@pytest.fixture
def launched(monkeypatch, ran):
    """launched(failed=..., ...) -> what ``run`` hands to the launcher, which then says how it ended."""
    asked = {}

    def make(**outcome):
        ended = SimpleNamespace(**{"folder": ran.folder, "failed": {}, "stopped": False} | outcome)

        def launch(study, **options):
            asked.update(options, study=study)
            return ended

        monkeypatch.setattr("isoloss.studies.launch.launch", launch)
        return asked

    return make


def test_a_study_that_ran_is_read_at_once(launched, ran, tmp_path):
    asked = launched()
    engine = {"engine": "slurm", "engine_settings": ["hours=8"]}
    given = {"changes": ["seeds=[0]"], "workers": 3, "family_files": ["glr.py"], **engine}
    study = isoloss.run("my.toml", scale="gpu", out=tmp_path, **given)
    assert asked == {
        "study": "my.toml",
        "scale": "gpu",
        "out": tmp_path,
        **given,
    }
    assert study.table().equals(isoloss.load(ran.folder).table())
    assert study.positions()["count"].min() > 0


def test_a_study_that_failed_says_why_once_and_where_to_go_on(launched, ran):
    launched(failed={"a": "out of memory", "b": "out of memory", "c": "a bug"})
    with pytest.raises(RunError) as caught:
        isoloss.run("my.toml")
    assert caught.value.what == "not all runs ended: a bug; out of memory"
    assert (caught.value.where, caught.value.exit_code) == (str(ran.folder), 1)
    assert caught.value.mend == "call it again to go on"
    launched(stopped=True)
    with pytest.raises(RunError, match="not all runs ended: it was stopped"):
        isoloss.run("my.toml")


def test_fewer_workers_than_one_are_refused_before_anything_is_written(tiny, study_file, tmp_path):
    with pytest.raises(InputError, match="0 workers train nothing"):
        isoloss.run(str(study_file()), out=tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()
