"""Every counting rule by name: parameters, FLOPs, nats and bits.

Two numbers that differ only in what they count are the classic way to get a wrong scaling exponent
(arXiv 2406.19146 traces a change from 0.84 to 0.71 to the output head alone), so each rule has a name here
and every record stores all of them:

=================== ==============================================================================
``params``          non-embedding, unique: everything except the token embedding, position table and
                    output head; a looped stack counts once
``params_total``    all trainable parameters
``params_executed`` non-embedding, counting a block once per pass through it
``flops_6nd``       6 * ``params_executed`` * tokens: the textbook rule, blind to attention and head
``flops_exact``     training matmuls: body, causal attention (mean over positions) and output head;
                    3 x forward. Norms, gates, softmax and the embedding look-up are left out
=================== ==============================================================================

Formulas: Kaplan et al. 2020 (arXiv 2001.08361) eq. 2.1, 2.2 for Transformers; for the LSTM the textbook
4 h (d_in + h) per layer plus its two bias vectors (no paper on scaling gives a count for it).
"""

import math
from dataclasses import dataclass

BACKWARD_OVER_FORWARD = 2
"""A matmul's backward pass costs two matmuls: one for its input, one for its weight."""


@dataclass(frozen=True)
class Count:
    """Parameters by group and forward FLOPs per token by origin, of one model.

    ``params`` and ``params_executed`` by the rules above; ``embedding``: token embedding, position table and
    untied output head.
    ``matmul_flops``, ``attention_flops``, ``head_flops``: forward, per token, causal attention averaged over
    the positions of a full context.
    """

    params: int
    params_executed: int
    embedding: int
    matmul_flops: float
    attention_flops: float
    head_flops: float

    @property
    def params_total(self) -> int:
        return self.params + self.embedding

    def params_by_rule(self) -> dict[str, int]:
        return {rule: getattr(self, rule) for rule in ("params", "params_total", "params_executed")}

    def flops_6nd(self, tokens: float) -> float:
        return 6.0 * self.params_executed * tokens

    def flops_exact(self, tokens: float) -> float:
        forward = self.matmul_flops + self.attention_flops + self.head_flops
        return (1 + BACKWARD_OVER_FORWARD) * forward * tokens


def block_params(d_model: int, d_ff: int, d_attn: int, gated: bool = False) -> int:
    """One Transformer block without biases and norm gains: 4 d_model d_attn + (2 or 3) d_model d_ff."""
    return 4 * d_model * d_attn + (3 if gated else 2) * d_model * d_ff


def attention_flops(context: int, d_attn: int) -> float:
    """Forward FLOPs per token of causal scores and weighted values, mean over positions: 2 (s + 1) d_attn.

    Position t attends to t keys; the mean of t over 1..s is (s + 1) / 2, and each key costs 4 d_attn.
    Kaplan rounds this to 2 s d_attn. The full square, which kernels without causal skipping execute, is
    4 s d_attn.
    """
    return 2.0 * (context + 1) * d_attn


def lstm_layer_params(d_in: int, d_hidden: int) -> int:
    """4 h (d_in + h) weights and two bias vectors of 4 h, both trained."""
    return 4 * d_hidden * (d_in + d_hidden) + 8 * d_hidden


def lstm_layer_flops(d_in: int, d_hidden: int) -> float:
    """Forward matmul FLOPs per token: 2 * 4 h (d_in + h)."""
    return 8.0 * d_hidden * (d_in + d_hidden)


def head_flops(d_model: int, vocab: int) -> float:
    """Forward FLOPs per token of one output head: 2 d_model V."""
    return 2.0 * d_model * vocab


def bits_per_byte(nats: float, text_bytes: float) -> float:
    """Total nats over total bytes, in bits. Sums, not means: a mean of means weighs tokens unequally."""
    return nats / math.log(2) / text_bytes
