"""The record of a run: what was asked, what happened, what was measured, where.

One JSON file per run, written last; its presence means the run is finished. Everything a figure or a sentence
shows comes from here and from the two Parquet files beside it. Old schema versions load for ever.
"""

from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from isoloss import files
from isoloss.strict import Strict

SCHEMA_VERSION = 1

Status = Literal["finished", "diverged"]


Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""What a table's column of whole numbers holds."""
Amount = Annotated[int, Field(ge=0, lt=2**63)]
Factor = Annotated[int, Field(ge=0, lt=2**31)]
"""Two of them have a product that a table holds."""


class Evaluation(Strict):
    """Losses on the fixed validation windows after ``step`` updates; nats per token.

    ``loss`` is the cross-entropy of the last exit, ``loss_se`` its standard error over windows (sampling of
    text only, not of seeds). ``exits``: every exit's cross-entropy. For gated models ``expected`` is
    sum_t p_t CE_t, ``entropy`` H(p) and ``total`` the objective, expected - beta entropy; else all three
    follow from the one exit.
    ``cooled``: True at the end of a cooldown, False on the constant-rate trunk.
    """

    step: Amount
    tokens: Amount
    cooled: bool
    windows: int = Field(gt=0)
    loss: float
    loss_se: float
    bits_per_byte: float
    exits: list[float]
    expected: float
    entropy: float
    total: float


Sizes = Annotated[list[Annotated[int, Field(gt=0)]], Field(min_length=2, max_length=2)]
"""The least and the most parameters."""
Setting = bool | Whole | float | str | None
"""Of a model's shape."""


class Counts(Strict):
    """Parameters and training FLOPs per token under every rule of ``units.py``."""

    params: Amount
    params_total: Amount
    params_executed: Amount
    params_embedding: Amount
    flops_6nd_per_token: float
    flops_exact_per_token: float


class Data(Strict):
    corpus: str
    corpus_hash: str
    tokenizer_hash: str
    train_sha256: str
    validation_sha256: str
    train_tokens: int
    validation_tokens: int
    vocab: int
    bytes_per_token: float
    epochs: float


class Environment(Strict):
    """Where it ran. Bitwise equality is promised only while all of this stays the same."""

    isoloss: str
    commit: str | None
    dirty: bool | None
    python: str
    torch: str
    numpy: str
    platform: str
    device: str
    device_name: str
    threads: int
    dtype: str
    compiled: bool
    cohort_size: int


class Event(Strict):
    """Something that happened: started, resumed, diverged, finished."""

    kind: str
    attempt: int
    step: int
    time: str
    detail: str = ""


class RunPlanSettings(Strict):
    """What the loss table needs of a planned run's settings; the others stand beside them."""

    model_config = ConfigDict(extra="allow")

    family: str
    shape: dict[str, Setting]
    context: Factor
    vocab: Whole
    batch_size: Factor
    learning_rate: float
    seed: Whole

    @field_validator("shape")
    @classmethod
    def _whole_sizes(cls, shape: dict[str, Setting]) -> dict[str, Setting]:
        for name in ("n_layer", "d_model", "d_ff", "n_head", "recurrence"):
            if not isinstance(shape.get(name), int | None):
                raise ValueError(f"{name} is {shape[name]!r}, no whole number")
        return shape


class RunPlanCounts(Strict):
    params: Amount
    params_total: Amount
    params_executed: Amount


class RunPlan(Strict):
    run_id: str
    label: str
    settings: RunPlanSettings
    counts: RunPlanCounts


class StudyPlan(Strict):
    """study.json: what a study's folder is meant to hold. ``spec`` is the scale as the study file has it.

    ``arguments``: of the `isoloss run` that made it. ``families``: each family of the user's, with its file
    and what was checked of it before training. ``swept``: of each family whose rates come from the recipe,
    the least and the most parameters that its rates were swept at.
    """

    study: str
    title: str
    scale: str
    isoloss: str
    arguments: list[str] = Field(default_factory=list[str])
    families: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])
    swept: dict[str, Sizes] = Field(default_factory=dict[str, Sizes])
    spec: dict[str, Any]
    runs: list[RunPlan]

    @field_validator("runs")
    @classmethod
    def _named_once(cls, runs: list[RunPlan]) -> list[RunPlan]:
        count = Counter(run.run_id for run in runs)
        if twice := sorted(name for name, times in count.items() if times > 1):
            raise ValueError(f"the run {twice[0]} stands here twice")
        return runs


class Record(Strict):
    """``settings`` are the run's full settings; ``run_id`` ends in their hash.

    ``digest``: sha256 of all else, so that an edited number is seen; empty in records of before.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    study: str
    family: str
    label: str
    status: Status
    reason: str
    diverged_step: Amount | None = None
    attempt: int
    seed: Whole
    learning_rate: float
    recipe: str
    settings: dict[str, Any]
    counts: Counts
    data: Data
    environment: Environment
    events: list[Event]
    evaluations: list[Evaluation]
    steps: Amount
    tokens: Amount
    wall_seconds: float
    cpu_seconds: float
    files: dict[str, str]
    digest: str = ""

    @field_validator("settings")
    @classmethod
    def _planned(cls, settings: dict[str, Any]) -> dict[str, Any]:
        RunPlanSettings.model_validate(settings)
        return settings

    @model_validator(mode="after")
    def _unedited(self) -> Self:
        if self.digest not in ("", self.digest_of_rest()):
            raise ValueError("it was edited after it was written: its digest differs")
        return self

    def digest_of_rest(self) -> str:
        return files.hash_of(self.model_dump(mode="json", exclude={"digest"}))

    def sealed(self, **changes: Any) -> "Record":
        """The same with these changes and the digest of the result."""
        changed = self.model_copy(update=changes)
        return changed.model_copy(update={"digest": changed.digest_of_rest()})
