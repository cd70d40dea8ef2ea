"""`isoloss plot`: kinds listed, a figure written where it was asked for, slips named."""

import json

import fitted
import pytest

from isoloss.figures import gallery


@pytest.fixture
def law(tmp_path):
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fitted.fitted("chinchilla").to_json()), "utf-8")
    return path


def test_list_names_every_kind(isoloss):
    code, out, _ = isoloss("plot", "list")
    assert code == 0
    assert all(f"  {kind}" in out for kind in (*gallery.STUDY, *gallery.FIT))
    assert json.loads(isoloss("plot", "list", "--json")[1])["iso-loss"]


def test_a_figure_goes_where_it_is_asked_for_and_its_finding_is_said(isoloss, law, tmp_path):
    path = tmp_path / "out" / "a.svg"
    code, out, _ = isoloss("plot", "tokens-per-param", law, "chinchilla-epoch", "-o", path)
    assert code == 0
    assert path.read_text("utf-8").startswith("<svg")
    assert "tokens a parameter" in out
    assert f"Written: {path}" in out


def test_each_pair_of_families_has_a_file_of_its_own(isoloss, ahead, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = isoloss("plot", "gap-by-tokens", ahead.folder, "--style", "paper", "--json")
    paths = json.loads(out)["paths"]
    assert code == 0
    assert len(set(paths)) == len(paths)
    assert all((tmp_path / path).is_file() for path in paths)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("law",), 2, "needs a source"),
        (("lwa", "chinchilla"), 2, "choose one of law"),
        (("law", "nothing.json"), 2, "neither a file nor a published law"),
        (("law", "chinchilla", "-o", "a.gif"), 2, ".svg, .pdf, .png, .csv"),
        (("law", "chinchilla", "--style", "poster"), 2, "screen, paper"),
        (("residuals", "chinchilla"), 3, "residuals of chinchilla: this fit carries no rows"),
        (("gap-by-tokens", "nowhere"), 2, "nowhere: there is no such folder"),
        (("law", "chinchilla", "--column", "params=N"), 2, "options of a table"),
        (("shape", "reference"), 3, "planned nothing"),
        (("shape", "reference", "reference"), 2, "name one study"),
    ],
)
def test_slips_are_named(isoloss, tmp_path, monkeypatch, arguments, code, says):
    monkeypatch.chdir(tmp_path)
    exit_code, _, err = isoloss("plot", *arguments)
    assert (exit_code, says in err) == (code, True), err
    assert not list(tmp_path.iterdir())


def test_python_draws_the_same_kinds(ahead):
    law = fitted.fitted("chinchilla")
    assert law.plot().to_dict(validate=False) == law.plot("law").to_dict(validate=False)
    titles = ahead.plot("loss-by-params").to_dict(validate=False)["title"]["text"]
    assert "LSTM" in " ".join(titles)
