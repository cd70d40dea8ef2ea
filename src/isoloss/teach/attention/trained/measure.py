"""Read a sentence with the pair that writes: who looks at whom, what the gates keep, what comes next.

tokens   the pieces that the models read
map      weight of each token on each, by layer and head: trained weights, and random ones of the same shape
gates    mean over units of an LSTM layer's three gates at each token
ink      share of what a token wrote into an LSTM layer's cell that is left at each later token
next     the likeliest next tokens: of both models, and of the Transformer with one layer made to look evenly
"""

from typing import cast

import torch
from torch import Tensor, nn

from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import OneByOne
from isoloss.models.layers import rms_norm
from isoloss.models.lstm import LSTM
from isoloss.models.transformer import Transformer
from isoloss.teach.attention.mixing import Recording, mixed_by, uniform
from isoloss.teach.attention.settings import TrainedSettings
from isoloss.teach.attention.trained.gates import trace
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables
from isoloss.teach.showdown import checkpoints
from isoloss.teach.showdown.writing import prompt_ids

LIKELIEST = 5


def measure(settings: TrainedSettings, report: Report) -> Tables:
    pair = checkpoints.shown_folder()
    about, tokenizer = checkpoints.card(pair), checkpoints.tokenizer(pair)
    ids = prompt_ids(tokenizer, settings.sentence)
    x_KBT, T = torch.tensor(ids)[None, None], len(ids)
    transformer = cast(Transformer, checkpoints.cohort(about, "transformer", [0], pair))
    lstm = cast(LSTM, cast(OneByOne, checkpoints.cohort(about, "lstm", [0], pair)).members[0])
    shape = shape_of("transformer", about.run("transformer", 0).shape)
    random = build_cohort(family("transformer"), shape, about.vocab, about.context, [settings.seed])
    report(0.5, "the models have read the sentence")
    tables: Tables = {
        "tokens": [{"place": n, "token": tokenizer.decode([token])} for n, token in enumerate(ids, 1)],
        "map": map_rows("trained", transformer, x_KBT) + map_rows("random", random, x_KBT),
        "gates": [],
        "ink": [],
        "next": [],
    }
    x_TD = lstm.embedding.weight[x_KBT[0, 0]].detach()
    for number, layer in enumerate(cast(list[nn.LSTM], lstm.layers), 1):
        seen = trace(layer, rms_norm(x_TD))
        x_TD = seen.h_TD + (x_TD if number > 1 else 0)
        means = {name: gate_TD.mean(1).tolist() for name, gate_TD in seen.gates_TD.items()}
        tables["gates"] += [
            {"layer": number, "place": t + 1, **{name: values[t] for name, values in means.items()}}
            for t in range(T)
        ]
        tables["ink"] += [
            {"layer": number, "token": s + 1, "place": t + 1, "value": float(seen.left_ST[s, t])}
            for s in range(T)
            for t in range(s, T)
        ]
    with torch.inference_mode():
        said = {("lstm", 0): lstm(x_KBT[0])[0, -1], ("transformer", 0): last_logits(transformer, x_KBT)}
        for number in range(len(transformer.blocks)):
            with mixed_by(transformer, {number: uniform}):
                said["transformer", number + 1] = last_logits(transformer, x_KBT)
    for (model, flattened), logits_V in said.items():
        chances, tokens = logits_V.softmax(-1).topk(LIKELIEST)
        pairs = zip(chances.tolist(), tokens.tolist(), strict=True)
        tables["next"] += [
            {"model": model, "flattened": flattened, "rank": rank, "token": piece, "chance": chance}
            for rank, (chance, token) in enumerate(pairs, 1)
            for piece in [tokenizer.decode([token])]
        ]
    return tables


def last_logits(model: nn.Module, x_KBT: Tensor) -> Tensor:
    return cast(Tensor, model(x_KBT).logits[-1][0, 0, -1])


def map_rows(weights: str, model: nn.Module, x_KBT: Tensor) -> list[Row]:
    """Every weight of every head: of what is not ahead."""
    kept = {number: Recording() for number in range(len(cast(Transformer, model).blocks))}
    with torch.inference_mode(), mixed_by(model, kept):
        model(x_KBT)
    return [
        {"weights": weights, "layer": layer + 1, "head": head, "place": t, "looks_at": s, "value": value}
        for layer, recording in kept.items()
        for head, rows in enumerate(recording.weights_NHTS[0].tolist(), 1)
        for t, row in enumerate(rows, 1)
        for s, value in enumerate(row[:t], 1)
    ]
