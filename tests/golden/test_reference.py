"""The first 20 training losses of each family against the same thing written plainly, in one run.

The reference shares nothing with the package but the initial weights and the token windows: its own
forward pass without fused kernels, its own loss, torch's AdamW, its own schedule. If this fails after a
change, either the change altered the computation (then say so in the change log) or it broke it.
"""

import math

import numpy as np
import polars as pl
import pytest
import torch

from isoloss.corpus import library
from isoloss.corpus.batches import train_batch
from isoloss.models import build_cohort, family, shape_of
from isoloss.training.loop import train
from isoloss.training.settings import Evaluating, Execution, RunSettings
from isoloss.training.task import Member, Task

VOCAB, CONTEXT, BATCH, RATE, STEPS = 280, 16, 4, 0.02, 20

MODELS = {
    "transformer": {"n_layer": 2, "d_model": 16, "n_head": 2},
    "lstm": {"n_layer": 2, "d_model": 12},
    "looped": {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 3, "entropy_weight": 0.1},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    words = "the model reads a word and then it guesses what the next one may be".split()  # noqa: SIM905
    draw = np.random.default_rng(0)
    for number in range(8):
        (folder / f"{number}.txt").write_text(" ".join(draw.choice(words, size=900)))
    library.add("golden", [folder])
    return library.tokenize("golden", VOCAB)


# --- the reference ---------------------------------------------------------------------------------------


def norm(x):
    return x / (x.pow(2).mean(-1, keepdim=True) + torch.finfo(torch.float32).eps).sqrt()


def turned(x, rotate=True):
    """Rotary positions: pair (2i, 2i + 1) of row t turned by t 10000^(-2i/C), with sines and cosines."""
    T, C = x.shape
    angle = torch.arange(T)[:, None] * 10_000.0 ** (-torch.arange(0, C, 2) / C) * rotate
    a, b, cos, sin = x[:, 0::2], x[:, 1::2], angle.cos(), angle.sin()
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).reshape(T, C)


def attention(x, qkv, out, n_head):
    """Causal attention of one sequence (T, D), head by head."""
    T = len(x)
    q, k, v = (x @ qkv).chunk(3, dim=-1)
    d = q.shape[1] // n_head
    heads = []
    for h in range(n_head):
        part = slice(h * d, (h + 1) * d)
        scores = turned(q[:, part]) @ turned(k[:, part]).T / math.sqrt(d)
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
        heads.append(scores.softmax(-1) @ v[:, part])
    return torch.cat(heads, dim=-1) @ out


def gelu(x):
    """x Phi(x)."""
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def block(x, w, prefix, n_head):
    x = x + attention(
        norm(x), w[f"{prefix}.attention.qkv.weight"][0], w[f"{prefix}.attention.out.weight"][0], n_head
    )
    hidden = gelu(norm(x) @ w[f"{prefix}.feed_forward.up.weight"][0])
    return x + hidden @ w[f"{prefix}.feed_forward.down.weight"][0]


def transformer_nll(w, x_T, y_T, shape):
    table = w["vocabulary.tokens.weight"][0]
    h = norm(table[x_T])
    for number in range(shape["n_layer"]):
        h = block(h, w, f"blocks.{number}", shape["n_head"])
    return cross_entropy(norm(h) @ table.T, y_T)


def looped_nll(w, x_T, y_T, shape):
    table = w["vocabulary.tokens.weight"][0]
    h, survive, total = norm(table[x_T]), torch.ones(len(x_T)), torch.zeros(len(x_T))
    for loop in range(1, shape["recurrence"] + 1):
        for number in range(shape["n_layer"]):
            h = block(h, w, f"stack.{number}", shape["n_head"])
        leave = torch.ones(len(x_T))
        if loop < shape["recurrence"]:
            leave = torch.sigmoid((norm(h) @ w["gate.weight"][0])[:, 0] + w["gate.bias"].squeeze())
        p = survive * leave
        survive = survive * (1 - leave)
        total = total + p * cross_entropy(norm(h) @ table.T, y_T) + shape["entropy_weight"] * p * p.log()
    return total


def lstm_nll(w, x_T, y_T, shape):
    table = w["members.0.embedding.weight"]
    h_TD, d = table[x_T], shape["d_model"]
    for number in range(shape["n_layer"]):
        name, x_TD = f"members.0.layers.{number}", norm(h_TD)
        h, c, outputs = torch.zeros(d), torch.zeros(d), []
        for t in range(len(x_T)):
            gates = w[f"{name}.weight_ih_l0"] @ x_TD[t] + w[f"{name}.bias_ih_l0"]
            gates = gates + w[f"{name}.weight_hh_l0"] @ h + w[f"{name}.bias_hh_l0"]
            i, f, g, o = gates.split(d)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        h_TD = torch.stack(outputs) + (h_TD if number > 0 else 0)
    return cross_entropy(norm(h_TD) @ table.T, y_T)


def cross_entropy(logits_TV, y_T):
    return torch.stack([torch.logsumexp(row, 0) - row[y] for row, y in zip(logits_TV, y_T, strict=True)])


NLL = {"transformer": transformer_nll, "lstm": lstm_nll, "looped": looped_nll}


def reference_losses(name, shape, text, *, warmup_steps=2, clip=1.0):
    start = build_cohort(family(name), shape_of(name, shape), VOCAB, CONTEXT, [0])
    weights = {n: p.detach().clone().requires_grad_() for n, p in start.named_parameters()}
    member_axis = 0 if name == "lstm" else 1
    matrix = {
        n: p.dim() - member_axis == 2 and "tokens" not in n and "embedding" not in n
        for n, p in weights.items()
    }
    groups = [
        {"params": [p for n, p in weights.items() if matrix[n]], "weight_decay": 0.1},
        {"params": [p for n, p in weights.items() if not matrix[n]], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), eps=1e-8)
    losses = []
    for step in range(STEPS):
        x_BT, y_BT = train_batch(text.train, seed=0, step=step, batch_size=BATCH, context=CONTEXT)
        pairs = zip(torch.from_numpy(x_BT), torch.from_numpy(y_BT), strict=True)
        loss = torch.stack([NLL[name](weights, x_T, y_T, shape) for x_T, y_T in pairs]).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), clip)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / warmup_steps)
        optimizer.step()
        losses.append(loss.item())
    return losses


# --- the comparison --------------------------------------------------------------------------------------


def package_losses(name, shape, text, folder):
    settings = RunSettings(
        family=name,
        shape=shape_of(name, shape).model_dump(mode="json"),
        corpus_hash=text.corpus_hash,
        tokenizer=f"bpe-{VOCAB}",
        vocab=VOCAB,
        context=CONTEXT,
        batch_size=BATCH,
        tokens=(25 * BATCH * CONTEXT,),
        learning_rate=RATE,
        seed=0,
        evaluation=Evaluating(windows=2, final_windows=2, trace_windows=2),
    )
    place = folder / settings.run_id
    place.mkdir()
    assert train(
        Task("golden", (Member(settings, name, place),), "golden", text.tokenizer_path.parent, Execution())
    )
    curve = pl.read_parquet(place / "curve.parquet").filter(pl.col("branch") == 0)
    return curve["total"].to_list()[:STEPS]


@pytest.mark.parametrize("name", MODELS)
def test_first_losses_equal_the_reference(name, text, tmp_path):
    ours = package_losses(name, MODELS[name], text, tmp_path)
    assert len(ours) == STEPS
    assert ours == pytest.approx(reference_losses(name, MODELS[name], text), abs=2e-4)


def test_control_small_departures_are_noticed(text, tmp_path, monkeypatch):
    ours = package_losses("transformer", MODELS["transformer"], text, tmp_path)
    late = reference_losses("transformer", MODELS["transformer"], text, warmup_steps=4)
    assert ours != pytest.approx(late, abs=2e-4)
    genuine = turned
    monkeypatch.setitem(globals(), "turned", lambda x: genuine(x, rotate=False))
    unplaced = reference_losses("transformer", MODELS["transformer"], text)
    assert ours != pytest.approx(unplaced, abs=2e-4)
