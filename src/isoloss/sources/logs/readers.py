"""Which source is read by which function."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from isoloss.errors import InputError, IsolossError
from isoloss.sources.logs import huggingface, lightning, mlflow, tensorboard, textlog, wandb
from isoloss.sources.logs.logged import LoggedRun, frame_of
from isoloss.sources.naming import is_panel
from isoloss.sources.read import FAILURES, first_line, read


@dataclass(frozen=True)
class Source:
    """``takes``: what a user names. ``write``: what makes such logs of runs, named after their study."""

    takes: str
    runs: Callable[[str], Iterable[LoggedRun]] | None
    write: Callable[[Sequence[LoggedRun], str, Path], None] | None = None


SOURCES = {
    "wandb": Source("a panel's or the runs' CSV, a wandb folder, ENTITY/PROJECT", wandb.runs, wandb.write),
    "tensorboard": Source("a folder of event files", tensorboard.runs, tensorboard.write),
    "huggingface": Source("a folder with trainer_state.json files", huggingface.runs),
    "mlflow": Source("mlruns, a sqlite file, an address", mlflow.runs, mlflow.write),
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
    file = source == "wandb" and Path(path).is_file() and not path.endswith(".wandb")
    rows = file and not is_panel(read(path).columns)
    if runs is None or rows:
        table = read(path)
        origins = [f"{path}, row {row}" for row in range(1, table.height + 1)]
        return table.with_columns(origin=pl.Series(origins)), []
    if source not in ("wandb", "mlflow") and not Path(path).exists():
        raise InputError("there is no such path", where=path, mend="check the path")
    try:
        return frame_of((partial(textlog.runs, pattern=pattern) if pattern else runs)(path), path)
    except IsolossError:
        raise
    except FAILURES as error:  # of a tracker's own library, at a damaged file or an address
        mend = f"name {SOURCES[source].takes}"
        raise InputError(f"cannot be read as {source} ({first_line(error)})", where=path, mend=mend) from None
