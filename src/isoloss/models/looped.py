"""The looped Transformer: one stack of layers applied T_m times with shared weights (arXiv 2510.25741).

    h_0 = prelude(embed(x));   h_t = stack(h_{t-1}),  t = 1..T_m
    logits_t = head(coda(h_t))                        an exit after every loop, or only after the last
    lambda_t = sigmoid(w . norm(h_t) + b)             gate;  S_t = prod_{j<=t} (1 - lambda_j)
    p_t = lambda_t S_{t-1} for t < T_m,               p_{T_m} = S_{T_m - 1};  the p_t sum to 1

The objective, formed by the trainer, is  sum_t p_t CE_t - beta H(p)  with beta = ``entropy_weight``.

The iso-depth form (arXiv 2604.21106) has a prelude, a recurrent block, a coda and input injection
h <- [h; h_0] W before every pass, with a single exit. Its papers print no initial value for W; here it
starts as (I, I)/sqrt(2), which keeps the scale of h. One loop has neither gate nor injection: it is the plain
Transformer, exactly.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from isoloss import units
from isoloss.models.layers import Dropout, Linear, rms_norm
from isoloss.models.output import Output, Unformed
from isoloss.models.shape import MOST
from isoloss.models.transformer import Block, BlockShape, Vocabulary


class LoopedShape(BlockShape):
    n_layer: int = Field(gt=0, le=MOST)
    recurrence: int = Field(gt=0, le=MOST)
    n_prelude: int = Field(default=0, ge=0, le=MOST)
    n_coda: int = Field(default=0, ge=0, le=MOST)
    injection: bool = False
    exits: Literal["every", "last"] = "every"
    entropy_weight: float = Field(default=0.1, ge=0.0)

    @property
    def gated(self) -> bool:
        return self.exits == "every" and self.recurrence > 1

    @property
    def injected(self) -> bool:
        return self.injection and self.recurrence > 1

    @property
    def n_exit(self) -> int:
        return self.recurrence if self.exits == "every" else 1

    @property
    def executed_layers(self) -> int:
        return self.n_prelude + self.recurrence * self.n_layer + self.n_exit * self.n_coda


def count(shape: LoopedShape, vocab: int, context: int) -> units.Count:
    """The gate (d + 1) counts once as a parameter and once per evaluation as executed."""
    block, d = shape.block_params(), shape.d_model
    injection = 2 * d * d if shape.injected else 0
    gate = d + 1 if shape.gated else 0
    params = (shape.n_prelude + shape.n_layer + shape.n_coda) * block + injection + gate
    passes = shape.executed_layers * block + shape.recurrence * injection
    gates = (shape.recurrence - 1) * gate
    return units.Count(
        params=params,
        params_executed=passes + gates,
        embedding=shape.embedding_params(vocab, context),
        matmul_flops=2.0 * (passes + (shape.recurrence - 1) * (d if shape.gated else 0)),
        attention_flops=shape.executed_layers * units.attention_flops(context, shape.d_attn),
        head_flops=shape.n_exit * units.head_flops(d, vocab),
    )


class Gate(nn.Module):
    """Log odds of leaving now: w . norm(h) + b, started at zero so that every gate begins at one half."""

    def __init__(self, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, d_model, 1))
        self.bias = nn.Parameter(torch.zeros(1, 1, 1, 1))

    def forward(self, h_KBTD: Tensor) -> Tensor:
        K, B, T, D = h_KBTD.shape
        odds_KBT1 = torch.bmm(rms_norm(h_KBTD).view(K, B * T, D), self.weight).view(K, B, T, 1)
        return (odds_KBT1 + self.bias).squeeze(-1)


class Injection(nn.Module):
    def __init__(self, d_model: int):
        super().__init__()
        self.mix = Linear(2 * d_model, d_model)
        eye = torch.eye(d_model) / math.sqrt(2)
        self.mix.weight.data = torch.cat([eye, eye])[None]

    def forward(self, h_KBTD: Tensor, first_KBTD: Tensor) -> Tensor:
        return self.mix(torch.cat([h_KBTD, first_KBTD], dim=-1))


class Passes(nn.ModuleList):
    """Blocks that are applied one after the other, as often as it is called."""

    def forward(self, h_KBTD: Tensor) -> Tensor:
        for block in self:
            h_KBTD = block(h_KBTD)
        return h_KBTD


class Looped(nn.Module):
    def __init__(self, shape: LoopedShape, vocab: int, context: int):
        super().__init__()

        def blocks(n: int) -> Passes:
            return Passes(Block(shape, context, shape.executed_layers) for _ in range(n))

        self.shape = shape
        self.vocabulary = Vocabulary(shape, vocab, context)
        self.prelude, self.stack, self.coda = (
            blocks(shape.n_prelude),
            blocks(shape.n_layer),
            blocks(shape.n_coda),
        )
        self.injection = Injection(shape.d_model) if shape.injected else None
        self.gate = Gate(shape.d_model) if shape.gated else None
        self.dropout = Dropout(shape.dropout)

    def forward(self, x_KBT: Tensor) -> Output:
        h_KBTD = self.prelude(self.dropout(self.vocabulary.embed(x_KBT)))
        first_KBTD = h_KBTD
        logits: list[Tensor] = []
        unformed: list[Unformed] = []
        odds: list[Tensor] = []
        for loop in range(1, self.shape.recurrence + 1):
            if self.injection is not None:
                h_KBTD = self.injection(h_KBTD, first_KBTD)
            h_KBTD = self.stack(h_KBTD)
            last = loop == self.shape.recurrence
            if self.shape.exits == "every" or last:
                out_KBTD = self.coda(h_KBTD)
                if self.vocabulary.pieces > 1:
                    unformed.append(self.vocabulary.unformed(out_KBTD))
                else:
                    logits.append(self.vocabulary.logits(out_KBTD))
            if self.gate is not None and not last:
                odds.append(self.gate(h_KBTD))
        log_p = None if self.gate is None else exit_log_probabilities(odds)
        return Output(logits, log_p, self.shape.entropy_weight, unformed or None)


def exit_log_probabilities(odds: list[Tensor]) -> list[Tensor]:
    """log p_t from the gates' log odds; in logs, so that a closed gate does not become log 0."""
    log_survival = torch.zeros_like(odds[0])
    log_p: list[Tensor] = []
    for odd in odds:
        log_p.append(log_survival + F.logsigmoid(odd))
        log_survival = log_survival + F.logsigmoid(-odd)
    return [*log_p, log_survival]
