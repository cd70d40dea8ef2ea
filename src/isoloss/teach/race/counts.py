"""What is true of the runners on every machine: weights, work, sequential depth, path length, memory.

weights      trainable numbers of the layer
flops        forward matmul FLOPs of a batch by the rules of ``isoloss.units``: a causal mask halves the
             square of scores. Backward costs twice as much again, gradient of the input included
flops_square the same if the masked half is computed too, which is what PyTorch's counter sees
depth        longest chain of matmuls each of which waits for the one before
path         hops from the first token to the last output: h_{t-1} -> h_t, or one look back
"""

from dataclasses import dataclass

from isoloss import units
from isoloss.teach.result import Row

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Runner:
    """``python_loop``: a step of Python for every token, calling the same small kernels each time."""

    name: str
    family: str
    what: str
    python_loop: bool = False


NAIVE = Runner("naive loop", "lstm", "LSTM in Python, eight matmuls a token", python_loop=True)
FUSED = Runner("fused loop", "lstm", "LSTM in Python, gates fused: one matmul a token", python_loop=True)
LSTM = Runner("LSTM layer", "lstm", "the library's LSTM layer")
ALONE = Runner("attention alone", "transformer", "Q, K, V and softmax(QK')V: no mask, output, FFN or norm")
BLOCK = Runner("causal block", "transformer", "norm, causal attention, output, norm, FFN, residuals")
RUNNERS = (NAIVE, FUSED, LSTM, ALONE, BLOCK)


BY_NAME = {runner.name: runner for runner in RUNNERS}


def weights(runner: Runner, d_model: int) -> int:
    d = d_model
    if runner == BLOCK:
        return units.block_params(d, 4 * d, d)
    return 3 * d * d if runner == ALONE else units.lstm_layer_params(d, d)


def flops(runner: Runner, length: int, d_model: int, batch: int) -> float:
    if runner.family == "lstm":
        return batch * length * units.lstm_layer_flops(d_model, d_model)
    if runner == ALONE:
        return flops_square(runner, length, d_model, batch)
    scores = units.attention_flops(length, d_model)
    return batch * length * (2 * weights(runner, d_model) + scores)


def flops_square(runner: Runner, length: int, d_model: int, batch: int) -> float:
    if runner.family == "lstm":
        return flops(runner, length, d_model, batch)
    return batch * length * (2.0 * weights(runner, d_model) + 4 * length * d_model)


def depth(runner: Runner, length: int) -> int:
    """T recurrent matmuls; or QKV, scores, weighted sum; or these, output, and two of the FFN."""
    if runner.family == "lstm":
        return length
    return 3 if runner == ALONE else 6


def path(runner: Runner, length: int) -> int:
    return length - 1 if runner.family == "lstm" else 1


def exact_rows(lengths: tuple[int, ...], d_model: int, batch: int) -> list[Row]:
    return [
        {
            "length": length,
            "runner": runner.name,
            "what": runner.what,
            "weights": weights(runner, d_model),
            "flops": flops(runner, length, d_model, batch),
            "flops_square": flops_square(runner, length, d_model, batch),
            "depth": depth(runner, length),
            "path": path(runner, length),
        }
        for length in lengths
        for runner in RUNNERS
    ]


def state_floats(runner: Runner, length: int, d_model: int) -> int:
    """Floats that a layer keeps of ``length`` tokens to read one more: keys and values, or h and c."""
    return 2 * d_model * (1 if runner.family == "lstm" else length)
