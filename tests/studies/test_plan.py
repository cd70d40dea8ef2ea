"""From a study to its runs: names that follow from the settings alone, counts and labels."""

import random
import re
from collections import Counter

import pytest
from settings_of_a_run import run_settings
from train_planned import train

from isoloss import files
from isoloss.corpus import library
from isoloss.errors import InputError
from isoloss.studies import estimate, plan, spec
from isoloss.studies.estimate import MachineRate
from isoloss.training.settings import Evaluating, Recipe, RunSettings

SETTINGS = run_settings(
    shape={"n_layer": 2, "d_model": 64},
    corpus_hash="00ff",
    context=16,
    batch_size=4,
    tokens=(640, 1280),
    seed=3,
)
OTHERS = {
    "version": 2,
    "family": "looped",
    "family_source": "abc",
    "shape": {"n_layer": 2, "d_model": 65},
    "corpus_hash": "00fe",
    "tokenizer": "file-1",
    "vocab": 301,
    "context": 8,
    "batch_size": 2,
    "tokens": (640, 1344),
    "learning_rate": 0.010000001,
    "seed": 4,
    "recipe": Recipe(weight_decay=0.0),
    "evaluation": Evaluating(windows=129),
}


@pytest.fixture
def scale(tiny, study_text, study_file):
    """scale('context=32', ...) -> the scale with changes."""

    def make(*changes, text=study_text):
        return spec.scale_of(spec.read(str(study_file(text=text))), "mini", changes)

    return make


# Settings


def test_the_same_settings_have_the_same_name():
    rebuilt = RunSettings(**SETTINGS.model_dump())
    assert rebuilt.run_id == SETTINGS.run_id
    assert re.fullmatch(r"transformer-2x64-s3-[0-9a-f]{12}", SETTINGS.run_id)
    assert SETTINGS.hash == files.hash_of(SETTINGS.model_dump(mode="json"))


def test_every_setting_is_part_of_the_name():
    assert set(OTHERS) == set(RunSettings.model_fields), "a new setting needs a line above"
    ids = {SETTINGS.model_copy(update={key: value}).run_id for key, value in OTHERS.items()}
    assert len(ids | {SETTINGS.run_id}) == len(OTHERS) + 1


@pytest.mark.parametrize("part", [Recipe, Evaluating])
def test_every_part_of_a_nested_setting_is_part_of_the_name(part):
    values = part().model_dump()
    changed = {str: "other", int: 77, float: 0.0501}
    key = part.__name__.lower().replace("evaluating", "evaluation")
    ids = {
        SETTINGS.model_copy(update={key: part().model_copy(update={name: changed[type(value)]})}).hash
        for name, value in values.items()
    }
    assert len(ids | {SETTINGS.hash}) == len(values) + 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"tokens": (1280, 640)}, "must ascend"),
        ({"tokens": (640, 640)}, "must ascend"),
        (
            {"tokens": (641,)},
            "641 is not a multiple of the batch, 4 x 16 = 64 tokens; the nearest: 640 and 704",
        ),
        ({"tokens": (576,)}, "9 steps long; give it at least 10"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": "3e-4"}, "learning_rate"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"stpes": 4}, "stpes"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, what):
    with pytest.raises(ValueError, match=what):
        RunSettings(**SETTINGS.model_dump() | change)


# Plans


def test_a_plan_is_every_shape_rate_and_seed(scale):
    runs = plan.plan(scale(), gpu=False)
    assert [(run.settings.family, run.settings.seed) for run in runs] == [
        ("transformer", 0),
        ("transformer", 1),
        ("lstm", 0),
        ("looped", 0),
    ]
    assert [run.label for run in runs] == [
        "transformer 1x8",
        "transformer 1x8",
        "lstm 1x8",
        "looped 1x8, 2 loops",
    ]
    assert all(run.settings.learning_rate == 0.01 for run in runs)


def test_planning_again_gives_the_same_names(scale):
    names = [run.run_id for run in plan.plan(scale(), gpu=False)]
    assert names == [run.run_id for run in plan.plan(scale(), gpu=False)]
    assert names != [run.run_id for run in plan.plan(scale("tokens=[640]"), gpu=False)]


def test_names_of_runs_are_names_of_folders(scale, tmp_path):
    for run in plan.plan(scale(), gpu=False):
        assert files.safe_child(tmp_path, run.run_id).parent == tmp_path


def test_defaults_of_a_shape_are_written_out(scale):
    settings = plan.plan(scale(), gpu=False)[0].settings
    assert settings.shape["d_ff"] == 32, (
        "4 d_model, in full: a later default must not change what this run was"
    )
    assert settings.shape["n_head"] == 2


def test_seeds_of_an_entry_come_before_those_of_the_scale(scale):
    runs = plan.plan(scale("seeds=[7,8]"), gpu=False)
    assert [run.settings.seed for run in runs] == [0, 1, 7, 8, 7, 8]


def test_rates_come_from_the_recipe_where_the_study_gives_none(scale, study_text, monkeypatch):
    asked = []

    def rate(family, params, shape):
        asked.append((family, params, shape["n_layer"]))
        return 0.123

    monkeypatch.setattr(plan, "learning_rate", rate)
    runs = plan.plan(scale(text=study_text.replace("learning_rates = [0.01]", "")), gpu=False)
    assert {run.settings.learning_rate for run in runs} == {0.123}
    assert asked == [(run.settings.family, run.counts.params, 1) for run in runs if run.settings.seed == 0]


def test_a_rate_is_one_run_each(scale, study_text):
    text = study_text.replace("learning_rates = [0.01]", "learning_rates = [0.01, 0.02, 0.04]")
    runs = plan.plan(scale(text=text), gpu=False)
    assert Counter(run.settings.learning_rate for run in runs) == {0.01: 4, 0.02: 4, 0.04: 4}
    assert len({run.run_id for run in runs}) == 12


def test_a_run_named_twice_is_refused(scale, study_text):
    with pytest.raises(InputError, match=r"names a run twice: transformer-1x8-s1-"):
        plan.plan(scale(text=study_text.replace("seeds = [0, 1]", "seeds = [0, 1, 1]")), gpu=False)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("d_model = 8, n_head = 2 }", "d_model = 8, n_head = 2, depth = 3 }", "unknown key 'depth'"),
        (
            "d_model = 8, n_head = 2 }",
            'd_model = "8", n_head = 2 }',
            "d_model: Input should be a valid integer",
        ),
        ("d_model = 8, n_head = 2 }", "d_model = 0, n_head = 2 }", "d_model: Input should be greater than 0"),
        ("d_model = 8, n_head = 2 }", "n_head = 2 }", "the key 'd_model' is missing"),
        ('family = "lstm"', 'family = "mamba"', "there is no family 'mamba'"),
        (
            "learning_rates = [0.01]",
            "learning_rates = [0.0]",
            "learning_rate: Input should be greater than 0",
        ),
        ("tokens = [640, 1280]", "tokens = [641]", "tokens 641 is not a multiple of the batch"),
        ('corpus = "tiny"', 'corpus = "nowhere"', "there is no corpus 'nowhere'"),
        ('corpus = "tiny"', 'corpus = "../tiny"', "not a usable corpus name"),
        ('corpus = "tiny"', 'corpus = "tiny"\ntokenizer = "missing.json"', "there is no such file"),
    ],
)
def test_what_cannot_be_trained_is_refused(scale, study_text, old, new, what):
    assert old in study_text
    with pytest.raises(InputError) as caught:
        plan.plan(scale(text=study_text.replace(old, new)), gpu=False)
    assert what in str(caught.value)
    assert not caught.value.what.startswith(": ")


def test_costs_grow_with_tokens(scale):
    short, long = plan.plan(scale(), gpu=False), plan.plan(scale("tokens=[640,12800]"), gpu=False)
    for a, b in zip(short, long, strict=True):
        assert 0 < a.seconds < b.seconds
        assert 0 < a.memory_bytes == b.memory_bytes
        assert b.as_row()["flops_exact"] == pytest.approx(10 * a.as_row()["flops_exact"])


def test_evaluation_is_part_of_the_cost(scale):
    plain, watched = (
        plan.plan(scale(), gpu=False),
        plan.plan(scale("evaluation.trace_windows=5000"), gpu=False),
    )
    assert all(a.seconds < b.seconds for a, b in zip(plain, watched, strict=True))


def test_seconds_of_a_run_worked_by_hand(scale, monkeypatch):
    """10 and 20 steps, a fifth of each cooled down, watched at 0, 1, 2, 3, 4, 6, 8, 11 and 16."""
    monkeypatch.setattr(plan.estimate, "machine_rate", lambda gpu: MachineRate(1e6, 8, "made up"))
    run = plan.plan(scale("evaluation.targets=32"), gpu=False)[0]
    updates = 16 + 2 + 4
    windows = 9 * 2 + 4 + 8  # along the trunk, at the first D point, at the last
    sliding = 2 * 32 * (8 + 16)  # at both D points 32 targets, with 8 and with 16 tokens before each
    assert plan.estimate.evaluation_tokens(run.settings) == windows * 16 + sliding
    counts = run.counts
    # At the width of half speed all takes twice as long, attention with heads of d_head 90 / d_head times.
    d_head = run.settings.shape["d_head"]
    slow = 2 * (counts.matmul_flops + counts.head_flops) + 90 / d_head * counts.attention_flops
    # A forward pass is a third of a training step; calling a layer in an update takes 0.8 ms.
    work = 3 * slow * (updates * 64 + (windows * 16 + sliding) / 3) / 1e6
    calls = 0.8e-3 * run.settings.shape["n_layer"] * updates
    assert run.seconds == pytest.approx(work + calls, abs=calls / 100)


def test_windows_and_targets_beyond_the_text_cost_no_more_than_the_text():
    asked = run_settings(context=16, batch_size=4, tokens=(640, 1280), evaluation=Evaluating(targets=0))
    small = estimate.evaluation_tokens(asked)
    assert estimate.evaluation_tokens(asked, 1e6) == small, "control: what the text has is not cut"
    most = asked.model_copy(
        update={"evaluation": Evaluating(**dict.fromkeys(Evaluating.model_fields, 10**8))}
    )
    traces, points = 9, 2
    assert estimate.evaluation_tokens(most, 1600) == (traces + points) * 1600 * (1 + 8 + 16)


def test_a_scale_knows_its_text_before_it_costs_an_evaluation(scale):
    huge, large = (
        plan.plan(scale(f"evaluation.final_windows={count}"), gpu=False)[0].seconds
        for count in (10**8, 10**5)
    )
    assert huge == large, "both read the whole text"


# The text


@pytest.fixture
def own(tmp_path, monkeypatch):
    """What is known of the corpus ``own``, which nobody has tokenized yet."""
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    draw = random.Random(1)
    for number in range(12):
        words = draw.choices(["baran", "doto", "kivi", "lush", "mera"], k=200)
        files.write_text(tmp_path / "text" / f"{number}.txt", " ".join(words))
    return library.add("own", [tmp_path / "text"])


def long(scale, tokens, above=0):
    """A scale with the longest context of which two fit into so many tokens, or a longer one."""
    context = (tokens - 1) // 2 + above
    tokens = f"tokens=[{10 * context}]"
    return scale("corpus=own", "vocabulary=260", "batch_size=1", f"context={context}", tokens)


def test_a_context_longer_than_the_text_is_refused_before_it_is_tokenized(scale, own):
    most = own.validation_bytes + own.validation_documents
    assert plan.plan(long(scale, most), gpu=False)
    with pytest.raises(
        InputError, match=f"the validation text has at most {most:,} tokens, too few for two "
    ):
        plan.plan(long(scale, most, above=1), gpu=False)


def test_it_is_refused_by_the_tokens_where_they_are_counted(scale, own):
    counted = library.tokenize("own", 260).validation.tokens
    assert plan.plan(long(scale, counted), gpu=False)
    with pytest.raises(
        InputError, match=f"the validation text has {counted:,} tokens, too few for two "
    ) as caught:
        plan.plan(long(scale, counted, above=1), gpu=False)
    assert caught.value.where == "corpus own"


def test_a_run_is_refused_by_the_tokens_that_its_plan_could_not_count(scale, own, study_file, tmp_path):
    study = spec.read(str(study_file()))
    chosen = long(scale, own.validation_bytes)
    runs = plan.plan(chosen, gpu=False)
    with pytest.raises(InputError, match=r"the validation text has [0-9,]+ tokens, too few for two "):
        train(study, chosen, runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Cohorts


def test_a_cohort_differs_in_seed_and_rate_only(scale, study_text):
    text = study_text.replace("learning_rates = [0.01]", "learning_rates = [0.01, 0.02]")
    runs = plan.plan(scale("seeds=[0,1]", text=text), gpu=False)
    groups = plan.cohorts(runs, lambda run, alike: 3)
    assert sorted(len(group) for group in groups) == [1, 1, 1, 3, 3, 3]
    assert sorted(run.run_id for group in groups for run in group) == sorted(run.run_id for run in runs)
    for group in groups:
        assert len({(run.settings.family, str(run.settings.shape)) for run in group}) == 1
    assert [len(group) for group in plan.cohorts(runs, lambda run, alike: 1)] == [1] * 12


def test_runs_that_differ_in_their_seed_alone_are_one_design(scale, study_text):
    text = study_text.replace("learning_rates = [0.01]", "learning_rates = [0.01, 0.02]")
    runs = plan.plan(scale("seeds=[0,1,2]", text=text), gpu=False)
    designs = plan.designs(runs)
    assert sorted(run.run_id for design in designs for run in design) == sorted(run.run_id for run in runs)
    for design in designs:
        assert len({run.settings.learning_rate for run in design}) == 1
        assert len({run.settings.seed for run in design}) == len(design)
    assert max(map(len, designs)) == 3


def test_tokens_of_the_text_are_counted_or_estimated_from_its_bytes(scale, tmp_path, monkeypatch):
    chosen = scale()
    length = plan.TextLength(train=40_000, validation=4_000)
    monkeypatch.setattr(plan, "length_of", lambda *_: length)
    assert plan.training_tokens(chosen) == 40_000
    length = plan.TextLength(train=40_000, validation=4_000, counted=False)
    assert 15_000 < plan.training_tokens(chosen) < 25_000, "two bytes a token of 300"


def test_wall_time_is_that_of_the_longest_run_or_of_full_workers(scale):
    runs = plan.plan(scale(), gpu=False)
    seconds = [run.seconds for run in runs]
    assert plan.wall_seconds(runs, 10**6) == max(seconds)
    assert plan.wall_seconds(runs, 1) == pytest.approx(sum(seconds))


def test_an_entry_may_have_another_context_with_as_many_tokens_a_step(scale, study_text):
    first = "shapes = [{ n_layer = 1, d_model = 8, n_head = 2 }]"
    assert study_text.count(first) == 1
    runs = plan.plan(scale(text=study_text.replace(first, f"context = 4\n{first}")), gpu=False)
    short = [run for run in runs if run.label.endswith(", context 4")]
    assert {(run.settings.context, run.settings.batch_size) for run in short} == {(4, 16)}
    assert 0 < len(short) < len(runs)
    assert {run.settings.context for run in runs if run not in short} == {16}
    with pytest.raises(InputError, match="no whole number of contexts of 5"):
        plan.plan(scale(text=study_text.replace(first, f"context = 5\n{first}")), gpu=False)


def test_no_loop_at_all_is_an_error_before_anything_is_trained(scale, study_text):
    with pytest.raises(InputError, match="recurrence: Input should be greater than 0"):
        plan.plan(scale(text=study_text.replace("recurrence = 2", "recurrence = 0")), gpu=False)


def test_shapes_are_solved_for_the_size_of_their_entry(scale, study_text):
    shapes = "shape = { n_head = 2, n_layer = 2 }\nshapes = [{}, { d_model = 8 }]"
    entry = f'family = "transformer"\nparams = 6_100\n{shapes}\nlearning_rates = [0.01]\nseeds = [0]\n'
    models = "[[scale.mini.models]]\n"
    text = study_text[: study_text.index(models)] + models + entry
    runs = plan.plan(scale(text=text), gpu=False)
    assert [run.counts.params for run in runs] == [6_144, 6_112]
    assert [(run.settings.shape["d_model"], run.settings.shape["d_ff"]) for run in runs] == [
        (16, 64),
        (8, 175),
    ]
    assert [run.target for run in runs] == [6_100] * 2
    with pytest.raises(InputError, match=r"n_layer 500, d_model 4 comes within 5% of N = 6,100; the nearest"):
        plan.plan(scale(text=text.replace("d_model = 8", "d_model = 4, n_layer = 500")), gpu=False)
    with pytest.raises(InputError, match="params is solved for Transformers only"):
        plan.plan(scale(text=text.replace("transformer", "lstm")), gpu=False)


def test_a_carried_state_and_micro_batches_are_refused_before_anything_starts(scale):
    carry = scale("micro_batches=2").model_dump()
    carry["models"][1]["shape"] = {"carry": True}
    with pytest.raises(InputError, match="cannot be kept over micro-batches"):
        plan.plan(spec.Scale(**carry), gpu=False)
    carry["micro_batches"] = 1
    assert plan.plan(spec.Scale(**carry), gpu=False)
