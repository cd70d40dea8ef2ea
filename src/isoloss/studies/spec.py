"""A study as a TOML file: which models, on which text, for how long, with which seeds.

    name = "architectures"
    title = "What the study asks"

    [scale.mini]
    corpus = "starter"
    vocabulary = 1024            # or  tokenizer = "path/to/tokenizer.json"
    context = 256
    batch_size = 8               # sequences
    tokens = [131072, 262144]    # D points: every run is evaluated, cooled down, at each
    seeds = [0, 1]
    meant_for = "cpu"            # or "gpu": what --dry-run costs it for
    micro_batches = 1            # parts a batch is computed in; more where memory is short
    ranks = 1                    # devices of one machine that train each run together
    shard = false                # true: each of them holds a part of the model (FSDP2), not all of it (DDP)
    activation_checkpointing = "none"   # or "block", "loop": compute these again backward, to save memory

    [[scale.mini.models]]
    family = "lstm"
    shape = { n_layer = 1 }      # what all shapes of this entry share
    shapes = [{ d_model = 40 }, { d_model = 80 }]
    seeds = [0]                  # optional: this entry's own
    learning_rates = [0.003]     # optional: else the recipe's table for the family and size
    params = 147456              # optional, Transformers: solve each shape's d_ff, or d_model, for this N
    tokens = [131072]            # optional: this entry's own D points
    context = 8                  # optional: another context, with as many tokens a step

Unknown keys are refused. A study file is data: it can name a family, never a file of code.
"""

import importlib.resources
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from isoloss import files
from isoloss.errors import InputError
from isoloss.strict import Strict, key_and_value, validate
from isoloss.training.settings import MOST_RANKS, ActivationCheckpointing, Evaluating, Execution, Recipe

KEYS = (
    'a study begins with name = "my-study"; then [scale.mini] with context, batch_size and tokens, and '
    "[[scale.mini.models]] with family and shapes"
)
CHANGE = "write KEY=VALUE, VALUE as in a study's file: 3, [0, 1], true or a bare word"


class Models(Strict):
    """Runs of one family: every shape x seed x learning rate; ``tokens``: D points other than the scale's."""

    family: str
    shape: dict[str, Any] = Field(default_factory=dict[str, Any])
    shapes: list[dict[str, Any]] = Field(min_length=1)
    seeds: list[int] | None = Field(default=None, min_length=1)
    learning_rates: list[float] | None = Field(default=None, min_length=1)
    params: int | None = Field(default=None, gt=0)
    tokens: list[int] | None = Field(default=None, min_length=1)
    context: int | None = Field(default=None, gt=1)


class Scale(Strict):
    description: str = ""
    corpus: str = "starter"
    vocabulary: int = Field(default=1024, gt=256)
    tokenizer: str | None = None
    context: int = Field(gt=1)
    batch_size: int = Field(gt=0)
    tokens: list[int] = Field(min_length=1)
    seeds: list[int] = Field(default=[0], min_length=1)
    device: str = "auto"
    meant_for: Literal["cpu", "gpu"] = "cpu"
    micro_batches: int = Field(default=1, gt=0)
    ranks: int = Field(default=1, gt=0, le=MOST_RANKS)
    shard: bool = False
    activation_checkpointing: ActivationCheckpointing = "none"
    evaluation: Evaluating = Evaluating()
    recipe: Recipe = Recipe()
    models: list[Models] = Field(min_length=1)

    @field_validator("device")
    @classmethod
    def _check_device(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|mps|cuda(:[0-9]{1,3})?", device):
            raise ValueError(f"{device!r} is not a device: write auto, cpu, mps, cuda or cuda:1")
        return device

    @property
    def execution(self) -> Execution:
        return Execution(
            device=self.device,
            micro_batches=self.micro_batches,
            ranks=self.ranks,
            shard=self.shard,
            activation_checkpointing=self.activation_checkpointing,
        )


class Study(Strict):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str = ""
    scale: dict[str, Scale] = Field(min_length=1)


FOLDER = importlib.resources.files("isoloss.studies")


def shipped() -> list[str]:
    """Names of the studies that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in FOLDER.iterdir() if path.name.endswith(".toml"))


def read(study: str) -> Study:
    """A shipped study by name, or a TOML file by path. Raises InputError naming file and key."""
    if study in shipped():
        text, where = (FOLDER / f"{study}.toml").read_text("utf-8"), f"study {study}"
    else:
        where = study
        try:
            data = files.read_bytes(Path(study))
        except InputError as error:
            names = ", ".join(shipped())
            raise InputError(
                f"there is no study {study!r} ({error.what})",
                mend=f"use one of {names}, or the path of a .toml file",
            ) from None
        text = files.decode(data, study)
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", where=where, mend="mend that line") from None
    return validate(Study, values, where=where, mend=KEYS, by_hand=True)


def scale_of(study: Study, name: str, changes: Sequence[str] = ()) -> Scale:
    """One scale of a study, with ``KEY=VALUE`` changes; VALUE is TOML, dots go into tables."""
    if name not in study.scale:
        raise InputError(
            f"study {study.name!r} has no scale {name!r}", mend=f"use one of {', '.join(study.scale)}"
        )
    if not changes:
        return study.scale[name]
    values = study.scale[name].model_dump()
    for change in changes:
        _apply(values, change)
    return validate(Scale, values, where="--set", mend=CHANGE, by_hand=True)


def _apply(values: dict[str, Any], change: str) -> None:
    key, value = key_and_value(change, example="--set 'seeds=[0,1,2]'")
    *path, last = key.split(".")
    table = values
    for part in path:
        if not isinstance(table.get(part), dict):
            raise InputError(
                f"there is no table {part!r}", where=f"--set {change}", mend="check the key's path"
            )
        table = table[part]
    table[last] = value.strip() if isinstance(value, str) else value
