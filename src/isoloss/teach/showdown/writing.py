"""A cohort that goes on from a prompt, a token at a time, and what it was about to say."""

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from isoloss.corpus.tokenizer import end_of_text
from isoloss.teach.result import Row
from isoloss.teach.showdown.decoding import chances, chosen

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
        next_KB1 = chosen(chance_NV, dice_KB.reshape(-1)).reshape(K, B, 1)
        self.ids_KBT = np.concatenate([self.ids_KBT, next_KB1], axis=-1)
        return chance_NV.reshape(K, B, -1)

    def written(self, member: int, sample: int) -> list[int]:
        return self.ids_KBT[member, sample, self.begin :].tolist()


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The prompt's tokens; an empty one stands for the beginning of a text."""
    return tokenizer.encode(cleaned(prompt), add_special_tokens=False).ids or [end_of_text(tokenizer)]


def cleaned(prompt: str) -> str:
    """Half a surrogate pair, which no UTF-8 can hold, becomes "?"."""
    return prompt.encode("utf-8", "replace").decode("utf-8")


def candidates(tokenizer: Tokenizer, chance_V: np.ndarray, took: int) -> list[Row]:
    """The likeliest tokens, and the one taken if it is not among them."""
    ranked = np.argsort(-chance_V, kind="stable")
    ranks = [rank for rank, token in enumerate(ranked) if rank < SHOWN or token == took]
    return [
        {
            "rank": rank + 1,
            "token": piece(tokenizer, int(ranked[rank])),
            "chance": float(chance_V[ranked[rank]]),
            "taken": int(ranked[rank]) == took,
        }
        for rank in ranks
        if chance_V[ranked[rank]] > 0
    ]


def piece(tokenizer: Tokenizer, token: int) -> str:
    """One token as it reads; part of a character reads "\\ufffd", the end of a text its marker."""
    return tokenizer.decode([token], skip_special_tokens=False)
