"""Which source is read by which function."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from isoloss.errors import InputError
from isoloss.sources.logs import huggingface, lightning, mlflow, tensorboard, textlog, wandb
from isoloss.sources.logs.logged import LoggedRun, frame_of
from isoloss.sources.read import read


@dataclass(frozen=True)
class Source:
    """``takes``: what a user names. ``package``: what it needs beyond this one, as pip installs it."""

    takes: str
    runs: Callable[[str], Iterable[LoggedRun]] | None
    package: str = ""


SOURCES = {
    "wandb": Source("a panel's or the runs' CSV, a wandb folder, ENTITY/PROJECT", wandb.runs, wandb.PACKAGE),
    "tensorboard": Source("a folder of event files", tensorboard.runs, tensorboard.PACKAGE),
    "huggingface": Source("a folder with trainer_state.json files", huggingface.runs),
    "mlflow": Source("mlruns, a sqlite file, an address", mlflow.runs, mlflow.PACKAGE),
    "lightning": Source("a folder with metrics.csv files", lightning.runs),
    "nanogpt": Source(f"text logs of {', '.join(textlog.PATTERNS)}", textlog.runs),
    "csv": Source("a table with a row a run, as fit takes it", None),
}


def frame(source: str, path: str, pattern: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """What ``source`` logged in ``path``, a row a run and step, and notes.

    Raises InputError for an unknown source, what it cannot read, and a package that is missing.
    """
    if source not in SOURCES:
        raise InputError(f"there is no source {source!r}", mend=f"choose one of {', '.join(SOURCES)}")
    if pattern is not None and source != "nanogpt":
        raise InputError(f"{source} takes no pattern", where="--pattern", mend="leave it out")
    runs = SOURCES[source].runs
    rows = source == "wandb" and path.endswith(".csv") and not wandb.is_panel(read(path))
    if runs is None or rows:
        table = read(path)
        origins = [f"{path}, row {row}" for row in range(1, table.height + 1)]
        return table.with_columns(origin=pl.Series(origins)), []
    if source not in ("wandb", "mlflow") and not Path(path).exists():
        raise InputError("there is no such path", where=path, mend="check the path")
    return frame_of((partial(textlog.runs, pattern=pattern) if pattern else runs)(path), path)
