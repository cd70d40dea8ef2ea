"""Where the right slot of a binding string is, and how much attention falls on it.

A string is k1 v1 .. kD vD q1 .. qD (places from 0). Two steps answer a query:

    layer 1   the value at place 2i + 1 looks at its own key, at 2i
    layer 2   the query at 2D + j looks at the right value, at 2i + 1 where k_i = q_j
"""

import numpy as np
import torch
from torch import nn

from isoloss.teach.attention.mixing import Recording, mixed_by

LAYERS = (0, 1)


def slots(layer: int, x_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of layer 0 or 1: each place that looks, and the place it should look at, a row a string, (B, D)."""
    size, D = len(x_BT), x_BT.shape[1] // 3
    if layer == 0:
        key_BD = np.broadcast_to(2 * np.arange(D), (size, D))
        return key_BD + 1, key_BD
    keys_BD, queries_BD = x_BT[:, 0 : 2 * D : 2], x_BT[:, 2 * D :]
    pair_BD = (queries_BD[:, :, None] == keys_BD[:, None, :]).argmax(-1)
    return np.broadcast_to(2 * D + np.arange(D), (size, D)), 2 * pair_BD + 1


def attention_maps(model: nn.Module, x_BT: np.ndarray, members: int) -> list[np.ndarray]:
    """Weights of each layer's head, (K, B, T, S): the same strings for every member."""
    recordings = [Recording() for _ in LAYERS]
    x_KBT = torch.from_numpy(x_BT).expand(members, -1, -1)
    with torch.inference_mode(), mixed_by(model, dict(enumerate(recordings))):
        model(x_KBT)
    return [r.weights_NHTS[:, 0].unflatten(0, (members, len(x_BT))).numpy() for r in recordings]


def right_mass(weights_KBTS: np.ndarray, looks_BD: np.ndarray, right_BD: np.ndarray) -> np.ndarray:
    """Mean weight on the right slot over a string's D places that look, (K, B)."""
    rows = np.arange(weights_KBTS.shape[1])[:, None]
    return weights_KBTS[:, rows, looks_BD, right_BD].mean(-1)
