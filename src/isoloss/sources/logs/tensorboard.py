"""TensorBoard: event files, one folder a run, through its own reader."""

import json
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.sources.logs.counting import of_config
from isoloss.sources.logs.lightning import read_hparams
from isoloss.sources.logs.logged import LoggedRun, files_named, library, run_name
from isoloss.sources.read import FAILURES

PACKAGE = "tensorboard"
_HPARAMS, _CONFIG = "_hparams_/session_start_info", "model_config/text_summary"


def runs(source: str) -> Iterator[LoggedRun]:
    """Scalars of each folder with event files; settings from its hparams and a hparams.yaml beside them."""
    root = Path(source)
    reader = library(
        "tensorboard.backend.event_processing.event_accumulator", PACKAGE, "a file of TensorBoard"
    )
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # what is torn off at the end of a live run
    paths = files_named(root, "*tfevents*", "event file of TensorBoard")
    for folder in dict.fromkeys(file.parent for file in paths):
        events = reader.EventAccumulator(
            str(root if root.is_file() else folder), size_guidance={"scalars": 0, "tensors": 0}
        ).Reload()
        rows = list(_rows(events))
        settings = {**read_hparams(folder / "events"), **_hparams(events)}
        counted = "; params counted from model_config" if _CONFIG in events.Tags()["tensors"] else ""
        name = run_name(folder, folder if root.is_file() else root)
        yield LoggedRun(name, f"{folder}{counted}", rows, settings)


def _rows(events: Any) -> Iterator[dict[str, Any]]:
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            yield {"step": event.step, tag: event.value}
    for tag in events.Tags()["tensors"]:
        if events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            for event in events.Tensors(tag):
                yield {"step": event.step, tag: _number(event.tensor_proto)}


def _number(tensor: Any) -> float:
    """Of a scalar as TensorFlow 2 writes it; NaN for anything else."""
    values = library("tensorboard.util.tensor_util", PACKAGE, "a file of TensorBoard").make_ndarray(tensor)
    return float(values) if values.size == 1 and values.dtype.kind in "fiu" else math.nan


def _hparams(events: Any) -> dict[str, Any]:
    """From the hparams plugin, and from the configuration that Hugging Face's Trainer writes as text."""
    settings: dict[str, Any] = {}
    plugin = library("tensorboard.plugins.hparams.plugin_data_pb2", PACKAGE, "hparams")
    with suppress(KeyError):  # of a log without hparams
        content = events.PluginTagToContent("hparams")[_HPARAMS]
        start = plugin.HParamsPluginData.FromString(content).session_start_info
        for name, value in start.hparams.items():
            kind = value.WhichOneof("kind")
            settings[name] = getattr(value, kind) if kind else None
    if _CONFIG in events.Tags()["tensors"]:
        settings = _text(events.Tensors(_CONFIG)) | settings  # what the user chose to log counts
    return settings


def _text(tensors: Any) -> dict[str, Any]:
    try:
        config = json.loads(tensors[-1].tensor_proto.string_val[0])
        return of_config(config) if isinstance(config, dict) else {}
    except FAILURES:
        return {}


def write(runs: Sequence[LoggedRun], _: str, out: Path) -> None:
    """A folder a run in the new folder ``out``: scalars by tag, settings as hparams."""
    writer = library("tensorboard.summary.writer.event_file_writer", PACKAGE, "a file of TensorBoard")
    event = library("tensorboard.compat.proto.event_pb2", PACKAGE, "a file of TensorBoard").Event
    summary = library("tensorboard.compat.proto.summary_pb2", PACKAGE, "a file of TensorBoard").Summary
    hparams = library("tensorboard.plugins.hparams.summary_v2", PACKAGE, "hparams")
    with files.new_folder(out) as folder:
        for run in runs:
            events = writer.EventFileWriter(str(folder / run.name))
            settings = {name: value for name, value in run.settings.items() if value is not None}
            events.add_event(event(summary=hparams.hparams_pb(settings)))
            for row in run.rows:
                values = [(tag, value) for tag, value in row.items() if tag != "step"]
                logged = summary(value=[summary.Value(tag=tag, simple_value=v) for tag, v in values])
                events.add_event(event(step=row["step"], summary=logged))
            events.close()
