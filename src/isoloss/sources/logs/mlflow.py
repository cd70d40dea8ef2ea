"""MLflow: a ``mlruns`` folder, a sqlite file, or the address of a server, through its own client."""

import os
import sqlite3
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.errors import InputError
from isoloss.sources.logs.lightning import value_of
from isoloss.sources.logs.logged import LoggedRun, library

PACKAGE = "mlflow-skinny sqlalchemy alembic"
_MOST = 1000
"""Metrics that a call may log."""
_FOLDERS = "MLFLOW_ALLOW_FILE_STORE"
"""MLflow 3.7 and later open a folder only if this variable of the environment says so."""


def runs(source: str) -> Iterator[LoggedRun]:
    """All runs of all experiments; a sqlite file is read from a copy, so that nothing of it changes."""
    with _address(source) as address, quiet_client():
        client = library("mlflow", PACKAGE, "a store of MLflow").MlflowClient(address)
        for run in _all_runs(client):
            yield _logged(client, run, source)


@contextmanager
def _address(source: str) -> Generator[str, None, None]:
    path = Path(source)
    if path.is_dir():
        yield path.resolve().as_uri()
    elif path.is_file():
        with open(path, "rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                raise InputError("is no sqlite file", where=source, mend="name mlruns or mlflow.db")
        with files.copy_of(path) as copy:
            _check_tables(copy, source)
            yield f"sqlite:///{copy}"
    elif "://" in source:
        yield source
    else:
        raise InputError("there is no such path", where=source, mend="name mlruns or mlflow.db")


def _check_tables(path: Path, source: str) -> None:
    """MLflow makes its tables in an empty file, which would pass for a store without runs."""
    try:
        with sqlite3.connect(path) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        database.close()
    except sqlite3.Error:
        names = set()
    if not {"runs", "metrics", "params"} <= names:
        raise InputError("holds no runs of MLflow", where=source, mend="name the file of MLflow's store")


@contextmanager
def quiet_client() -> Generator[None, None, None]:
    """Folders are opened too, and what MLflow's own libraries find outdated in it is not said."""
    before = os.environ.get(_FOLDERS)
    os.environ[_FOLDERS] = "true"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if before is None:
            del os.environ[_FOLDERS]
        else:
            os.environ[_FOLDERS] = before


def _all_runs(client: Any) -> Iterator[Any]:
    for experiment in client.search_experiments():
        token = None
        while True:
            page = client.search_runs([experiment.experiment_id], page_token=token)
            yield from page
            if not (token := page.token):
                break


def _logged(client: Any, run: Any, source: str) -> LoggedRun:
    rows = [
        {"step": metric.step, name: metric.value}
        for name in run.data.metrics
        for metric in client.get_metric_history(run.info.run_id, name)
    ]
    settings = {name: value_of(text) for name, text in run.data.params.items()}
    name = run.info.run_name or run.info.run_id
    return LoggedRun(name, f"{source}, run {run.info.run_id}", rows, settings, run.info.status.lower())


def write(runs: Sequence[LoggedRun], study: str, out: Path) -> None:
    """An experiment of these runs in the new sqlite file ``out``."""
    with quiet_client():
        mlflow = library("mlflow", PACKAGE, "a store of MLflow")
        files.new_file(out, lambda path: _write(mlflow, runs, study, f"sqlite:///{path.resolve()}"))


def _write(mlflow: Any, runs: Sequence[LoggedRun], study: str, address: str) -> None:
    client, entities = mlflow.MlflowClient(address), mlflow.entities
    experiment = client.create_experiment(study)
    for run in runs:
        key = client.create_run(experiment, run_name=run.name).info.run_id
        params = [entities.Param(name, str(value)) for name, value in run.settings.items()]
        metrics = [
            entities.Metric(name, float(value), 0, row["step"])
            for row in run.rows
            for name, value in row.items()
            if name != "step"
        ]
        client.log_batch(key, params=params)
        for start in range(0, len(metrics), _MOST):
            client.log_batch(key, metrics=metrics[start : start + _MOST])
        client.set_terminated(key, "FINISHED" if run.status == "finished" else "FAILED")
