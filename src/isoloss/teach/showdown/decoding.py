"""From logits to the next token: temperature, the k likeliest, and one throw of the dice."""

import numpy as np


def chances(logits_BV: np.ndarray, *, temperature: float, top_k: int) -> np.ndarray:
    """p_BV: softmax(logits / temperature) over the ``top_k`` largest logits of each row, 0 elsewhere."""
    V = logits_BV.shape[-1]
    ranked_BV = np.argsort(-logits_BV, axis=-1, kind="stable")
    weight_BV = np.exp((logits_BV - logits_BV.max(-1, keepdims=True)).astype(np.float64) / temperature)
    np.put_along_axis(weight_BV, ranked_BV[:, min(top_k, V) :], 0.0, axis=-1)
    return weight_BV / weight_BV.sum(-1, keepdims=True)


def chosen(chance_BV: np.ndarray, dice_B: np.ndarray) -> np.ndarray:
    """token_B: where the dice, uniform in [0, 1), fall among the chances laid out from largest to smallest.

    Two models that throw the same dice thus take tokens of like standing in their own rankings.
    """
    ranked_BV = np.argsort(-chance_BV, axis=-1, kind="stable")
    reached_BV = np.cumsum(np.take_along_axis(chance_BV, ranked_BV, axis=-1), axis=-1)
    place_B = (reached_BV <= dice_B[:, None] * reached_BV[:, -1:]).sum(-1)
    return np.take_along_axis(ranked_BV, place_B[:, None], axis=-1)[:, 0]


def dice(seed: int, members: int, samples: int, tokens: int) -> np.ndarray:
    """u_KBT, uniform in [0, 1): a stream a member and sample, whichever family throws it.

    A longer text or more samples change none of the throws that were there.
    """
    streams = [[np.random.default_rng([seed, k, b]) for b in range(samples)] for k in range(members)]
    return np.stack([np.stack([stream.random(tokens) for stream in row]) for row in streams])
