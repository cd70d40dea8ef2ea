"""What makes a run the run it is: its full settings, whose hash names it."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from isoloss import files
from isoloss.strict import Strict

SETTINGS_VERSION = 1
MOST_TOKENS = 10**16
MOST_RANKS = 1024
ActivationCheckpointing = Literal["none", "block", "loop"]


class Evaluating(Strict):
    """How validation loss is measured.

    ``windows`` at each D point, ``final_windows`` at the largest, ``trace_windows`` along the trunk at steps
    0, 1, 2, 3, 4, 6, 8, 11, ...; all fixed and evenly spread over the validation text. One window would have
    no standard error. ``targets``: tokens whose loss is taken at every position (``training.sliding``), at
    each D point and, ``trace_targets``, along the trunk; 0 for none.
    """

    windows: int = Field(default=128, ge=2)
    final_windows: int = Field(default=512, ge=2)
    trace_windows: int = Field(default=32, ge=2)
    targets: int = Field(default=1024, ge=0)
    trace_targets: int = Field(default=0, ge=0)


class Recipe(Strict):
    """AdamW, linear warmup, constant rate, 1-sqrt cooldown branches.

    ``warmup`` and ``cooldown`` are shares of the run that ends at a D point: warmup of the shortest, so that
    it is never longer than a tenth of any (arXiv 2406.19146 moved an exponent from 0.71 to 0.60 by that
    alone); cooldown of each (arXiv 2405.18392). beta2 = 0.99 suits small batches (same source as warmup).
    Weight decay is decoupled and leaves embeddings, biases and other vectors alone. There is no other recipe:
    ``name`` and ``version`` only say which one made a record.
    """

    name: Literal["adamw-constant-1sqrt"] = "adamw-constant-1sqrt"
    version: Literal[1] = 1
    warmup: float = Field(default=0.1, ge=0.0, le=0.1)
    cooldown: float = Field(default=0.2, gt=0.0, lt=1.0)
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.99, gt=0.0, lt=1.0)
    eps: float = Field(default=1e-8, gt=0.0)
    weight_decay: float = Field(default=0.1, ge=0.0)
    clip: float = Field(default=1.0, gt=0.0)


class RunSettings(Strict):
    """Everything that decides a run's numbers, but for the machine it runs on.

    ``tokens``: the D points, ascending, each a whole number of steps of ``batch_size * context`` tokens.
    ``family_source``: sha256 of the file of a user's family. ``tokenizer``: "bpe-V", which with the corpus
    hash fixes the tokens, or "file-" and the hash of a given one.
    """

    version: int = SETTINGS_VERSION
    family: str
    family_source: str | None = None
    shape: dict[str, Any]
    corpus_hash: str
    tokenizer: str
    vocab: int = Field(gt=1)
    context: int = Field(gt=1)
    batch_size: int = Field(gt=0)
    tokens: tuple[int, ...] = Field(min_length=1)
    learning_rate: float = Field(gt=0.0, lt=10.0)
    seed: int = Field(ge=0, lt=2**32)
    recipe: Recipe = Recipe()
    evaluation: Evaluating = Evaluating()

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if list(self.tokens) != sorted(set(self.tokens)):
            raise ValueError("tokens must ascend without repeats")
        for tokens in self.tokens:
            if not 0 < tokens <= MOST_TOKENS:
                raise ValueError(f"tokens {tokens} is not between 1 and {MOST_TOKENS:,}")
            if left := tokens % self.batch_tokens:
                near = [n for n in (tokens - left, tokens - left + self.batch_tokens) if n > 0]
                raise ValueError(
                    f"tokens {tokens} is not a multiple of the batch, {self.batch_size} x {self.context} = "
                    f"{self.batch_tokens} tokens; the nearest: {' and '.join(map(str, near))}"
                )
        if self.point_steps[0] < 10:
            raise ValueError(f"the first D point is {self.point_steps[0]} steps long; give it at least 10")
        return self

    @property
    def batch_tokens(self) -> int:
        return self.batch_size * self.context

    @property
    def point_steps(self) -> list[int]:
        return [tokens // self.batch_tokens for tokens in self.tokens]

    @property
    def run_id(self) -> str:
        return f"{self.family}-{self.short_shape}-s{self.seed}-{self.hash[:12]}".lower()

    @property
    def short_shape(self) -> str:
        layers, width = self.shape.get("n_layer"), self.shape.get("d_model")
        loops = self.shape.get("recurrence")
        return f"{layers or 'x'}x{width or 'x'}" + (f"-r{loops}" if loops else "")

    @property
    def hash(self) -> str:
        return files.hash_of(self.model_dump(mode="json"))


class Execution(Strict):
    """How to compute, which changes a number by rounding at most: device, micro-batches, safety saves.

    ``ranks``: devices of one machine that train one run together (``training.distributed``), each with all
    weights or, with ``shard``, a part of them. ``activation_checkpointing``: keep what goes into each block,
    or into each pass of a loop, alone, and compute the inside again backward.
    ``keep_weights``: leave each member's weights at its last D point beside its record.
    """

    device: str = "auto"
    micro_batches: int = Field(default=1, gt=0)
    ranks: int = Field(default=1, gt=0, le=MOST_RANKS)
    shard: bool = False
    activation_checkpointing: ActivationCheckpointing = "none"
    checkpoint_seconds: float = Field(default=30.0, ge=0.0)
    checkpoint_steps: int | None = Field(default=None, gt=0)
    keep_weights: bool = False
