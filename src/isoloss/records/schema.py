"""The record of a run: what was asked, what happened, what was measured, where.

One JSON file per run, written last; its presence means the run is finished. Everything a figure or a sentence
shows comes from here and from the two Parquet files beside it. Old schema versions load for ever.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from isoloss.strict import Strict

SCHEMA_VERSION = 1

Status = Literal["finished", "diverged"]


class Evaluation(Strict):
    """Losses on the fixed validation windows after ``step`` updates; nats per token.

    ``loss`` is the cross-entropy of the last exit, ``loss_se`` its standard error over windows (sampling of
    text only, not of seeds). ``exits``: every exit's cross-entropy. For gated models ``expected`` is
    sum_t p_t CE_t, ``entropy`` H(p) and ``total`` the objective, expected - beta entropy; else all three
    follow from the one exit.
    ``cooled``: True at the end of a cooldown, False on the constant-rate trunk.
    """

    step: int = Field(ge=0)
    tokens: int = Field(ge=0)
    cooled: bool
    windows: int = Field(gt=0)
    loss: float
    loss_se: float
    bits_per_byte: float
    exits: list[float]
    expected: float
    entropy: float
    total: float


class Counts(Strict):
    """Parameters and training FLOPs per token under every rule of ``units.py``."""

    params: int
    params_total: int
    params_executed: int
    params_embedding: int
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
    shape: dict[str, Any]
    context: int
    vocab: int
    batch_size: int
    learning_rate: float
    seed: int


class RunPlanCounts(Strict):
    params: int
    params_total: int
    params_executed: int


class RunPlan(Strict):
    run_id: str
    label: str
    settings: RunPlanSettings
    counts: RunPlanCounts


class StudyPlan(Strict):
    """study.json: what a study's folder is meant to hold. ``spec`` is the scale as the study file has it.

    ``arguments``: of the `isoloss run` that made it. ``families``: each family of the user's, with its file
    and what was checked of it before training.
    """

    study: str
    title: str
    scale: str
    isoloss: str
    arguments: list[str] = Field(default_factory=list[str])
    families: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])
    spec: dict[str, Any]
    runs: list[RunPlan]

    @field_validator("runs")
    @classmethod
    def _named_once(cls, runs: list[RunPlan]) -> list[RunPlan]:
        names = [run.run_id for run in runs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the run {twice[0]} stands here twice")
        return runs


class Record(Strict):
    """``settings`` are the run's full settings; ``run_id`` ends in their hash."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    study: str
    family: str
    label: str
    status: Status
    reason: str
    diverged_step: int | None = None
    attempt: int
    seed: int
    learning_rate: float
    recipe: str
    settings: dict[str, Any]
    counts: Counts
    data: Data
    environment: Environment
    events: list[Event]
    evaluations: list[Evaluation]
    steps: int
    tokens: int
    wall_seconds: float
    cpu_seconds: float
    files: dict[str, str]
