"""A batch is a pure function of (tokens, seed, step): resuming a run needs no loader state.

Window i holds ids[i * context : i * context + context + 1]: inputs are all but the last id, targets all but
the first, so that windows share no target. Sample g of a run (g = step * batch_size + j) reads, in epoch
e = g // n_windows, window permutation_(seed, e)(g mod n_windows): each window once an epoch, in an order that
needs no memory and no random generator whose stream a new version could change.

The permutation is a balanced Feistel network on the smallest power of four that holds n_windows, walked until
it comes back below n_windows. Sources: Luby and Rackoff 1988; Black and Rogaway 2002 (cycle walking).
"""

from functools import lru_cache

import numpy as np

from isoloss.corpus.tokenfile import TokenFile
from isoloss.errors import InputError

_ROUNDS = 8
_BLOCK = 1024


def n_windows(n_tokens: int, context: int) -> int:
    """How many windows of ``context`` targets fit: (n_tokens - 1) // context.

    Raises InputError if not even one does.
    """
    if context < 1:
        raise InputError(f"a context of {context} tokens is not possible", mend="use at least 1")
    if n_tokens - 1 < context:
        raise InputError(
            f"the text is too short: {n_tokens:,} tokens, and one context needs {context + 1:,}",
            mend="use a shorter context, or more text",
        )
    return (n_tokens - 1) // context


def train_batch(
    tokens: TokenFile, *, seed: int, step: int, batch_size: int, context: int
) -> tuple[np.ndarray, np.ndarray]:
    """(x_BT, y_BT), int64: inputs and targets of training step ``step`` (0-based), a pure function.

    Any part of it is ``windows(tokens, sample_windows(n, seed, first, count), context)`` with
    first = step * batch_size + offset: cutting a batch into micro-batches does not change what is in it.

    Raises InputError if the text is shorter than one context, or an argument is negative.
    """
    index_B = train_windows(tokens, seed=seed, step=step, batch_size=batch_size, context=context)
    return windows(tokens, index_B, context)


def train_windows(tokens: TokenFile, *, seed: int, step: int, batch_size: int, context: int) -> np.ndarray:
    """index_B (int64) of the windows that ``train_batch`` reads."""
    _check_step(step, batch_size)
    n = _windows_of(tokens, context)
    return sample_windows(n, seed, step * batch_size, batch_size)


def lane_batch(
    tokens: TokenFile, *, seed: int, step: int, batch_size: int, context: int
) -> tuple[np.ndarray, np.ndarray]:
    """(x_BT, y_BT), int64, for models that carry their state from step to step; a pure function too.

    Row j of step s + 1 goes on where row j of step s ended. Lane j starts at window
    (offset of the seed + j n / B) mod n and wraps around the file, once in n steps.

    Raises InputError as ``train_batch`` does.
    """
    index_B = lane_windows(tokens, seed=seed, step=step, batch_size=batch_size, context=context)
    return windows(tokens, index_B, context)


def lane_windows(tokens: TokenFile, *, seed: int, step: int, batch_size: int, context: int) -> np.ndarray:
    """index_B (int64) of the windows that ``lane_batch`` reads."""
    _check_step(step, batch_size)
    n = _windows_of(tokens, context)
    offset = int(_mix(np.array([seed], dtype=np.uint64))[0]) % n
    lanes_B = np.arange(batch_size, dtype=np.int64) * n // batch_size
    return (offset + lanes_B + step) % n


def _check_step(step: int, batch_size: int) -> None:
    if batch_size < 1 or step < 0:
        raise InputError(
            f"step {step} with batch size {batch_size} is not possible", mend="use step >= 0, size >= 1"
        )


def sample_windows(n_windows: int, seed: int, first: int, count: int) -> np.ndarray:
    """index_C (int64): the windows of samples first, ..., first + count - 1 of a run, across epochs."""
    if n_windows < 1 or first < 0 or count < 0:
        raise InputError(
            f"samples {first} to {first + count} of {n_windows} windows are not possible",
            mend="use values >= 0",
        )
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is not in [0, 2^63)", mend="use a seed such as 0")
    if count == 0:
        return np.empty(0, dtype=np.int64)
    numbers = range(first // _BLOCK, (first + count - 1) // _BLOCK + 1)
    blocks = np.concatenate([_block(n_windows, seed, number) for number in numbers])
    return blocks[first - numbers[0] * _BLOCK :][:count].copy()


@lru_cache(maxsize=64)
def _block(n_windows: int, seed: int, number: int) -> np.ndarray:
    """Samples number * _BLOCK and on: one call of the permutation serves many small batches."""
    samples_C = np.arange(number * _BLOCK, (number + 1) * _BLOCK, dtype=np.int64)
    return permute(samples_C % n_windows, n_windows, seed, samples_C // n_windows)


def permute(position_C: np.ndarray, n: int, seed: int, epoch_C: np.ndarray) -> np.ndarray:
    """index_C (int64): where a bijection of {0, ..., n - 1}, chosen by (seed, epoch), sends each position."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    key_C = _mix(_mix(np.full(len(position_C), seed, dtype=np.uint64)) + epoch_C.astype(np.uint64))
    index_C = _feistel(position_C.astype(np.uint64), key_C, half)
    # Outside the range the walk goes on; it starts inside, so it must come back inside (a cycle).
    while (outside := np.flatnonzero(index_C >= n)).size:
        index_C[outside] = _feistel(index_C[outside], key_C[outside], half)
    return index_C.astype(np.int64)


def _feistel(value_C: np.ndarray, key_C: np.ndarray, half: int) -> np.ndarray:
    """A bijection of [0, 4^half): each round swaps the halves and adds a keyed hash of one to the other."""
    bits, mask = np.uint64(half), np.uint64(2**half - 1)
    left_C, right_C = value_C >> bits, value_C & mask
    for number in range(_ROUNDS):
        hash_C = _mix(key_C + _mix(right_C + np.uint64(number << 48)))
        left_C, right_C = right_C, left_C ^ (hash_C & mask)
    return (left_C << bits) | right_C


def _mix(value_C: np.ndarray) -> np.ndarray:
    """The splitmix64 finaliser (Steele, Lea and Flood 2014) on uint64 arrays, which wrap silently."""
    value_C = value_C + np.uint64(0x9E3779B97F4A7C15)
    value_C = (value_C ^ (value_C >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value_C = (value_C ^ (value_C >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value_C ^ (value_C >> np.uint64(31))


def evaluation_windows(tokens: TokenFile, *, count: int, context: int) -> tuple[np.ndarray, np.ndarray]:
    """(x_MT, y_MT), int64: M = min(count, all) windows evenly spread over the file, the same every time.

    Raises InputError if the text is shorter than one context, or ``count`` is below 1.
    """
    if count < 1:
        raise InputError(f"{count} evaluation windows measure nothing", mend="use at least 1")
    return windows(tokens, _spread(_windows_of(tokens, context), count), context)


def windows_before(tokens: TokenFile, *, count: int, context: int) -> np.ndarray:
    """x_MT, int64: the text before each of the ``evaluation_windows``; before the first, the file's end."""
    n = _windows_of(tokens, context)
    return windows(tokens, (_spread(n, count) - 1) % n, context)[0]


def _spread(n: int, count: int) -> np.ndarray:
    m = min(count, n)
    return np.arange(m, dtype=np.int64) * n // m


def windows(tokens: TokenFile, index_B: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    """(x_BT, y_BT), int64: the windows with these indices."""
    ids = tokens.ids[index_B[:, None] * context + np.arange(context + 1)].astype(np.int64)
    return np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])


def epochs(n_tokens: int, tokens_trained: int, context: int) -> float:
    """How often each window was seen on average: tokens_trained / (n_windows * context)."""
    return tokens_trained / (n_windows(n_tokens, context) * context)


def _windows_of(tokens: TokenFile, context: int) -> int:
    try:
        return n_windows(tokens.tokens, context)
    except InputError as error:
        raise InputError(error.what, where=f"{tokens.path} ({tokens.split})", mend=error.mend) from None
