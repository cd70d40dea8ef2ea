"""The LSTM (Hochreiter and Schmidhuber 1997; forget gate: Gers et al. 2000), on the fused kernels.

    i, f, o = sigmoid(...)    g = tanh(...)      each of  W_ih x_t + b_ih + W_hh h_{t-1} + b_hh
    c_t = f * c_{t-1} + i * g                    h_t = o * tanh(c_t)

Layers are separate one-layer modules so that a parameter-free norm before each and a residual around each
but the first stay outside the kernel (around the first, the tied head would predict the token just read).
The state starts at zero in every window; with ``carry`` it goes on from the window before, which needs
batches of contiguous lanes.

Recipe: W_ih normal with 1/sqrt(d), W_hh orthogonal per gate, biases 0 except the forget gate's, which is 1
in b_ih alone (the two biases add up: 1 in both would mean 2). The output head is the embedding, tied.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from isoloss import units
from isoloss.models.layers import Dropout, rms_norm
from isoloss.models.shape import MOST, Shape


class LSTMShape(Shape):
    n_layer: int = Field(gt=0, le=MOST)
    d_model: int = Field(gt=0, le=MOST)
    norm: bool = True
    residual: bool = True
    carry: bool = False
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)


def count(shape: LSTMShape, vocab: int, context: int) -> units.Count:
    d = shape.d_model
    params = shape.n_layer * units.lstm_layer_params(d, d)
    return units.Count(
        params=params,
        params_executed=params,
        embedding=vocab * d,
        matmul_flops=shape.n_layer * units.lstm_layer_flops(d, d),
        attention_flops=0.0,
        head_flops=units.head_flops(d, vocab),
    )


@torch.no_grad()
def initialise(layer: nn.LSTM, forget_bias: float = 1.0) -> None:
    d = layer.hidden_size
    W_ih, W_hh, b_ih, b_hh = layer.all_weights[0]
    nn.init.normal_(W_ih, std=d**-0.5)
    for gate in range(4):
        nn.init.orthogonal_(W_hh[gate * d : (gate + 1) * d])
    nn.init.zeros_(b_ih)
    nn.init.zeros_(b_hh)
    nn.init.constant_(b_ih[d : 2 * d], forget_bias)  # gate order in torch: i, f, g, o


@torch.no_grad()
def initialise_chrono(layer: nn.LSTM, longest: int) -> None:
    """As ``initialise``, with gates that start at time scales from 1 to ``longest`` steps.

    b_f = log U(1, longest - 1), b_i = -b_f (Tallec and Ollivier 2018, arXiv 1804.11188).
    """
    d = layer.hidden_size
    initialise(layer)
    b_f = torch.empty(d).uniform_(1.0, max(2.0, longest - 1.0)).log()
    b_ih = layer.all_weights[0][2]
    b_ih[d : 2 * d] = b_f
    b_ih[:d] = -b_f


class LSTM(nn.Module):
    """One member: tokens (B, T) to logits (B, T, V)."""

    def __init__(self, shape: LSTMShape, vocab: int, context: int):
        super().__init__()
        self.norm, self.residual, self.carry = shape.norm, shape.residual, shape.carry
        self.embedding = nn.Embedding(vocab, shape.d_model)
        layers = [nn.LSTM(shape.d_model, shape.d_model) for _ in range(shape.n_layer)]
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(shape.dropout)
        with torch.no_grad():
            nn.init.normal_(self.embedding.weight, std=0.02)
            for layer in layers:
                initialise(layer)
        self.state: list[tuple[Tensor, Tensor]] | None = None

    def forward(self, x_BT: Tensor) -> Tensor:
        # Time first is the kernels' own layout: batch_first would copy.
        h_TBD = self.dropout(self.embedding(x_BT.T))
        before = self.state if self.carry else None
        after = []
        for number, layer in enumerate(self.layers):
            x_TBD = rms_norm(h_TBD) if self.norm else h_TBD
            y_TBD, last = layer(x_TBD, before[number] if before else None)
            h_TBD = self.dropout(y_TBD) + (h_TBD if self.residual and number > 0 else 0)
            after.append((last[0].detach(), last[1].detach()))
        if self.carry:
            self.state = after
        return (rms_norm(h_TBD) @ self.embedding.weight.T).transpose(0, 1)
