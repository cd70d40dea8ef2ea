"""What the package is set beside: a plain GPT, torch's own LSTM, and a large matmul, each written plainly."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from isoloss.training.device import Device


class Block(nn.Module):
    """Pre-norm, fused attention, exact GELU, no biases, as small GPT trainers write it."""

    def __init__(self, d: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.norms = nn.ModuleList([nn.LayerNorm(d, bias=False), nn.LayerNorm(d, bias=False)])
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        B, T, D = x_BTD.shape
        q, k, v = (
            part.view(B, T, self.n_head, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](x_BTD)).split(D, dim=2)
        )
        y_BHTC = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x_BTD = x_BTD + self.out(y_BHTC.transpose(1, 2).reshape(B, T, D))
        return x_BTD + self.down(F.gelu(self.up(self.norms[1](x_BTD))))


class PlainGPT(nn.Module):
    """Learned positions, a tied head, one mean cross-entropy."""

    def __init__(self, n_layer: int, d: int, n_head: int, vocab: int, context: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, n_head) for _ in range(n_layer))
        self.norm, self.head = nn.LayerNorm(d, bias=False), nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tokens.weight
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, x_BT: Tensor, y_BT: Tensor) -> Tensor:
        h_BTD = self.tokens(x_BT) + self.positions(torch.arange(x_BT.shape[1], device=x_BT.device))
        for block in self.blocks:
            h_BTD = block(h_BTD)
        return F.cross_entropy(self.head(self.norm(h_BTD)).flatten(0, 1), y_BT.flatten())


def plain_gpt(
    shape: tuple[int, int, int],
    vocab: int,
    size: tuple[int, int],
    where: Device,
    *,
    compiled: bool,
    reads_every: int = 1,
) -> Callable[[], float]:
    """Training steps up to the next that reads its loss; gives their tokens.

    ``shape``: n_layer, d_model, n_head. ``size``: B, T.
    """
    model = PlainGPT(*shape, vocab, size[1]).to(where.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)
    x_BT, y_BT = torch.randint(vocab, (2, *size), device=where.device)
    run = torch.compile(model, dynamic=False) if compiled else model

    def step() -> Tensor:
        with where.precision():
            loss = run(x_BT, y_BT)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    def steps() -> float:
        for _ in range(reads_every - 1):
            step()
        step().item()
        return float(reads_every * x_BT.numel())

    return steps


def lstm_alone(n_layer: int, d: int, size: tuple[int, int], device: torch.device) -> Callable[[], float]:
    """Forward and backward of torch's fused layers, which cannot be left out; gives its tokens."""
    layers = nn.LSTM(d, d, n_layer, device=device)
    x_TBD = torch.randn(size[1], size[0], d, device=device, requires_grad=True)

    def step() -> float:
        layers.zero_grad()
        layers(x_TBD)[0].sum().backward()
        wait(device)
        return float(size[0] * size[1])

    return step


def matmul(n: int, dtype: torch.dtype, device: torch.device, times: int = 1) -> Callable[[], float]:
    """n x n times n x n, ``times`` in a row; gives its FLOPs."""
    a = torch.ones(n, n, dtype=dtype, device=device)

    def step() -> float:
        for _ in range(times):
            a @ a
        wait(device)
        return 2.0 * n**3 * times

    return step


def wait(device: torch.device) -> None:
    """Until the device has done what it was sent."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
