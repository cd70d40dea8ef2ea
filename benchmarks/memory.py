"""Peak memory of a worker that trains one run, beside what `--dry-run` says.

    python benchmarks/memory.py

Linux only: the peak is what the kernel noted of the worker (VmHWM).
"""

import io
import json
import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from isoloss import files
from isoloss.corpus import library
from isoloss.studies import launch

SHAPES = {
    "transformer, small": ("transformer", "{ n_layer = 2, d_model = 24, n_head = 1 }", 1024, 128, 4),
    "transformer, deep": ("transformer", "{ n_layer = 6, d_model = 192, n_head = 6 }", 4096, 256, 16),
    "transformer, shallow": ("transformer", "{ n_layer = 4, d_model = 192, n_head = 6 }", 4096, 256, 16),
    "transformer, wide": ("transformer", "{ n_layer = 4, d_model = 512, n_head = 8 }", 4096, 512, 8),
    "lstm, deep": ("lstm", "{ n_layer = 4, d_model = 156 }", 4096, 256, 16),
    "looped, wide": (
        "looped",
        "{ n_layer = 2, d_model = 256, n_head = 4, recurrence = 4 }",
        2048,
        256,
        16,
    ),
    "looped": ("looped", "{ n_layer = 2, d_model = 96, n_head = 3, recurrence = 4 }", 1024, 256, 16),
}

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
shapes = [{shape}]
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


def main() -> None:
    for name, (family, shape, vocab, context, batch) in SHAPES.items():
        library.tokenize("starter", vocab)
        with tempfile.TemporaryDirectory() as folder:
            tokens = 10 * context * batch
            text = STUDY.format(
                family=family, shape=shape, vocab=vocab, context=context, batch=batch, tokens=tokens
            )
            study = Path(folder) / "memory.toml"
            files.write_text(study, text)
            (run,) = launch.dry_run(str(study), "mini", []).runs
            watch = Watch()
            watch.start()
            launch.launch(
                str(study), out=Path(folder) / "out", workers=1, console=Console(file=io.StringIO())
            )
            watch.ended.set()
            watch.join()
            said = {"said_mb": round(run.memory_bytes / 1e6), "peak_mb": round(watch.peak / 1e6)}
            print(
                json.dumps({"run": name, **said, "ratio": round(run.memory_bytes / watch.peak, 3)}),
                flush=True,
            )


if __name__ == "__main__":
    main()
