"""One more token: the block with a cache of keys and values, the LSTM layer with its state."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from isoloss.models.layers import rms_norm, rotate
from isoloss.models.transformer import Block


@dataclass(frozen=True)
class Cache:
    """Keys (already rotated) and values of the tokens read, with room for more."""

    k_BHTC: Tensor
    v_BHTC: Tensor


def read(block: Block, x_KBTD: Tensor, room: int) -> Cache:
    """The cache after the tokens of ``x``, with places for ``room`` tokens."""
    T = x_KBTD.shape[2]
    _, k, v = _qkv(block, x_KBTD, 0)
    k_BHTC, v_BHTC = (part.new_zeros(*part.shape[:2], room, part.shape[-1]) for part in (k, v))
    k_BHTC[:, :, :T], v_BHTC[:, :, :T] = k, v
    return Cache(k_BHTC, v_BHTC)


def attention_step(block: Block, x_KB1D: Tensor, cache: Cache, n: int) -> Tensor:
    """The block's output for the token after ``n``, which it writes into the cache: 1 query, n + 1 keys."""
    q, k, v = _qkv(block, x_KB1D, n)
    cache.k_BHTC[:, :, n], cache.v_BHTC[:, :, n] = k[:, :, 0], v[:, :, 0]
    y_BH1C = F.scaled_dot_product_attention(q, cache.k_BHTC[:, :, : n + 1], cache.v_BHTC[:, :, : n + 1])
    x_KB1D = x_KB1D + block.attention.out(y_BH1C.transpose(1, 2).reshape(x_KB1D.shape))
    return x_KB1D + block.feed_forward(rms_norm(x_KB1D))


def lstm_step(layer: nn.LSTM, x_1BD: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The state after one more token; its h is the layer's output."""
    return layer(x_1BD, state)[1]


def _qkv(block: Block, x_KBTD: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys, values (B, H, T, C) of tokens from place ``first`` on, as ``Attention`` makes them."""
    attention = block.attention
    _, B, T, _ = x_KBTD.shape
    qkv = attention.qkv(rms_norm(x_KBTD)).view(B, T, 3, attention.n_head, -1)
    q, k = rotate(qkv[:, :, :2], attention.turns_TC[first : first + T]).transpose(1, 3).unbind(2)
    return q, k, qkv[:, :, 2].transpose(1, 2)


def lstm_state(layer: nn.LSTM, x_TBD: Tensor) -> tuple[Tensor, Tensor]:
    """The LSTM's state after the tokens of ``x``."""
    with torch.no_grad():
        return layer(x_TBD)[1]
