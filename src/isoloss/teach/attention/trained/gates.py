"""What an LSTM layer's gates did to a text, and how much of each token's ink was left at each later one.

    i, f, o = sigmoid(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)    g = tanh(...)
    c_t = f_t c_(t-1) + i_t g_t                                  h_t = o_t tanh(c_t)

Token s writes i_s g_s into the cell; of it f_(s+1) ... f_t (i_s g_s) is there at t. That is the direct way
along c alone: what went through h and came back in by the gates is not counted.

Suffixes: T time, S time of writing, D width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Trace:
    """``gates_TD``: the input, forget and output gate by name; ``left_ST``: share of s's ink left at t."""

    gates_TD: dict[str, Tensor]
    left_ST: Tensor
    h_TD: Tensor


@torch.no_grad()
def trace(layer: nn.LSTM, x_TD: Tensor) -> Trace:
    """Every gate at every token, the layer's state starting at zero."""
    W_ih, W_hh, b_ih, b_hh = layer.all_weights[0]
    d = layer.hidden_size
    h_D, c_D = x_TD.new_zeros(d), x_TD.new_zeros(d)
    steps: list[tuple[Tensor, ...]] = []
    for x_D in x_TD:
        i_D, f_D, g_D, o_D = (W_ih @ x_D + b_ih + W_hh @ h_D + b_hh).chunk(4)
        i_D, f_D, g_D, o_D = i_D.sigmoid(), f_D.sigmoid(), g_D.tanh(), o_D.sigmoid()
        c_D = f_D * c_D + i_D * g_D
        h_D = o_D * c_D.tanh()
        steps.append((i_D, f_D, o_D, i_D * g_D, h_D))
    i_TD, f_TD, o_TD, written_TD, h_TD = (torch.stack(part) for part in zip(*steps, strict=True))
    gates_TD = {"input": i_TD, "forget": f_TD, "output": o_TD}
    return Trace(gates_TD, left_of(written_TD, f_TD), h_TD)


def left_of(written_TD: Tensor, f_TD: Tensor) -> Tensor:
    """left_ST = |f_(s+1) ... f_t i_s g_s| / |i_s g_s|, sums of absolute values over units; 0 for t < s."""
    T = len(written_TD)
    left_ST = written_TD.new_zeros(T, T)
    for s in range(T):
        ink_D = written_TD[s].abs()
        for t in range(s, T):
            ink_D = ink_D * f_TD[t] if t > s else ink_D
            left_ST[s, t] = ink_D.sum() / written_TD[s].abs().sum()
    return left_ST
