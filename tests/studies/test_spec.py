"""A study's TOML: what is wrong in it is said with the file and the key."""

import pytest

from isoloss.errors import InputError
from isoloss.studies import spec


@pytest.fixture
def write(study_file):
    """write(old, new) -> path of the study with one change, as a command is given it."""
    return lambda old="", new="": str(study_file(old, new))


def refused(path):
    with pytest.raises(InputError) as caught:
        spec.read(path)
    assert caught.value.where == path
    assert caught.value.mend
    return caught.value.what


def test_a_study_is_read(write):
    study = spec.read(write())
    scale = spec.scale_of(study, "mini")
    assert (study.name, scale.context, scale.tokens, scale.seeds) == ("tiny-study", 16, [640, 1280], [0])
    assert [models.family for models in scale.models] == ["transformer", "lstm", "looped"]


@pytest.mark.parametrize("name", spec.shipped())
def test_shipped_studies_are_read(name):
    assert spec.read(name).name == name


def test_architectures_is_shipped_with_its_scales():
    assert {"architectures", "learning-rates"} <= set(spec.shipped())
    assert set(spec.read("architectures").scale) == {"mini", "evening", "gpu", "paper"}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("context = 16", "contxt = 16", "unknown key 'scale.mini.contxt'; did you mean 'context'?"),
        (
            "context = 16",
            "context = 16\nstpes = 5",
            "unknown key 'scale.mini.stpes'",
        ),
        ("context = 16", 'context = "16"', "scale.mini.context: Input should be a valid integer (got '16')"),
        ("context = 16", "context = 16.5", "scale.mini.context: Input should be a valid integer"),
        ("context = 16", "context = true", "scale.mini.context: Input should be a valid integer"),
        ("context = 16", "context = 1", "scale.mini.context: Input should be greater than 1"),
        ("batch_size = 4", "batch_size = 0", "scale.mini.batch_size: Input should be greater than 0"),
        ("tokens = [640, 1280]", "tokens = []", "scale.mini.tokens: List should have at least 1 item"),
        ("tokens = [640, 1280]", "tokens = [6.4e2]", "scale.mini.tokens.0: Input should be a valid integer"),
        ("vocabulary = 300", "vocabulary = 256", "scale.mini.vocabulary: Input should be greater than 256"),
        (
            "windows = 4,",
            "windows = 1,",
            "scale.mini.evaluation.windows: Input should be greater than or equal",
        ),
        ("seeds = [0, 1]", "seeds = []", "scale.mini.models.0.seeds: List should have at least 1 item"),
        ("seeds = [0, 1]", "seeds = [0.5]", "scale.mini.models.0.seeds.0: Input should be a valid integer"),
        (
            "learning_rates = [0.01]",
            'learning_rates = ["3e-4"]',
            "scale.mini.models.0.learning_rates.0: Input should be a valid number (got '3e-4')",
        ),
        (
            "learning_rates = [0.01]",
            "learning_rates = [nan]",
            "learning_rates.0: Input should be a finite number",
        ),
        (
            "learning_rates = [0.01]",
            "learning_rates = []",
            "learning_rates: List should have at least 1 item",
        ),
        ('family = "lstm"\n', "", "the key 'scale.mini.models.1.family' is missing"),
        ('name = "tiny-study"', "", "the key 'name' is missing"),
        ('name = "tiny-study"', 'name = "../../etc"', "name: String should match pattern"),
        ('name = "tiny-study"', 'name = "a/b"', "name: String should match pattern"),
        ('name = "tiny-study"', 'name = "a\\n"', "name: String should match pattern"),
        ('name = "tiny-study"', 'name = "<script>"', "name: String should match pattern"),
        ('name = "tiny-study"', 'name = ""', "name: String should match pattern"),
        ('name = "tiny-study"', f'name = "{"a" * 65}"', "name: String should match pattern"),
        (
            'title = "Everything once, in seconds"',
            "title = 3",
            "title: Input should be a valid string (got 3)",
        ),
        (
            "corpus = ",
            "recipe = { warmup = 0.2 }\ncorpus = ",
            "recipe.warmup: Input should be less than or equal to",
        ),
        ("corpus = ", "recipe = { clip = inf }\ncorpus = ", "recipe.clip: Input should be a finite number"),
        ("corpus = ", "corpus = 3 #", "scale.mini.corpus: Input should be a valid string (got 3)"),
        ("context = 16", "context = ", "is not TOML: Invalid value (at line 8, column 11)"),
        ("context = 16", "context = 16\ncontext = 16", "is not TOML: Cannot overwrite a value"),
        ("context = 16", f"context = {'[' * 5000}", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(write, old, new, what):
    assert what in refused(write(old, new))


def test_a_file_that_is_not_utf8_names_the_byte(tmp_path, study_text):
    path = tmp_path / "my.toml"
    path.write_bytes(study_text.encode("utf-16"))
    with pytest.raises(InputError, match=r"my\.toml, line 1: is not UTF-8: byte 0xff at offset 0"):
        spec.read(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + study_text.encode("utf-8"))  # the mark that some editors put in front
    assert spec.read(str(path)).name == "tiny-study"


@pytest.mark.parametrize("name", ["nothing", "", ".", "/nowhere/my.toml", "../architectures", "a" * 5000])
def test_an_unknown_study_names_those_there_are(name):
    with pytest.raises(InputError, match="there is no study") as caught:
        spec.read(name)
    assert ", ".join(spec.shipped()) in caught.value.mend


# --set


@pytest.fixture
def study(write):
    return spec.read(write())


def test_an_unknown_scale_names_those_there_are(study):
    with pytest.raises(InputError, match="has no scale 'huge'") as caught:
        spec.scale_of(study, "huge")
    assert "mini" in caught.value.mend


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("seeds=[0,1,2]", lambda s: s.seeds == [0, 1, 2]),
        ("context=32", lambda s: s.context == 32),
        (" context = 32 ", lambda s: s.context == 32),
        ("corpus=mine", lambda s: s.corpus == "mine"),
        ('corpus="mine"', lambda s: s.corpus == "mine"),
        ("corpus=a=b", lambda s: s.corpus == "a=b"),
        ("evaluation.windows=7", lambda s: (s.evaluation.windows, s.evaluation.final_windows) == (7, 8)),
        ("recipe.weight_decay=0.0", lambda s: s.recipe.weight_decay == 0.0),
        ("tokens=[64_000]", lambda s: s.tokens == [64000]),
    ],
)
def test_set_changes_one_key(study, change, read):
    assert not read(study.scale["mini"])
    assert read(spec.scale_of(study, "mini", [change]))
    assert not read(study.scale["mini"]), "the study itself stays as it was"


def test_the_last_of_two_changes_holds(study):
    assert spec.scale_of(study, "mini", ["context=32", "context=64"]).context == 64


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("context", "'context' is not KEY=VALUE"),
        ("=3", "'=3' is not KEY=VALUE"),
        ("contxt=3", "unknown key 'contxt'; did you mean 'context'?"),
        ("seed=3", "unknown key 'seed'; did you mean 'seeds'?"),
        ("context=wide", "context: Input should be a valid integer (got 'wide')"),
        ("seeds=[0,1", "seeds: Input should be a valid list"),
        ("evaluation.window=3", "unknown key 'evaluation.window'; did you mean 'windows'?"),
        ("nowhere.windows=3", "there is no table 'nowhere'"),
        ("models.0.seeds=[1]", "there is no table 'models'"),
        ("context.x=3", "there is no table 'context'"),
    ],
)
def test_a_bad_change_is_named(study, change, what):
    with pytest.raises(InputError) as caught:
        spec.scale_of(study, "mini", [change])
    assert what in caught.value.what
    assert caught.value.where.startswith("--set")
