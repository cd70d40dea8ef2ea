"""Peak memory of a worker that trains one run, beside what `--dry-run` says.

    python benchmarks/memory.py            all; ten minutes of one core
    python benchmarks/memory.py loops      those whose names hold the word

Linux only: the peak is what the kernel noted of the worker (VmHWM).
"""

import io
import json
import os
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from isoloss import files
from isoloss.corpus import library
from isoloss.studies import launch

SHAPES = {
    "transformer, small": ("n_layer = 2, d_model = 24, n_head = 1", 1024, 128, 4),
    "transformer, deep, wide": ("n_layer = 6, d_model = 192, n_head = 6", 4096, 256, 16),
    "transformer, 4 layers, wide": ("n_layer = 4, d_model = 192, n_head = 6", 4096, 256, 16),
    "transformer, 512 wide": ("n_layer = 4, d_model = 512, n_head = 8", 4096, 512, 8),
    "transformer, deep, narrow": ("n_layer = 8, d_model = 32, n_head = 2", 1024, 128, 4),
    "transformer, 12 layers, narrow": ("n_layer = 12, d_model = 64, n_head = 2", 1024, 256, 16),
    "transformer, one layer, wide": ("n_layer = 1, d_model = 384, n_head = 6", 1024, 128, 16),
    "transformer, large vocabulary": ("n_layer = 2, d_model = 64, n_head = 2", 8192, 128, 8),
    "transformer, long context": ("n_layer = 2, d_model = 64, n_head = 2", 512, 1024, 4),
    "transformer, gated": (
        'n_layer = 6, d_model = 128, n_head = 4, activation = "swiglu", d_ff = 512',
        1024,
        256,
        16,
    ),
    "transformer, small d_ff": ("n_layer = 8, d_model = 128, n_head = 4, d_ff = 128", 1024, 256, 16),
    "lstm, small": ("n_layer = 1, d_model = 64", 4096, 128, 4),
    "lstm, wide": ("n_layer = 2, d_model = 256", 1024, 128, 16),
    "lstm, deep": ("n_layer = 8, d_model = 64", 1024, 256, 16),
    "lstm, 4 layers": ("n_layer = 4, d_model = 156", 4096, 256, 16),
    "looped, 4 loops": ("n_layer = 2, d_model = 96, n_head = 3, recurrence = 4", 1024, 256, 16),
    "looped, 4 loops, wide": ("n_layer = 2, d_model = 256, n_head = 4, recurrence = 4", 2048, 256, 16),
    "looped, 8 loops": ("n_layer = 1, d_model = 64, n_head = 2, recurrence = 8", 1024, 128, 16),
    "looped, 8 loops, one exit": (
        'n_layer = 2, d_model = 64, n_head = 2, recurrence = 8, exits = "last"',
        1024,
        256,
        16,
    ),
}
"""Family and name: shape, vocabulary, context and sequences of a step. The constants were fitted to most."""

STUDY = """
name = "memory"

[scale.mini]
vocabulary = {vocab}
context = {context}
batch_size = {batch}
tokens = [{tokens}]
evaluation = {{ windows = 32, final_windows = 32, trace_windows = 2, targets = 64 }}

[[scale.mini.models]]
family = "{family}"
shapes = [{{ {shape} }}]
"""


class Watch(threading.Thread):
    """``peak``: bytes, the largest VmHWM of any process that this one's fork server has started so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.ended = 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.05):
            for status in Path("/proc").glob("[0-9]*/status"):
                with suppress(OSError, KeyError, ValueError):  # it has ended
                    self.look(fields_of(status))

    def look(self, fields: dict[str, str]) -> None:
        server = Path("/proc", fields["PPid"].strip())
        if b"forkserver" not in (server / "cmdline").read_bytes():
            return
        if int(fields_of(server / "status")["PPid"]) == os.getpid():
            self.peak = max(self.peak, 1024.0 * int(fields["VmHWM"].split()[0]))


def fields_of(status: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)


def measure(name: str, shape: str, vocab: int, context: int, batch: int) -> dict[str, object]:
    library.tokenize("starter", vocab)
    family, tokens = name.split(",")[0], 10 * context * batch
    sizes = {"vocab": vocab, "context": context, "batch": batch, "tokens": tokens}
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "memory.toml"
        files.write_text(study, STUDY.format(family=family, shape=shape, **sizes))
        (run,) = launch.dry_run(str(study), "mini", []).runs
        watch = Watch()
        watch.start()
        quiet = Console(file=io.StringIO())
        launch.launch(str(study), out=Path(folder) / "out", workers=1, console=quiet)
        watch.ended.set()
        watch.join()
    said = {"said_mb": round(run.memory_bytes / 1e6), "peak_mb": round(watch.peak / 1e6)}
    return {"run": name, **said, "ratio": round(run.memory_bytes / watch.peak, 3)}


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, sizes in SHAPES.items():
        if word in name:
            print(json.dumps(measure(name, *sizes)), flush=True)


if __name__ == "__main__":
    main()
