"""Fits by file and by name, and what a law takes out of what was given."""

import json
from dataclasses import replace

import numpy as np
import pytest

from isoloss import files
from isoloss.errors import InputError, Refusal
from isoloss.laws import fit
from isoloss.sources.fits import inputs_for, read_fit
from isoloss.sources.published import unpublished

N = np.geomspace(1e6, 1e9, 9)
LAW = fit("power-floor", {"params": N}, (1.7 + 400 * N**-0.34) * (1 + 0.002 * np.cos(np.arange(9))))


def test_a_file_gives_back_the_fit_that_was_written(tmp_path):
    files.write_json(tmp_path / "FIT.json", LAW.to_json())
    assert read_fit(tmp_path / "FIT.json").predict(params=1e8) == LAW.predict(params=1e8)


def test_a_published_law_is_read_by_name_and_one_without_constants_refused():
    assert read_fit("chinchilla-epoch").law == "chinchilla"
    for name in unpublished():
        with pytest.raises(Refusal):
            read_fit(name)


@pytest.mark.parametrize(
    ("content", "message"),
    [("N,loss\n1,2\n", "is not a fit"), ("[1, 2]", "is not a fit"), (json.dumps({"law": "power"}), ".")],
)
def test_a_file_that_is_no_fit_says_what_to_do(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_fit(path)
    assert caught.value.where == str(path)
    assert "isoloss fit" in caught.value.mend


def test_neither_file_nor_law_lists_the_laws():
    with pytest.raises(InputError, match="neither a file nor") as caught:
        read_fit("chinchila")
    assert "chinchilla" in caught.value.mend


def test_tokens_follow_from_flops_and_parameters_and_back():
    law = read_fit("chinchilla-epoch")
    assert inputs_for(law, {"flops": 6e18, "params": 1e8}) == {"params": 1e8, "tokens": pytest.approx(1e10)}
    assert inputs_for(law, {"flops": 6e18, "tokens": 1e10})["params"] == pytest.approx(1e8)
    for given, message in (
        ({"flops": 1e18}, "one of params and tokens"),
        ({"flops": 1e18, "params": 1e8, "tokens": 1e9}, "one of params and tokens"),
        ({"params": 1e8}, "tokens is missing"),
        ({"params": 1e8, "tokens": 1e9, "position": 3.0}, "not position"),
    ):
        before = dict(given)
        with pytest.raises(InputError, match=message):
            inputs_for(law, given)
        assert given == before


def test_flops_by_another_rule_than_the_tables_are_refused():
    law = read_fit("chinchilla")
    source = {"findings": [{"kind": "flops-rule", "message": "C is 1.5 times 6 params tokens in every row"}]}
    with pytest.raises(InputError, match=r"flops mean 6 N D here, but C is 1\.5 times"):
        inputs_for(replace(law, source=source), {"params": 1e9, "flops": 1e21})
    assert inputs_for(law, {"params": 1e9, "flops": 6e21})["tokens"] == pytest.approx(1e12)


def test_a_finding_without_a_kind_is_no_rule_of_flops():
    source = {"findings": [{"message": "something else"}]}
    law = replace(read_fit("chinchilla"), source=source)
    assert inputs_for(law, {"params": 1e9, "flops": 6e21})["tokens"] == pytest.approx(1e12)


def test_a_forecast_in_place_of_a_fit_is_named(tmp_path):
    path = tmp_path / "forecast.json"
    files.write_json(path, {"loss": 2.0, "laws": {}, "error_rate": 0.01})
    with pytest.raises(InputError, match=r"(?s)is a forecast, not a fit.*isoloss forecast .*--forecast"):
        read_fit(path)
