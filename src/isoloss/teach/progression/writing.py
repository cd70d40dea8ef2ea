"""Sentences that models in training write: from one prompt, by the same decoding and noise for every side."""

import numpy as np
import torch
from torch import nn

from isoloss.teach.progression.corpus import END, Sentence

WRITE_STREAM = 2


def write(
    model: nn.Module, prompt: Sentence, context: int, seeds: list[int], update: int, samples: int
) -> list[list[Sentence]]:
    """Of each member a greedy sentence and then ``samples`` drawn at temperature 1, the prompt included.

    A sentence that ended has END as its last token; one without stopped where the context was full.

    A draw is the largest of  logit + Gumbel noise  (Maddison et al. 2014, arXiv 1411.0030), with noise that
    is a function of the seed and the update alone; greedy is the same without noise.
    """
    x_KBT = torch.tensor((END, *prompt)).expand(len(seeds), 1 + samples, -1)
    streams = [np.random.default_rng([WRITE_STREAM, seed, update]) for seed in seeds]
    ended_KB = torch.zeros(x_KBT.shape[:2], dtype=torch.bool)
    with torch.inference_mode():
        while x_KBT.shape[-1] <= context and not ended_KB.all():
            logits_KBV = model(x_KBT).logits[-1][:, :, -1]
            noise_KBV = np.stack([stream.gumbel(size=logits_KBV.shape[1:]) for stream in streams])
            noise_KBV[:, 0] = 0.0
            next_KB = (logits_KBV + torch.from_numpy(noise_KBV)).argmax(-1)
            next_KB[ended_KB] = END
            ended_KB |= next_KB == END
            x_KBT = torch.cat([x_KBT, next_KB[..., None]], dim=-1)
    return [[_until_end(tokens) for tokens in rows] for rows in x_KBT[..., 1:].tolist()]


def _until_end(tokens: list[int]) -> Sentence:
    return tuple(tokens[: tokens.index(END) + 1] if END in tokens else tokens)
