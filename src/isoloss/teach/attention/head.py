"""One causal head of the package's Transformer with random weights, and what it makes of a sentence."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from isoloss.models import build_cohort, family, shape_of
from isoloss.models.layers import rms_norm
from isoloss.models.transformer import Attention, Transformer
from isoloss.teach.attention.mixing import Recording, attention_of, mixed_by
from isoloss.teach.attention.sentence import ids_of


@dataclass(frozen=True)
class Head:
    """The first layer's attention, and its input for the words of one sentence."""

    attention: Attention
    x_TD: Tensor
    output_TD: Tensor
    weights_TS: Tensor


def head_of(words: list[str], d_model: int, seed: int) -> Head:
    """Build the network from ``seed``, read the words, and keep what its head saw, weighed and answered.

    Positions are learned, so that queries and keys are plain products of the head's input.
    """
    model = network(len(set(words)), len(words), d_model, seed)
    x_KBT, recording = torch.tensor(ids_of(words))[None, None], Recording()
    with torch.inference_mode():
        x_KBTD = rms_norm(model.vocabulary.embed(x_KBT))
        attention = attention_of(model, 0)
        output_TD = attention(x_KBTD)[0, 0]
        with mixed_by(model, {0: recording}):
            attention(x_KBTD)
    return Head(attention, x_KBTD[0, 0], output_TD, recording.weights_NHTS[0, 0])


def network(vocab: int, context: int, d_model: int, seed: int) -> Transformer:
    shape = shape_of(
        "transformer", {"n_layer": 1, "n_head": 1, "d_model": d_model, "positions": "learned", "tied": False}
    )
    return cast(Transformer, build_cohort(family("transformer"), shape, vocab, context, [seed]))


def weights_of(attention: Attention) -> list[np.ndarray]:
    """The head's W_q, W_k, W_v and W_o at double precision."""
    return [double(part) for part in (*attention.qkv.weight[0].chunk(3, dim=-1), attention.out.weight[0])]


def double(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float64)
