"""What is known of one run: what the plan says of it, its state, how far it is and how fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoloss.errors import InputError
from isoloss.records.store import run_folder
from isoloss.serve.curves import NONE, Curve
from isoloss.training.task import Progress

LIVING = ("running", "queued", "waiting")


@dataclass(frozen=True)
class Planned:
    """What study.json says of a run. ``work``: parameters, head and embedding among them, times tokens."""

    run_id: str
    label: str
    family: str
    seed: int
    vocab: int
    step_tokens: int
    step_flops: float
    tokens: int
    work: float


def planned(folder: Path, run: Mapping[str, Any]) -> Planned:
    """Of one run of a plan. Raises InputError for a name or a number of tokens that cannot be."""
    settings, counts = run["settings"], run["counts"]
    run_folder(folder, run["run_id"])
    tokens = settings.get("tokens")
    if not (isinstance(tokens, list) and tokens and all(isinstance(d, int) and d > 0 for d in tokens)):
        what, where = f"the run {run['run_id']} has no tokens to train for", str(folder / "study.json")
        raise InputError(what, where=where, mend="run the study again: its plan is written anew")
    step_tokens = max(1, settings["batch_size"] * settings["context"])
    return Planned(
        run["run_id"],
        run["label"],
        settings["family"],
        settings["seed"],
        max(2, settings["vocab"]),
        step_tokens,
        6.0 * max(1, counts["params_executed"]) * step_tokens,
        tokens[-1],
        float(max(1, counts["params_total"])) * tokens[-1],
    )


@dataclass(frozen=True)
class Run:
    """``state``: of ``studies.status``, or diverged. ``loss``: the last on held-out text, or in training."""

    plan: Planned
    state: str = "waiting"
    reason: str = ""
    progress: Progress | None = None
    loss: float | None = None
    curve: Curve = NONE

    @property
    def run_id(self) -> str:
        return self.plan.run_id

    @property
    def share(self) -> float:
        """Of its updates, those that are made."""
        if self.state not in LIVING:
            return 1.0
        return min(1.0, self.progress.done / max(1, self.progress.updates)) if self.progress else 0.0

    @property
    def speed(self) -> float:
        """Shares of it a second; 0 where that is not known."""
        progress = self.progress
        if progress is None or self.state != "running":
            return 0.0
        updates = self.plan.step_tokens * max(1, progress.members) * max(1, progress.updates)
        return max(0.0, progress.tokens_per_second) / updates
