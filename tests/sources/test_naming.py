"""Well-known names of columns: exact, in any case, and none that two of ours share."""

import tomllib
from collections import Counter
from importlib import resources

from isoloss.sources.naming import LABELS, NUMBERS, SYNONYMS, candidates, other_counts, plain


def test_case_spaces_and_hyphens_do_not_matter_except_in_single_letters():
    assert plain(" Training FLOP ") == "training_flop"
    assert plain("val-loss") == "val_loss"
    assert (plain("N"), plain("n")) == ("N", "n")


def test_candidates_are_exact_names():
    columns = ["Model Size", "n", "N", "params_no_embed", "Val Loss"]
    assert candidates("params", columns) == ["Model Size", "N"]
    assert candidates("loss", columns) == ["Val Loss"]
    assert candidates("my_own", ["my_own", "mine"]) == ["my_own"]


def test_no_name_means_two_things():
    counted = Counter(name for names in SYNONYMS.values() for name in names)
    assert [name for name, count in counted.items() if count > 1] == []
    assert not LABELS & NUMBERS


def test_other_counts_of_parameters_are_those_that_are_not_used():
    columns = ["N", "params_no_embed", "Total Params", "loss"]
    assert other_counts(columns, {"params": "N"}) == ["params_no_embed", "Total Params"]
    assert other_counts(["N", "loss"], {"params": "N"}) == []


def test_every_known_name_is_text_and_every_key_of_the_file_is_read():
    text = resources.files("isoloss.sources").joinpath("naming.toml").read_text("utf-8")
    assert set(tomllib.loads(text)) == {
        "synonyms", "labels", "more_numbers", "parameter_counts", "batches", "settings", "shares",
        "no_settings",
    }  # fmt: skip
    assert all(isinstance(other, str) for others in SYNONYMS.values() for other in others)
    assert all(name == others[0] for name, others in SYNONYMS.items())
