"""The package's training loop beside a plain GPT, written as one would for a single model.

    python benchmarks/plain_gpt.py [--compiled]

The peer has what small GPT trainers have: ``nn.Linear`` without biases, learned positions, layer norms with a
gain, exact GELU, fused attention, one mean cross-entropy, gradients clipped at 1, fused AdamW. Both train in
this process, in turn, one thread, on batches of the starter's text; CPU seconds, and the ratio is the median
over pairs, so that a drifting machine favours neither. ``--compiled`` adds the loop with its step compiled.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from training_step import VOCAB, loop_step, seconds

from isoloss.corpus import library
from isoloss.corpus.batches import train_batch
from isoloss.models import shape_of
from isoloss.training import compiling
from isoloss.training.device import device_name, prepare_cpu

SHAPES = [(2, 24, 1), (3, 64, 2), (4, 128, 4), (6, 256, 8)]
"""(n_layer, d_model, n_head)."""

BATCHES = [(4, 128), (16, 256)]
"""(sequences, context): 512 and 4,096 tokens a step."""

ROUNDS = 7


class Norm(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x_BTD: Tensor) -> Tensor:
        return F.layer_norm(x_BTD, self.weight.shape, self.weight, None)


class Block(nn.Module):
    def __init__(self, d: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.norms = nn.ModuleList([Norm(d), Norm(d)])
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
    def __init__(self, n_layer: int, d: int, n_head: int, context: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, n_head) for _ in range(n_layer))
        self.norm, self.head = Norm(d), nn.Linear(d, VOCAB, bias=False)
        self.head.weight = self.tokens.weight
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, x_BT: Tensor, y_BT: Tensor) -> Tensor:
        h_BTD = self.tokens(x_BT) + self.positions(torch.arange(x_BT.shape[1]))
        for block in self.blocks:
            h_BTD = block(h_BTD)
        return F.cross_entropy(self.head(self.norm(h_BTD)).flatten(0, 1), y_BT.flatten())


def plain_step(
    shape: tuple[int, int, int], batch: tuple[int, int], corpus: library.TokenizedCorpus
) -> Callable[[], None]:
    (sequences, context), number = batch, 0
    model = PlainGPT(*shape, context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)

    def step() -> None:
        nonlocal number
        x, y = train_batch(corpus.train, seed=0, step=number, batch_size=sequences, context=context)
        number += 1
        loss = model(torch.from_numpy(x), torch.from_numpy(y))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return step


def loop(
    shape: tuple[int, int, int], batch: tuple[int, int], corpus: library.TokenizedCorpus, *, compiled: bool
) -> Callable[[], None]:
    compiling.ENOUGH_FLOPS["cpu"] = 0.0 if compiled else float("inf")
    n_layer, d_model, n_head = shape
    values = shape_of("transformer", {"n_layer": n_layer, "d_model": d_model, "n_head": n_head})
    return loop_step("transformer", values.model_dump(mode="json"), Path(tempfile.mkdtemp()), corpus, *batch)


def main() -> None:
    torch.set_num_threads(1)
    prepare_cpu()
    corpus = library.tokenize("starter", VOCAB)
    compiled = "--compiled" in sys.argv
    print(f"{device_name(torch.device('cpu'))}, torch {torch.__version__}, one thread, float32\n")
    names = ["loop"] + ["compiled loop"] * compiled
    print(
        "| shape | tokens a step | plain GPT, tokens/s | " + " | ".join(f"{n} / plain" for n in names) + " |"
    )
    print("| --- " + "| --: " * (2 + len(names)) + "|")
    for batch in BATCHES:
        for shape in SHAPES:
            steps = [plain_step(shape, batch, corpus), loop(shape, batch, corpus, compiled=False)]
            if compiled:
                steps.append(loop(shape, batch, corpus, compiled=True))
            for step in steps:
                seconds(step)
            times = [[seconds(step) for step in steps] for _ in range(ROUNDS)]
            tokens = batch[0] * batch[1]
            speed = tokens / statistics.median(row[0] for row in times)
            ratios = [statistics.median(row[0] / row[n] for row in times) for n in range(1, len(steps))]
            cells = [f"{shape[0]}x{shape[1]}", f"{tokens:,}", f"{speed:,.0f}", *(f"{r:.2f}" for r in ratios)]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
