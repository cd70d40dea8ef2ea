"""The packaged checkpoints: what their card says, and models with their weights, each file checked.

Three small models of each family stand for what can be counted; ``shown`` holds the larger pair, one of each
family, that writes what a room reads.

checkpoints/manifest.json            sha256 of every file beside it
checkpoints/card.json                how they were trained, and their held-out losses
checkpoints/tokenizer.json           byte-level BPE of the starter corpus
checkpoints/FAMILY-SEED.safetensors  weights in float16
checkpoints/shown/                   the same of the pair
"""

import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from tokenizers import Tokenizer
from torch import nn

from isoloss.errors import InputError
from isoloss.models import build_cohort, family, shape_of
from isoloss.models.cohort import member_weights
from isoloss.strict import Strict, validate

FAMILIES = ("transformer", "lstm")
CARD, TOKENIZER, MANIFEST = "card.json", "tokenizer.json", "manifest.json"
MEND = "install isoloss again, or train them anew: python benchmarks/showdown.py DIR"


class Trained(Strict):
    """One run. ``loss``: held-out nats per token of its float32 weights, ``loss_se`` over windows.

    ``sum_T``: held-out loss by position, summed over ``windows`` windows; divide once, at the end.
    """

    file: str
    family: str
    label: str
    shape: dict[str, Any]
    seed: int
    params: int
    params_total: int
    learning_rate: float
    loss: float
    loss_se: float
    bits_per_byte: float
    windows: int
    sum_T: list[float]
    cpu_seconds: float


class Tried(Strict):
    """A run of seed 0 at another learning rate: held-out loss, nats per token.

    ``tokens``: it was trained on, where that is not as many as the runs.
    """

    family: str
    learning_rate: float
    seed: int
    loss: float
    loss_se: float
    tokens: int | None = None


class Card(Strict):
    """``tokens``: trained on, of ``train_tokens`` of text; ``epochs`` is their ratio.

    ``other_rates``: what other learning rates gave.
    """

    version: Literal[1] = 1
    corpus: str
    corpus_hash: str
    tokenizer_hash: str
    train_tokens: int
    vocab: int
    context: int
    batch_size: int
    tokens: int
    steps: int
    epochs: float
    recipe: str
    weights: Literal["float16"] = "float16"
    made: str
    machine: str
    threads: int
    torch: str
    isoloss: str
    runs: list[Trained]
    other_rates: list[Tried]

    def run(self, family: str, seed: int) -> Trained:
        return next(run for run in self.runs if (run.family, run.seed) == (family, seed))


def package_folder() -> Traversable:
    return resources.files("isoloss.teach.showdown") / "checkpoints"


def shown_folder() -> Traversable:
    return package_folder() / "shown"


def verified_bytes(name: str, folder: Traversable) -> bytes:
    """A file's bytes. Raises InputError unless they have the sha256 that the manifest gives."""
    try:
        wanted = json.loads((folder / MANIFEST).read_bytes())["sha256"][name]
        data = (folder / name).read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "is missing, or not in its manifest", where=_where(folder, name), mend=MEND
        ) from None
    if hashlib.sha256(data).hexdigest() != wanted:
        raise InputError("does not match the sha256 in its manifest", where=_where(folder, name), mend=MEND)
    return data


def card(folder: Traversable | None = None) -> Card:
    folder = folder or package_folder()
    return validate(Card, verified_bytes(CARD, folder), where=_where(folder, CARD), mend=MEND)


def tokenizer(folder: Traversable | None = None) -> Tokenizer:
    tokenizer = Tokenizer.from_str(verified_bytes(TOKENIZER, folder or package_folder()).decode("utf-8"))
    tokenizer.encode_special_tokens = True  # a marker inside a prompt is plain text
    return tokenizer


def cohort(about: Card, name: str, seeds: Sequence[int], folder: Traversable | None = None) -> nn.Module:
    """The family's models of these seeds as one cohort with the packaged weights, ready to read."""
    folder = folder or package_folder()
    runs = [about.run(name, seed) for seed in seeds]
    kind = family(name)
    model = build_cohort(kind, shape_of(name, runs[0].shape), about.vocab, about.context, list(seeds))
    for k, run in enumerate(runs):
        _fill(model, k, run, folder)
    return model.eval()


@torch.no_grad()
def _fill(model: nn.Module, k: int, run: Trained, folder: Traversable) -> None:
    try:
        saved = load_tensors(verified_bytes(run.file, folder))
    except SafetensorError as error:
        raise InputError(f"is not safetensors: {error}", where=_where(folder, run.file), mend=MEND) from None
    tensors = member_weights(model, k)
    if {name: tensor.shape for name, tensor in tensors.items()} != {n: t.shape for n, t in saved.items()}:
        raise InputError("does not fit the shape in the card", where=_where(folder, run.file), mend=MEND)
    for name, tensor in tensors.items():
        tensor.copy_(saved[name])


def _where(folder: Traversable, name: str) -> str:
    return f"{folder.name}/{name}"
