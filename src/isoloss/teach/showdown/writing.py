"""A cohort that goes on from a prompt, a token at a time, and what it was about to say.

From logits to the next token: temperature, the k likeliest, and one throw of the dice.
"""

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from isoloss.corpus.tokenizer import end_of_text
from isoloss.teach.result import Row

SHOWN = 5


class Writer:
    """``members`` models of a family, each writing ``samples`` texts from one prompt.

    ``ids_KBT``: the prompt and what was written so far. Every token is read anew from the last ``context``
    tokens, by both families alike: what that costs is another slide's question.
    """

    def __init__(self, model: nn.Module, prompt: list[int], *, members: int, samples: int, context: int):
        self.model, self.context, self.begin = model, context, len(prompt)
        self.ids_KBT = np.tile(np.array(prompt, dtype=np.int64), (members, samples, 1))

    def write(self, dice_KB: np.ndarray, *, temperature: float, top_k: int) -> np.ndarray:
        """Append a token to every text; the chances it was drawn from, p_KBV."""
        K, B, _ = self.ids_KBT.shape
        with torch.inference_mode():
            output = self.model(torch.from_numpy(self.ids_KBT[..., -self.context :]))
        logits_NV = output.logits[-1][:, :, -1].reshape(K * B, -1).float().numpy()
        chance_NV = chances(logits_NV, temperature=temperature, top_k=top_k)
        next_KB1 = next_tokens(chance_NV, dice_KB.reshape(-1)).reshape(K, B, 1)
        self.ids_KBT = np.concatenate([self.ids_KBT, next_KB1], axis=-1)
        return chance_NV.reshape(K, B, -1)

    def ids_of(self, member: int, sample: int) -> list[int]:
        return self.ids_KBT[member, sample, self.begin :].tolist()


def chances(logits_BV: np.ndarray, *, temperature: float, top_k: int) -> np.ndarray:
    """p_BV: softmax(logits / temperature) over the ``top_k`` largest logits of each row, 0 elsewhere."""
    V = logits_BV.shape[-1]
    ranked_BV = np.argsort(-logits_BV, axis=-1, kind="stable")
    weight_BV = np.exp((logits_BV - logits_BV.max(-1, keepdims=True)).astype(np.float64) / temperature)
    np.put_along_axis(weight_BV, ranked_BV[:, min(top_k, V) :], 0.0, axis=-1)
    return weight_BV / weight_BV.sum(-1, keepdims=True)


def next_tokens(chance_BV: np.ndarray, dice_B: np.ndarray) -> np.ndarray:
    """token_B: where the dice, uniform in [0, 1), fall among the chances laid out from largest to smallest.

    Two models that throw the same dice thus take tokens of like standing in their own rankings.
    """
    ranked_BV = np.argsort(-chance_BV, axis=-1, kind="stable")
    reached_BV = np.cumsum(np.take_along_axis(chance_BV, ranked_BV, axis=-1), axis=-1)
    rank_B = (reached_BV <= dice_B[:, None] * reached_BV[:, -1:]).sum(-1)
    return np.take_along_axis(ranked_BV, rank_B[:, None], axis=-1)[:, 0]


def dice(seed: int, members: int, samples: int, tokens: int) -> np.ndarray:
    """u_KBT, uniform in [0, 1): a stream a member and sample, whichever family throws it.

    A longer text or more samples change none of the throws that were there.
    """
    streams = [[np.random.default_rng([seed, k, b]) for b in range(samples)] for k in range(members)]
    return np.stack([np.stack([stream.random(tokens) for stream in row]) for row in streams])


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The prompt's tokens; an empty one stands for the beginning of a text."""
    return tokenizer.encode(as_utf8(prompt), add_special_tokens=False).ids or [end_of_text(tokenizer)]


def as_utf8(prompt: str) -> str:
    """Half a surrogate pair, which no UTF-8 can hold, becomes "?"."""
    return prompt.encode("utf-8", "replace").decode("utf-8")


def candidates(tokenizer: Tokenizer, chance_V: np.ndarray, taken: int) -> list[Row]:
    """The likeliest tokens, and the one taken if it is not among them.

    Part of a character reads "\\ufffd", the end of a text its marker.
    """
    rows: list[Row] = []
    for rank, token in enumerate(np.argsort(-chance_V, kind="stable").tolist(), 1):
        if chance_V[token] > 0 and (rank <= SHOWN or token == taken):
            piece = tokenizer.decode([token], skip_special_tokens=False)
            chance = float(chance_V[token])
            rows.append({"rank": rank, "token": piece, "chance": chance, "taken": token == taken})
    return rows
