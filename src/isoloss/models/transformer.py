"""The Transformer: decoder-only, pre-norm (arXiv 1706.03762; 2001.08361 for its count).

    x_0 = norm(E[tokens] (+ P[position]))     norm: divide by the root mean square
    x  <- x + W_o attention(norm(x))          causal, n_head heads of d_head, d_attn = n_head d_head
    x  <- x + W_2 phi(norm(x) W_1)            or SwiGLU: W_2 (silu(norm(x) W_g) * norm(x) W_1)
    logits = norm(x_L) E^T                    or norm(x_L) U, untied

The first norm lets the embedding start small, so that the tied head's first loss is log V, without the blocks
drowning it (without it: half a nat worse after 250 steps). No biases and no norm gains, so that
N = 2 n_layer d_model (2 d_attn + d_ff) is the exact count. d_attn may differ from d_model and d_ff take any
value: studies of shape need both.
"""

import math
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from isoloss import units
from isoloss.models.layers import Dropout, Embedding, Linear, rms_norm, rotary_turns, rotate
from isoloss.models.output import Output, Unformed
from isoloss.models.shape import MOST, Shape


class BlockShape(Shape):
    """Width, heads and feed-forward of one block."""

    d_model: int = Field(gt=0, le=MOST)
    n_head: int = Field(gt=0, le=MOST)
    d_head: int = Field(gt=0, le=MOST)
    d_ff: int = Field(gt=0, le=MOST)
    activation: Literal["gelu", "swiglu"] = "gelu"
    positions: Literal["rotary", "learned"] = "rotary"
    tied: bool = True
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in d_head = d_model / n_head and d_ff = 4 d_model, so that the settings say what was built."""
        d_model, n_head = values.get("d_model"), values.get("n_head")
        if not isinstance(d_model, int) or not isinstance(n_head, int) or n_head < 1:
            return values
        if values.get("d_head") is None and d_model % n_head:
            raise ValueError(f"d_model {d_model} is not a multiple of n_head {n_head}; give d_head")
        usual = {"d_head": d_model // n_head, "d_ff": 4 * d_model}
        return values | {key: value for key, value in usual.items() if values.get(key) is None}

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.positions == "rotary" and self.d_head % 2:
            raise ValueError(f"rotary positions need an even head dimension, got {self.d_head}")
        return self

    @property
    def d_attn(self) -> int:
        return self.n_head * self.d_head

    def block_params(self) -> int:
        return units.block_params(self.d_model, self.d_ff, self.d_attn, gated=self.activation == "swiglu")

    def embedding_params(self, vocab: int, context: int) -> int:
        tables = vocab * (1 if self.tied else 2) + (context if self.positions == "learned" else 0)
        return tables * self.d_model


class TransformerShape(BlockShape):
    n_layer: int = Field(gt=0, le=MOST)


def count(shape: TransformerShape, vocab: int, context: int) -> units.Count:
    """Parameters and FLOPs of a Transformer by formula; a test holds it against the module itself."""
    params = shape.n_layer * shape.block_params()
    return units.Count(
        params=params,
        params_executed=params,
        embedding=shape.embedding_params(vocab, context),
        matmul_flops=2.0 * params,
        attention_flops=shape.n_layer * units.attention_flops(context, shape.d_attn),
        head_flops=units.head_flops(shape.d_model, vocab),
    )


def causal_attention(q_NHTC: Tensor, k_NHTC: Tensor, v_NHTC: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(C) + causal mask) v, fused."""
    return F.scaled_dot_product_attention(q_NHTC, k_NHTC, v_NHTC, is_causal=True)


class Attention(nn.Module):
    """``mix`` turns queries, keys and values into mixed values; replace it to record or to ablate a layer."""

    def __init__(self, shape: BlockShape, context: int, residual_gain: float):
        super().__init__()
        self.n_head, self.rotary = shape.n_head, shape.positions == "rotary"
        self.qkv = Linear(shape.d_model, 3 * shape.d_attn)
        self.out = Linear(shape.d_attn, shape.d_model, gain=residual_gain)
        self.mix = causal_attention
        self.register_buffer("turns_TC", rotary_turns(context, shape.d_head), persistent=False)

    def forward(self, x_KBTD: Tensor) -> Tensor:
        K, B, T, _ = x_KBTD.shape
        qk_NTXHC, v_NTXHC = self.qkv(x_KBTD).view(K * B, T, 3, self.n_head, -1).split([2, 1], dim=2)
        if self.rotary:
            qk_NTXHC = rotate(qk_NTXHC, self.turns_TC[:T])
        q_NHTC, k_NHTC = qk_NTXHC.transpose(1, 3).unbind(2)
        y_NHTC = self.mix(q_NHTC, k_NHTC, v_NTXHC[:, :, 0].transpose(1, 2))
        return self.out(y_NHTC.transpose(1, 2).reshape(K, B, T, -1))


class FeedForward(nn.Module):
    def __init__(self, shape: BlockShape, residual_gain: float):
        super().__init__()
        self.gate = Linear(shape.d_model, shape.d_ff) if shape.activation == "swiglu" else None
        self.up = Linear(shape.d_model, shape.d_ff)
        self.down = Linear(shape.d_ff, shape.d_model, gain=residual_gain)

    def forward(self, x_KBTD: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(F.gelu(self.up(x_KBTD)))
        return self.down(F.silu(self.gate(x_KBTD)) * self.up(x_KBTD))


class Block(nn.Module):
    """One pre-norm block. ``depth``: executed layers, whose residual branches start at 1/sqrt(2 depth)."""

    def __init__(self, shape: BlockShape, context: int, depth: int):
        super().__init__()
        residual_gain = 1.0 / math.sqrt(2 * depth)
        self.attention = Attention(shape, context, residual_gain)
        self.feed_forward = FeedForward(shape, residual_gain)
        self.dropout = Dropout(shape.dropout)

    def forward(self, x_KBTD: Tensor) -> Tensor:
        x_KBTD = x_KBTD + self.dropout(self.attention(rms_norm(x_KBTD)))
        return x_KBTD + self.dropout(self.feed_forward(rms_norm(x_KBTD)))


class Vocabulary(nn.Module):
    """Both ends of the model: tokens to vectors (with learned positions if any), vectors to logits.

    ``pieces``: more than 1 where logits would not fit into memory.
    """

    def __init__(self, shape: BlockShape, vocab: int, context: int):
        super().__init__()
        self.tokens = Embedding(vocab, shape.d_model)
        self.positions = Embedding(context, shape.d_model) if shape.positions == "learned" else None
        self.head = None if shape.tied else Linear(shape.d_model, vocab, gain=0.02 * math.sqrt(shape.d_model))
        self.pieces = 1

    def embed(self, x_KBT: Tensor) -> Tensor:
        h_KBTD = self.tokens(x_KBT)
        if self.positions is not None:
            places_KBT = torch.arange(x_KBT.shape[-1], device=x_KBT.device).expand(x_KBT.shape)
            h_KBTD = h_KBTD + self.positions(places_KBT)
        return rms_norm(h_KBTD)

    def logits(self, h_KBTD: Tensor) -> Tensor:
        h_KBTD = rms_norm(h_KBTD)
        return self.tokens.unembed(h_KBTD) if self.head is None else self.head(h_KBTD)

    def unformed(self, h_KBTD: Tensor) -> Unformed:
        return Unformed(h_KBTD, self.logits, self.pieces)


class Transformer(nn.Module):
    def __init__(self, shape: TransformerShape, vocab: int, context: int):
        super().__init__()
        self.vocabulary = Vocabulary(shape, vocab, context)
        self.blocks = nn.ModuleList(Block(shape, context, shape.n_layer) for _ in range(shape.n_layer))
        self.dropout = Dropout(shape.dropout)

    def forward(self, x_KBT: Tensor) -> Output:
        h_KBTD = self.dropout(self.vocabulary.embed(x_KBT))
        for block in self.blocks:
            h_KBTD = block(h_KBTD)
        if self.vocabulary.pieces > 1:
            return Output([], unformed=[self.vocabulary.unformed(h_KBTD)])
        return Output(logits=[self.vocabulary.logits(h_KBTD)])
