"""Replacements for what an attention layer mixes by: one that remembers its weights, one that ignores them.

    recording   A = softmax(Q K^T / sqrt(C) + mask), kept; returns A V
    uniform     every past slot counts the same: A_ts = 1 / t for the t slots up to and with place t

Suffixes: N member x string, H head, T place that looks, S place looked at, C head dimension.
"""

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from isoloss.models.transformer import Attention


class Mix(Protocol):
    def __call__(self, q_NHTC: Tensor, k_NHTC: Tensor, v_NHTC: Tensor) -> Tensor: ...


def causal_weights(q_NHTC: Tensor, k_NHTC: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(C)) over the places up to one's own, (N, H, T, S)."""
    T, C = q_NHTC.shape[-2:]
    score_NHTS = q_NHTC @ k_NHTC.mT / math.sqrt(C)
    later_TS = torch.ones(T, T, dtype=torch.bool, device=score_NHTS.device).triu(1)
    return score_NHTS.masked_fill(later_TS, -math.inf).softmax(-1)


class Recording:
    """Mixes as the model does and keeps the weights of its last call in ``weights_NHTS``."""

    weights_NHTS: Tensor

    def __call__(self, q_NHTC: Tensor, k_NHTC: Tensor, v_NHTC: Tensor) -> Tensor:
        self.weights_NHTS = causal_weights(q_NHTC, k_NHTC)
        return self.weights_NHTS @ v_NHTC


def uniform(q_NHTC: Tensor, k_NHTC: Tensor, v_NHTC: Tensor) -> Tensor:
    """The mean of the values so far, whatever queries and keys say."""
    T = v_NHTC.shape[-2]
    seen_T1 = torch.arange(1, T + 1, device=v_NHTC.device, dtype=v_NHTC.dtype)[:, None]
    return v_NHTC.cumsum(-2) / seen_T1


def attention_of(model: nn.Module, layer: int) -> Attention:
    """Of a Transformer's layer, from 0."""
    return cast(Attention, model.get_submodule(f"blocks.{layer}.attention"))


@contextmanager
def mixed_by(model: nn.Module, mixes: Mapping[int, Mix]) -> Generator[None, None, None]:
    """Within the block, layer i (from 0) of a Transformer mixes by ``mixes[i]``; the others as before."""
    layers = {i: attention_of(model, i) for i in mixes}
    before = {i: layer.mix for i, layer in layers.items()}
    for i, layer in layers.items():
        layer.mix = mixes[i]
    try:
        yield
    finally:
        for i, layer in layers.items():
            layer.mix = before[i]
