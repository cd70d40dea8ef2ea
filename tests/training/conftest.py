"""A text small enough to train on in a blink, and a function that makes tasks on it."""

import random
from functools import partial

import pytest

from isoloss.corpus import library
from isoloss.models import shape_of
from isoloss.training.settings import Evaluating, Execution, Recipe, RunSettings
from isoloss.training.task import Member, Task

VOCAB, CONTEXT = 300, 16

SHAPES = {
    "transformer": {"n_layer": 2, "d_model": 16, "n_head": 2},
    "lstm": {"n_layer": 2, "d_model": 16},
    "looped": {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 3},
}


@pytest.fixture(scope="session")
def small_text(isoloss_home, tmp_path_factory):
    """A tokenized corpus of made-up sentences."""
    folder = tmp_path_factory.mktemp("text")
    draw = random.Random(0)
    words = [a + b for a in ("ka", "lo", "mi", "ne", "su") for b in ("ra", "to", "vi", "wen", "")]
    for number in range(12):
        sentences = [" ".join(draw.choices(words, k=8)) + "." for _ in range(60)]
        (folder / f"{number}.txt").write_text("\n".join(sentences))
    library.add("small", [folder])
    return library.tokenize("small", VOCAB)


@pytest.fixture
def make_task(task_in, tmp_path):
    """make_task(family, seeds=..., rates=..., shape={...}, ...) -> Task in a fresh folder."""
    return partial(task_in, tmp_path)


@pytest.fixture(scope="session")
def task_in(small_text):
    """As ``make_task``, in a given place."""
    return partial(task_on, small_text)


def task_on(
    text,
    place,
    family,
    *,
    seeds=(0,),
    rates=(0.01,),
    shape=None,
    batch_size=4,
    tokens=(1280, 2560),
    folder="out",
    recipe=None,
    windows=8,
    execution=None,
):
    values = SHAPES.get(family, {}) | (shape or {})
    members = []
    for seed in seeds:
        for rate in rates:
            settings = RunSettings(
                family=family,
                shape=shape_of(family, values).model_dump(mode="json"),
                corpus_hash=text.corpus_hash,
                tokenizer=f"bpe-{VOCAB}",
                vocab=VOCAB,
                context=CONTEXT,
                batch_size=batch_size,
                tokens=tuple(tokens),
                learning_rate=rate,
                seed=seed,
                recipe=recipe or Recipe(),
                evaluation=Evaluating(windows=windows, final_windows=windows, trace_windows=4),
            )
            out = place / folder / "runs" / settings.run_id
            out.mkdir(parents=True, exist_ok=True)
            members.append(Member(settings, family, out))
    return Task("test", tuple(members), "small", text.tokenizer_path.parent, execution or Execution())
