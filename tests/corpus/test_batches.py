"""Batches: a pure function of their arguments; each window once an epoch; order without a generator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from isoloss.corpus import batches
from isoloss.corpus.tokenfile import open_tokens, write_tokens
from isoloss.errors import InputError

SEEDS = st.integers(0, 2**63 - 1)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """1,000 ids that count up from 0, so that a value says where it stood."""
    path = tmp_path_factory.mktemp("tokens") / "count.tokens"
    facts = {"split": "train", "documents": 1, "tokenizer_hash": "t", "corpus_hash": "c", "text_bytes": 1}
    write_tokens(path, np.arange(1000), vocabulary=1000, **facts)
    return open_tokens(path)


def permuted(n, seed, epoch):
    return batches.permute(np.arange(n), n, seed, np.full(n, epoch))


@given(n=st.integers(1, 5000), seed=SEEDS, epoch=st.integers(0, 2**40))
def test_the_order_is_a_bijection(n, seed, epoch):
    assert sorted(permuted(n, seed, epoch).tolist()) == list(range(n))


@pytest.mark.parametrize("n", [*range(1, 70), 255, 256, 257, 65_535, 65_536, 65_537])
def test_the_order_is_a_bijection_at_the_edges(n):
    assert (np.bincount(permuted(n, 3, 1), minlength=n) == 1).all()


@given(n=st.integers(50, 2000), seed=st.integers(0, 2**62), epoch=st.integers(0, 1000))
def test_other_seeds_and_epochs_give_other_orders(n, seed, epoch):
    orders = [
        permuted(n, seed, epoch),
        permuted(n, seed + 1, epoch),
        permuted(n, seed, epoch + 1),
        np.arange(n),
    ]
    for i in range(4):
        for j in range(i):
            assert (orders[i] != orders[j]).any()


def reference_order(n, seed, epoch):
    """The same network in plain integers, one value at a time."""
    wrap = 2**64 - 1

    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) & wrap
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & wrap
        return x ^ (x >> 31)

    half = 1
    while 4**half < n:
        half += 1
    key = mix((mix(seed) + epoch) & wrap)

    def once(value):
        left, right = divmod(value, 2**half)
        for number in range(8):
            left, right = right, left ^ (mix((key + mix(right + (number << 48))) & wrap) % 2**half)
        return left * 2**half + right

    order = []
    for value in range(n):
        value = once(value)
        while value >= n:
            value = once(value)
        order.append(value)
    return order


@pytest.mark.parametrize(("n", "seed", "epoch"), [(1, 0, 0), (10, 0, 0), (97, 2**63 - 1, 5), (300, 7, 2**33)])
def test_the_order_equals_a_plain_reference(n, seed, epoch):
    assert permuted(n, seed, epoch).tolist() == reference_order(n, seed, epoch)


def pair_chi2(n=7, keys=6000):
    """Chi-squared of where (0, 1) go over many epochs against all ordered pairs alike, as a p-value."""
    epochs = np.arange(keys)
    first, second = (batches.permute(np.full(keys, p), n, 11, epochs) for p in (0, 1))
    counts = np.bincount(first * n + second, minlength=n * n).reshape(n, n)[~np.eye(n, dtype=bool)]
    expected = keys / (n * (n - 1))
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), n * (n - 1) - 1)


def test_pairs_of_windows_go_everywhere_alike():
    assert pair_chi2() > 1e-3


def test_control_one_round_is_not_enough(monkeypatch):
    monkeypatch.setattr(batches, "_ROUNDS", 1)
    assert pair_chi2() < 1e-6


@given(
    n=st.integers(1, 300),
    seed=SEEDS,
    first=st.integers(0, 2000),
    cuts=st.lists(st.integers(0, 60), min_size=1, max_size=6),
)
def test_micro_batches_hold_what_the_batch_holds(n, seed, first, cuts):
    whole = batches.sample_windows(n, seed, first, sum(cuts))
    starts = first + np.cumsum([0, *cuts[:-1]])
    parts = [batches.sample_windows(n, seed, int(at), cut) for at, cut in zip(starts, cuts, strict=True)]
    assert np.concatenate(parts).tolist() == whole.tolist()


@settings(max_examples=30)
@given(batch_size=st.integers(1, 70), context=st.integers(10, 120), seed=SEEDS)
def test_each_window_comes_once_an_epoch_whatever_the_batch_size(tokens, batch_size, context, seed):
    n = batches.n_windows(1000, context)
    steps = -(-2 * n // batch_size)
    x, y = zip(
        *(
            batches.train_batch(tokens, seed=seed, step=step, batch_size=batch_size, context=context)
            for step in range(steps)
        ),
        strict=True,
    )
    x, y = np.concatenate(x), np.concatenate(y)
    assert x.dtype == y.dtype == np.int64
    assert x.shape == y.shape == (steps * batch_size, context)
    assert (y == x + 1).all()  # the ids count up: a target is the next id
    for epoch in range(2):
        targets = y[epoch * n : (epoch + 1) * n].ravel()
        assert sorted(targets.tolist()) == list(range(1, n * context + 1))


def test_a_batch_is_a_pure_function(tokens):
    arguments = {"seed": 5, "step": 3, "batch_size": 8, "context": 16}
    np.random.seed(1)  # noqa: NPY002
    one = batches.train_batch(tokens, **arguments)
    np.random.seed(2)  # noqa: NPY002
    batches.train_batch(tokens, **{**arguments, "step": 4})
    other = batches.train_batch(tokens, **arguments)
    assert (one[0] == other[0]).all()
    assert (one[1] == other[1]).all()


@pytest.mark.parametrize("context", [1, 16, 120, 999])
@pytest.mark.parametrize("count", [1, 3, 8, 10_000])
def test_evaluation_windows_are_fixed_distinct_and_spread(tokens, count, context):
    x, y = batches.evaluation_windows(tokens, count=count, context=context)
    n = batches.n_windows(1000, context)
    assert x.shape == y.shape == (min(count, n), context)
    assert (y == x + 1).all()
    starts = x[:, 0] // context
    assert len(set(starts.tolist())) == len(starts)
    gaps = np.diff([*starts, n])
    assert gaps.max() - gaps.min() <= 1
    assert (x == batches.evaluation_windows(tokens, count=count, context=context)[0]).all()


def test_epochs_count_repeats_honestly():
    assert batches.epochs(1000, 0, 10) == 0
    assert batches.epochs(1001, 1000, 10) == 1
    assert batches.epochs(1000, 990, 10) == 1  # 99 windows: the last 9 ids are never a target
    assert batches.epochs(1001, 2500, 10) == 2.5


def test_a_text_shorter_than_one_context_is_named(tokens):
    for context in (1000, 5000):
        with pytest.raises(InputError, match=r"count\.tokens \(train\): the text is too short: 1,000 tokens"):
            batches.train_batch(tokens, seed=0, step=0, batch_size=1, context=context)
        with pytest.raises(InputError, match="too short"):
            batches.evaluation_windows(tokens, count=1, context=context)


@pytest.mark.parametrize(
    "wrong", [{"step": -1}, {"batch_size": 0}, {"context": 0}, {"seed": -1}, {"seed": 2**63}]
)
def test_impossible_arguments_are_input_errors(tokens, wrong):
    with pytest.raises(InputError) as caught:
        batches.train_batch(tokens, **{"seed": 0, "step": 0, "batch_size": 1, "context": 8, **wrong})
    assert caught.value.exit_code == 2
    wrong_lanes = {"step": 0, "batch_size": 1, "context": 8} | wrong
    if wrong.keys() & {"step", "batch_size", "context"}:
        with pytest.raises(InputError):
            batches.lane_batch(tokens, seed=0, **wrong_lanes)


def test_what_measures_nothing_is_refused(tokens):
    for count in (0, -3):
        with pytest.raises(InputError, match=f"{count} evaluation windows measure nothing"):
            batches.evaluation_windows(tokens, count=count, context=8)
    for bad in ({"n_windows": 0}, {"first": -1}, {"count": -1}):
        with pytest.raises(InputError, match="are not possible"):
            batches.sample_windows(**{"n_windows": 5, "seed": 0, "first": 0, "count": 1} | bad)
    assert batches.sample_windows(5, 0, 0, 0).size == 0
