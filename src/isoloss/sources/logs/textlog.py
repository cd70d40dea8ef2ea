"""Text logs of common trainers, each by a named pattern (``textlog.toml``).

A number in a log is rounded as the trainer printed it. Nothing else of a log is read, and no pattern comes
from outside.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from isoloss import files
from isoloss.amounts import number
from isoloss.errors import InputError
from isoloss.sources.logs.logged import LoggedRun, files_named

PATTERNS = files.shipped_toml("isoloss.sources.logs", "textlog.toml")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_ENDINGS = (".log", ".txt", ".out")
_NO_NAME = ("log", "train", "main", "output", "out", "stdout")
_LONGEST = 2000


def runs(source: str, pattern: str | None = None) -> Iterator[LoggedRun]:
    """One run a file (.log, .txt, .out) of which ``pattern``, or else the one that finds most, finds a loss.

    Raises InputError for a pattern that is not there, and where no file has a line of any.
    """
    if pattern is not None and pattern not in PATTERNS:
        raise InputError(f"there is no pattern {pattern!r}", mend=f"choose one of {', '.join(PATTERNS)}")
    root, matched = Path(source), False
    for file in files_named(root, "*", "text log"):
        if file != root and file.suffix not in _ENDINGS:
            continue
        text = files.decode(files.read_bytes(file), file)
        lines = [_COLOUR.sub("", line[:_LONGEST]).rstrip() for line in text.split("\n")]
        run = _run(file, root, lines, [pattern] if pattern else list(PATTERNS))
        if run is not None:
            matched = True
            yield run
    if not matched:
        names = pattern or ", ".join(PATTERNS)
        mend = (
            "write a table with a row a run (or an evaluation) and the columns params, tokens and loss in "
            "nats per token, also run_id and step; read it with isoloss import csv, or isoloss fit as it is"
        )
        raise InputError(f"has no line of a loss as {names} print it", where=source, mend=mend)


def _run(file: Path, root: Path, lines: list[str], names: list[str]) -> LoggedRun | None:
    best: tuple[str, list[dict[str, float]]] = ("", [])
    for name in names:
        rows = list(_matches(lines, PATTERNS[name]["line"]))
        if len(rows) > len(best[1]):
            best = (name, rows)
    name, rows = best
    if not rows:
        return None
    settings = dict(item for row in _matches(lines, PATTERNS[name]["settings"]) for item in row.items())
    place = file.parent if file.stem.lower() in _NO_NAME else file.with_suffix("")
    label = place.relative_to(root).as_posix() if root in place.parents else place.resolve().name
    return LoggedRun(label, f"{file}, as {name} prints it", rows, settings)


def _matches(lines: list[str], patterns: list[str]) -> Iterator[dict[str, float]]:
    compiled = [re.compile(pattern) for pattern in patterns]
    for line in lines:
        for pattern in compiled:
            if match := pattern.search(line):
                yield {name: _number(text) for name, text in match.groupdict().items()}


def _number(text: str) -> float:
    """As printed; NaN where a trainer printed nan, or what is no number."""
    try:
        return number(text.rstrip("."))
    except InputError:
        return float("nan")
