"""A study half-way: a shipped one of which some runs have ended, two run, one failed and the rest wait."""

import json
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import save_file

from isoloss import files
from isoloss.records import reference
from isoloss.records.store import read_plan, run_folder, write_failure
from isoloss.training.schedule import segments
from isoloss.training.settings import RunSettings

HOSTILE = "<img src=x onerror=alert(1)> & 'no memory'"


class Halfway:
    """``runs``: ids in the plan's order. What ``end`` and ``begin`` write is what a worker writes."""

    def __init__(self, folder: Path, study: str = "reference", ended: int = 0):
        self.folder, self.source = folder, reference.folder(study)
        self.plan = read_plan(self.source)
        self.runs = [run["run_id"] for run in self.plan["runs"]]
        self.failed, *self.running = self.runs[-3:]
        folder.mkdir(parents=True, exist_ok=True)
        self.write_plan()
        for run_id in self.runs[:ended]:
            self.end(run_id)
        self.claims = ExitStack()

    def write_plan(self, runs: int | None = None) -> None:
        files.write_json(self.folder / "study.json", self.plan | {"runs": self.plan["runs"][:runs]})

    def end(self, run_id: str) -> None:
        place = self.folder / "runs" / run_id
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.source / "runs" / run_id, place)

    def fail(self, run_id: str, reason: str = HOSTILE) -> None:
        place = self.folder / "runs" / run_id
        place.mkdir(parents=True)
        write_failure(run_folder(self.folder, run_id), reason)

    def begin(self, run_id: str, done: int, checkpoint: int | None = None) -> None:
        """Claimed by this process, with ``done`` updates and a checkpoint of an earlier one."""
        place = self.folder / "runs" / run_id
        place.mkdir(parents=True, exist_ok=True)
        assert self.claims.enter_context(files.claim(place / "claim.lock"))
        settings = next(run["settings"] for run in self.plan["runs"] if run["run_id"] == run_id)
        files.write_json(place / "settings.json", settings)
        self.go_on(run_id, done)
        if checkpoint is not None:
            self.save(run_id, checkpoint)

    def settings(self, run_id: str) -> RunSettings:
        return RunSettings.model_validate_json((self.folder / "runs" / run_id / "settings.json").read_bytes())

    def losses(self, run_id: str) -> np.ndarray:
        """By update in the order of training, as the worker had them."""
        curve = pl.read_parquet(self.source / "runs" / run_id / "curve.parquet")
        by_step = {(b, s): loss for b, s, loss in curve.select("branch", "step", "total").iter_rows()}
        parts = segments(self.settings(run_id))
        return np.array([by_step[p.branch, s + 1] for p in parts for s in range(p.start, p.stop)])

    def updates(self, run_id: str) -> int:
        return len(self.losses(run_id))

    def go_on(self, run_id: str, done: int) -> None:
        losses, settings = self.losses(run_id), self.settings(run_id)
        progress = {
            "run_id": run_id,
            "label": "a run",
            "done": done,
            "updates": len(losses),
            "tokens": done * settings.batch_tokens,
            "loss": losses[done - 1],
            "tokens_per_second": 9000.0,
            "members": 1,
            "diverged": 0,
        }
        files.write_json(self.folder / "runs" / run_id / "progress.json", progress)

    def save(self, run_id: str, done: int, *others: str) -> None:
        """A checkpoint in the folder of the first member of a cohort."""
        members = (run_id, *others)
        curve_UKP = np.stack([self.losses(member) for member in members], axis=1)[:, :, None]
        curve_UKP[done:] = np.nan
        place = self.folder / "runs" / run_id / "checkpoints" / f"update-{done:09d}"
        place.mkdir(parents=True)
        save_file({"curve": curve_UKP}, place / "state.safetensors")
        (place / "state.json").write_text(json.dumps({"run_ids": members}), "utf-8")

    def die(self) -> None:
        """The workers' process ends, and with it its claims."""
        self.claims.close()


@contextmanager
def halfway(folder: Path, study: str = "reference", ended: int = 16):
    """The first ``ended`` of the plan are done, or all but the last -``ended``; the last two run, the one
    before them failed."""
    made = Halfway(folder, study, ended)
    made.begin(made.running[0], 150, checkpoint=140)
    made.begin(made.running[1], 60, checkpoint=50)
    made.fail(made.failed)
    try:
        yield made
    finally:
        made.die()
