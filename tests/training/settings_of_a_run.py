"""The settings of a run too small to train, for what follows from settings alone."""

from isoloss.training.settings import RunSettings

DEFAULTS = {
    "family": "transformer",
    "shape": {"n_layer": 1, "d_model": 4, "n_head": 1},
    "corpus_hash": "0",
    "tokenizer": "bpe-300",
    "vocab": 300,
    "context": 2,
    "batch_size": 1,
    "tokens": (20, 40),
    "learning_rate": 0.01,
    "seed": 0,
}


def run_settings(**changes):
    return RunSettings(**DEFAULTS | changes)
