"""Five ways from T vectors to T vectors, each in the layout that it likes best.

The two loops are the naive ones that the slide is about: what one writes who does not know that the library
has a layer. They compute the layer's function from the layer's own weights. Attention alone is what is often
raced in a block's place. The LSTM layer and the block are the ones that the package trains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from isoloss.models.layers import Linear
from isoloss.models.lstm import LSTM as LSTMModel
from isoloss.models.lstm import LSTMShape
from isoloss.models.transformer import Block, BlockShape
from isoloss.teach.race import counts

D_HEAD = 32


@dataclass(frozen=True)
class Entry:
    """``forward`` maps an input of ``shape`` to an output of the same shape."""

    forward: Callable[[Tensor], Tensor]
    shape: tuple[int, ...]
    weights: Sequence[Tensor]


def entries(length: int, d_model: int, batch: int, device: str) -> dict[str, Entry]:
    """Every runner by name, ready to read ``batch`` sequences."""
    torch.manual_seed(0)
    layer = lstm_layer(d_model).to(device)
    block = causal_block(d_model, length).to(device)
    qkv = nn.ModuleList(Linear(d_model, d_model) for _ in range(3)).to(device)
    time_first, K1 = (length, batch, d_model), (1, batch, length, d_model)
    lstm = list(layer.parameters())
    return {
        counts.NAIVE.name: Entry(lambda x: naive_loop(layer, x), time_first, lstm),
        counts.FUSED.name: Entry(lambda x: fused_loop(layer, x), time_first, lstm),
        counts.LSTM.name: Entry(lambda x: layer(x)[0], time_first, lstm),
        counts.ALONE.name: Entry(lambda x: attention_alone(qkv, x), K1, list(qkv.parameters())),
        counts.BLOCK.name: Entry(block, K1, list(block.parameters())),
    }


def lstm_layer(d_model: int) -> nn.LSTM:
    """The one layer of the package's LSTM."""
    return cast(nn.LSTM, LSTMModel(LSTMShape(n_layer=1, d_model=d_model), vocab=1, context=1).layers[0])


def causal_block(d_model: int, context: int) -> Block:
    """The block of the package's Transformer: GELU FFN of 4 d_model, rotary positions, heads of 32."""
    return Block(block_shape(d_model), context, depth=1)


def block_shape(d_model: int) -> BlockShape:
    return BlockShape(d_model=d_model, n_head=d_model // D_HEAD, d_head=D_HEAD, d_ff=4 * d_model)


def naive_loop(layer: nn.LSTM, x_TBD: Tensor) -> Tensor:
    """Eight matmuls a token: each of four gates multiplies the input and the state by matrices of its own."""
    W, U, b, v = (weight.chunk(4) for weight in layer.all_weights[0])
    h_BD = c_BD = x_TBD.new_zeros(x_TBD.shape[1:])
    y = []
    for x_BD in x_TBD.unbind(0):
        i, f, g, o = (F.linear(x_BD, W[k], b[k]) + F.linear(h_BD, U[k], v[k]) for k in range(4))
        c_BD = f.sigmoid() * c_BD + i.sigmoid() * g.tanh()
        h_BD = o.sigmoid() * c_BD.tanh()
        y.append(h_BD)
    return torch.stack(y)


def fused_loop(layer: nn.LSTM, x_TBD: Tensor) -> Tensor:
    """One matmul for all inputs beforehand, one a token for all four gates.

    ``unbind`` takes the tokens apart in one go. Slicing z[t] in the loop would make the backward pass fill a
    tensor of z's full size for each token: T^2 work that no LSTM needs.
    """
    W_GD, U_GD, b_G, v_G = layer.all_weights[0]
    z_TBG, U_DG = F.linear(x_TBD, W_GD, b_G + v_G), U_GD.T
    h_BD = c_BD = x_TBD.new_zeros(x_TBD.shape[1:])
    y = []
    for z_BG in z_TBG.unbind(0):
        i, f, g, o = torch.addmm(z_BG, h_BD, U_DG).chunk(4, dim=-1)
        c_BD = f.sigmoid() * c_BD + i.sigmoid() * g.tanh()
        h_BD = o.sigmoid() * c_BD.tanh()
        y.append(h_BD)
    return torch.stack(y)


def attention_alone(qkv: nn.ModuleList, x_KBTD: Tensor) -> Tensor:
    """softmax(Q K' / sqrt(d)) V of one head: no mask, no output matrix, no FFN, no norm, no residual."""
    q, k, v = (linear(x_KBTD) for linear in qkv)
    return torch.softmax(q @ k.mT / x_KBTD.shape[-1] ** 0.5, dim=-1) @ v
