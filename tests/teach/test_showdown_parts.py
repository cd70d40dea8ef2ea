"""What the showdown rests on: decoding, n-grams of the training text, packaged checkpoints."""

import importlib.util
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from isoloss import files
from isoloss.corpus import library
from isoloss.corpus.batches import evaluation_windows
from isoloss.corpus.split import text_bytes
from isoloss.corpus.tokenfile import open_tokens, write_tokens
from isoloss.corpus.tokenizer import encode, tokenizer_hash
from isoloss.errors import InputError
from isoloss.teach.showdown import checkpoints, copying
from isoloss.teach.showdown.checkpoints import FAMILIES
from isoloss.teach.showdown.settings import MODEL_SEEDS
from isoloss.teach.showdown.writing import chances, dice, next_tokens
from isoloss.training.evaluation import evaluate

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MOST_BYTES, MOST_SHOWN_BYTES = 2_500_000, 8_000_000
ROUNDING = 0.002
"""Nats: what float16 weights may move a mean loss; other weights move the loss by position far more."""


# Decoding


def reference(logits_V, temperature, top_k):
    """Softmax over the k likeliest, one token after the other."""
    kept = sorted(range(len(logits_V)), key=lambda token: (-logits_V[token], token))[:top_k]
    weights = {token: np.exp(logits_V[token] / temperature) for token in kept}
    return [weights.get(token, 0.0) / sum(weights.values()) for token in range(len(logits_V))]


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 40), (0.5, 3), (2.0, 7), (0.1, 1), (1.0, 1_000)])
def test_chances_against_a_reference(temperature, top_k):
    logits_BV = np.random.default_rng(0).normal(0, 3, (5, 12)).astype(np.float32)
    chances_BV = chances(logits_BV, temperature=temperature, top_k=top_k)
    wanted = [reference(row.astype(float), temperature, top_k) for row in logits_BV]
    np.testing.assert_allclose(chances_BV, wanted, rtol=1e-5, atol=1e-12)
    assert ((chances_BV > 0).sum(-1) <= top_k).all()
    hotter = [reference(row.astype(float), 1.5 * temperature, top_k) for row in logits_BV]
    assert top_k == 1 or not np.allclose(chances_BV, hotter, rtol=1e-5, atol=1e-12)


def test_equal_logits_keep_exactly_k():
    assert (chances(np.zeros((1, 9)), temperature=1.0, top_k=4) > 0).sum() == 4


def test_dice_fall_as_often_as_the_chances_say():
    chance_V = np.array([0.05, 0.5, 0.0, 0.3, 0.15])
    n = 20_000
    drawn = next_tokens(np.tile(chance_V, (n, 1)), np.random.default_rng(1).random(n))
    share_V = np.bincount(drawn, minlength=5) / n
    error_V = 4 * np.sqrt(chance_V * (1 - chance_V) / n)
    assert (np.abs(share_V - chance_V) <= error_V).all()
    assert not (np.abs(share_V - chance_V[::-1]) <= error_V).all()


def test_the_dices_ends_are_tokens_that_may_be_taken():
    chance_BV = np.array([[0.0, 0.4, 0.6, 0.0]] * 2)
    assert next_tokens(chance_BV, np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [2, 1]


def test_dice_depend_on_seed_member_and_sample_alone():
    few, many = dice(5, 2, 2, 8), dice(5, 3, 4, 20)
    assert np.array_equal(few, many[:2, :2, :8])
    assert not np.array_equal(few, dice(6, 2, 2, 8))
    assert len(np.unique(many)) == many.size


# Words and what the training text holds


def plain_words(text):
    kept = "".join(c if c.isalnum() or c == "'" else " " for c in text.lower())
    return kept.split()


def test_copies_against_sets_of_words():
    rng = np.random.default_rng(2)
    vocabulary = ["the", "cat", "dog's", "sat", "on", "mat"]
    training, text = (" ".join(rng.choice(vocabulary, size)) for size in (400, 60))
    overlap = copying.overlaps([copying.words_of(text)], copying.words_of(training))[0]
    training_words, text_words = plain_words(training), plain_words(text)

    def runs(words, n):
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    for n in copying.GRAMS:
        assert overlap.held[n] == sum(run in set(runs(training_words, n)) for run in runs(text_words, n))
        assert overlap.grams[n] == len(text_words) - n + 1
    longest = max(n for n in range(1, 61) if set(runs(text_words, n)) & set(runs(training_words, n)))
    assert overlap.longest == longest
    assert 0 < overlap.held[4] < overlap.grams[4]


def test_words_are_told_apart_by_letters_alone():
    assert copying.words_of("The CAT,\n sat!") == copying.words_of("the  cat sat")
    assert len(set(copying.words_of("ab ba a b aab aba baa"))) == 7
    assert copying.words_of(" .,;\n") == ()


def test_a_training_passage_is_copied_and_the_same_words_shuffled_are_not():
    training = copying.training_words()
    rng = np.random.default_rng(3)
    firsts = rng.integers(0, len(training) - 60, 20).tolist()
    passages = [training[first : first + 60] for first in firsts]
    passages = [passage for passage in passages if all(passage)]
    assert len(passages) > 10
    for one in copying.overlaps(passages, training):
        assert one.share(4) == one.share(8) == 1.0
        assert one.longest == one.words
    orders = [rng.permutation(len(passage)).tolist() for passage in passages]
    mixed = [tuple(passage[i] for i in order) for passage, order in zip(passages, orders, strict=True)]
    shuffled = copying.overlaps(mixed, training)
    assert np.mean([one.share(4) for one in shuffled]) < 0.02
    assert all(one.share(8) == 0.0 for one in shuffled)


def test_no_run_crosses_two_training_documents():
    one, two = (document.text for document in library.load("starter").train[:2])
    last, first = copying.words_of(one)[-4:], copying.words_of(two)[:4]
    overlaps = copying.overlaps([last + first, last], copying.training_words())
    assert overlaps[1].share(4) == 1.0
    assert overlaps[0].longest < 8


def test_short_and_empty_texts_have_no_share():
    none, three = copying.overlaps(
        [copying.words_of(""), copying.words_of("the the the")], copying.training_words()
    )
    assert none.share(4) is None
    assert none.longest == 0
    assert three.share(4) is None
    assert copying.distinct(copying.words_of(""), 1) is None
    assert copying.distinct(copying.words_of("a b a b"), 1) == 0.5
    assert copying.distinct(copying.words_of("a b a b"), 2) == pytest.approx(2 / 3)


def test_torn_words_at_the_ends_do_not_count():
    whole = copying.words_of("rk night fell, and the wi", whole=True)
    assert whole == copying.words_of("night fell and the")
    assert copying.words_of(" night fell.", whole=True) == copying.words_of("night fell")


# Packaged checkpoints


@pytest.fixture(scope="module")
def about():
    return checkpoints.card()


def test_the_two_sides_are_of_one_size_and_one_budget(about):
    assert Counter(run.family for run in about.runs) == dict.fromkeys(FAMILIES, MODEL_SEEDS)
    sizes = [run.params_total for run in about.runs]
    assert max(sizes) / min(sizes) <= 1.1
    assert tokenizer_hash(checkpoints.tokenizer()) == about.tokenizer_hash
    assert about.corpus_hash == library.info("starter").corpus_hash


@pytest.mark.parametrize(
    ("folder", "most"),
    [(checkpoints.package_folder(), MOST_BYTES), (checkpoints.shown_folder(), MOST_SHOWN_BYTES)],
    ids=["small", "shown"],
)
def test_every_packaged_file_is_in_the_manifest_and_they_are_small(folder, most):
    sizes = {path.name: len(path.read_bytes()) for path in folder.iterdir() if path.is_file()}
    listed = files.read_json(folder / checkpoints.MANIFEST)["sha256"]
    assert sizes.keys() == listed.keys() | {checkpoints.MANIFEST}
    assert sum(sizes.values()) <= most
    assert max(sizes.values()) <= 4_000_000
    for name in listed:
        checkpoints.verified_bytes(name, folder)


def test_the_pair_that_is_shown_is_of_one_size_budget_and_effort():
    folder = checkpoints.shown_folder()
    about = checkpoints.card(folder)
    assert Counter(run.family for run in about.runs) == dict.fromkeys(FAMILIES, 1)
    sizes = [run.params_total for run in about.runs]
    assert max(sizes) / min(sizes) <= 1.02
    assert min(sizes) > 1_400_000
    assert tokenizer_hash(checkpoints.tokenizer(folder)) == about.tokenizer_hash
    tried = {name: [row for row in about.other_rates if row.family == name] for name in FAMILIES}
    assert len({len(rows) for rows in tried.values()}) == 1
    for run in about.runs:  # the rate was the best of those tried, at one and the same budget
        best = min(tried[run.family], key=lambda row: row.loss)
        assert best.learning_rate == run.learning_rate
        assert best.tokens < about.tokens


@pytest.mark.parametrize("name", FAMILIES)
def test_checkpoints_load_and_hold_the_parameters_of_the_card(about, name):
    model = checkpoints.cohort(about, name, range(MODEL_SEEDS))
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == MODEL_SEEDS * about.run(name, 0).params_total


@pytest.mark.parametrize("name", ["lstm-1.safetensors", "card.json", "tokenizer.json"])
def test_a_changed_or_missing_file_is_refused(about, tmp_path, name):
    folder = tmp_path / "checkpoints"
    shutil.copytree(str(checkpoints.package_folder()), folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)

    def use():
        checkpoints.tokenizer(folder)
        checkpoints.cohort(checkpoints.card(folder), "lstm", [0, 1, 2], folder)

    with pytest.raises(InputError, match="does not match the sha256"):
        use()
    (folder / name).unlink()
    with pytest.raises(InputError, match="is missing"):
        use()


def test_weights_of_another_shape_are_refused(about, tmp_path):
    folder = tmp_path / "checkpoints"
    shutil.copytree(str(checkpoints.package_folder()), folder)
    shutil.copyfile(folder / "transformer-0.safetensors", folder / "lstm-0.safetensors")
    listed = files.read_json(folder / checkpoints.MANIFEST)
    listed["sha256"]["lstm-0.safetensors"] = files.sha256(folder / "lstm-0.safetensors")
    files.write_json(folder / checkpoints.MANIFEST, listed)
    with pytest.raises(InputError, match="does not fit the shape"):
        checkpoints.cohort(about, "lstm", [0], folder)


@pytest.fixture(scope="module")
def held_out_windows(about, tmp_path_factory):
    """The very windows of the recorded losses, from the packaged tokenizer."""
    tokens = held_out(about, "starter", checkpoints.tokenizer(), tmp_path_factory.mktemp("held-out"))
    return evaluation_windows(tokens, count=about.runs[0].windows, context=about.context)


def held_out(about, corpus, tokenizer, folder):
    """The validation text of a corpus as a token file."""
    documents, place = library.load(corpus).validation, folder / "validation.tokens"
    write_tokens(
        place,
        encode(tokenizer, [document.text for document in documents]),
        split="validation",
        vocabulary=about.vocab,
        documents=len(documents),
        text_bytes=sum(map(text_bytes, documents)),
        tokenizer_hash=about.tokenizer_hash,
        corpus_hash=about.corpus_hash,
    )
    return open_tokens(place)


@pytest.fixture(scope="module")
def packing():
    """``benchmarks/showdown.py`` as a module."""
    spec = importlib.util.spec_from_file_location("packing", BENCHMARKS / "showdown.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_shown_pair_gives_its_recorded_losses_on_text_held_out_of_its_novels(
    packing, tmp_path, monkeypatch
):
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    packing.add_part(tmp_path / "novels")
    folder = checkpoints.shown_folder()
    about = checkpoints.card(folder)
    assert library.info(packing.PART).corpus_hash == about.corpus_hash
    tokens = held_out(about, packing.PART, checkpoints.tokenizer(folder), tmp_path)
    for run in about.runs:
        x_MT, y_MT = evaluation_windows(tokens, count=run.windows, context=about.context)
        model = checkpoints.cohort(about, run.family, [0], folder)
        sums = evaluate(model, x_MT[:64], y_MT[:64], members=1, device=torch.device("cpu"))[0]
        recorded = np.array(run.sum_T) / run.windows
        # A part of the windows: float16 weights move the mean far less than the choice of windows does.
        assert abs(sums.mean("exit_1") - recorded.mean()) < 4 * sums.standard_error("exit_1")
        assert sums.mean("exit_1") < np.log(about.vocab) - 3


@pytest.mark.parametrize("name", FAMILIES)
def test_packaged_weights_give_the_recorded_losses(about, held_out_windows, name):
    run, other = about.run(name, 0), about.run(name, 1)
    model = checkpoints.cohort(about, name, [0])
    x_MT, y_MT = held_out_windows
    sums = evaluate(model, x_MT, y_MT, members=1, device=torch.device("cpu"))[0]
    assert abs(sums.mean("exit_1") - run.loss) < min(ROUNDING, 1.96 * run.loss_se)
    by_position_T = sums.sum_T("exit_1") / sums.windows

    def apart(from_run):
        return np.abs(by_position_T - np.array(from_run.sum_T) / from_run.windows).mean()

    assert apart(run) < ROUNDING
    assert apart(other) > 5 * ROUNDING
    elsewhere = about.run(FAMILIES[1 - FAMILIES.index(name)], 0)
    assert abs(sums.mean("exit_1") - elsewhere.loss) > 1.96 * elsewhere.loss_se
