"""Layers with a leading member axis: K models of one shape, trained as one module.

K models of like shape share every kernel launch: the member axis is the batch axis of ``bmm`` and joins the
batch in attention. K = 1 is the plain case. Nothing mixes members, so a member computes what it would alone.

Shape suffixes: K member, B sequence, T position, D d_model, H head, C head dimension, F d_ff, V vocabulary.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Module):
    """y = x W per member, no bias. Weights are drawn with standard deviation ``gain / sqrt(d_in)``."""

    def __init__(self, d_in: int, d_out: int, gain: float = 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, d_in, d_out) * (gain / math.sqrt(d_in)))

    def forward(self, x_KBTI: Tensor) -> Tensor:
        K, B, T, _ = x_KBTI.shape
        return torch.bmm(x_KBTI.reshape(K, B * T, -1), self.weight).view(K, B, T, -1)


class Embedding(nn.Module):
    """Rows of a table per member; ``unembed`` multiplies by the same table (tied output head)."""

    def __init__(self, size: int, d_model: int, std: float = 0.02):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, size, d_model) * std)

    def forward(self, x_KBT: Tensor) -> Tensor:
        K, V, D = self.weight.shape
        first_row_K11 = (torch.arange(K, device=x_KBT.device) * V)[:, None, None]
        return F.embedding(x_KBT + first_row_K11, self.weight.view(K * V, D))

    def unembed(self, h_KBTD: Tensor) -> Tensor:
        K, B, T, D = h_KBTD.shape
        return torch.bmm(h_KBTD.reshape(K, B * T, D), self.weight.mT).view(K, B, T, -1)


def rms_norm(x: Tensor) -> Tensor:
    """x / rms(x) over the last axis, without a learned gain: one kind of parameter less to count."""
    return F.rms_norm(x, (x.shape[-1],))


class Dropout(nn.Module):
    """Dropout whose masks come from one generator per member, set by the trainer.

    A member then sees the same masks in any cohort, and a checkpoint can hold the generators' states.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p
        self.generators: list[torch.Generator] = []

    def forward(self, x: Tensor) -> Tensor:
        if self.p == 0.0 or not self.training:
            return x
        if len(self.generators) == 1:
            keep = torch.rand(x.shape, device=x.device, generator=self.generators[0]) >= self.p
        else:
            draws = [torch.rand(x.shape[1:], device=x.device, generator=g) for g in self.generators]
            keep = torch.stack(draws) >= self.p
        return x * keep / (1.0 - self.p)


def rotary_turns(context: int, d_head: int) -> Tensor:
    """exp(i position 10000^(-2i/C)) as complex numbers, (T, C/2) (arXiv 2104.09864)."""
    frequency = 10_000.0 ** (-torch.arange(0, d_head, 2).float() / d_head)
    angle_TC = torch.arange(context).float()[:, None] * frequency
    return torch.polar(torch.ones_like(angle_TC), angle_TC)


def rotate(x_NTXHC: Tensor, turns_TC: Tensor) -> Tensor:
    """Turn each pair (x_2i, x_2i+1), as one complex number, by its position's angle; X: queries and keys.

    One product for both: written out, it is ten small operations on each. A compiler fuses those, and cannot
    read complex numbers.
    """
    pairs = x_NTXHC.float().unflatten(-1, (-1, 2))
    turns_T11C = turns_TC[:, None, None]
    if torch.compiler.is_compiling():
        (a, b), (cos, sin) = pairs.unbind(-1), torch.view_as_real(turns_T11C).unbind(-1)
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1)
    else:
        turned = torch.view_as_real(torch.view_as_complex(pairs) * turns_T11C)
    return turned.flatten(-2).type_as(x_NTXHC)
