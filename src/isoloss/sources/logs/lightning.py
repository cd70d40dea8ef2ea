"""Lightning's CSVLogger: ``metrics.csv`` a run, its settings in ``hparams.yaml`` beside it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.sources.logs.logged import LoggedRun, files_named, run_name
from isoloss.sources.read import read

_LINE = re.compile(r"( *)([\w./-]+): *(.*)")


def runs(source: str) -> Iterator[LoggedRun]:
    """One run a ``metrics.csv``."""
    root = Path(source)
    for file in files_named(root, "metrics.csv", "metrics.csv"):
        name = run_name(file.parent, file.parent if root.is_file() else root)
        yield LoggedRun(name, str(file), read(file).to_dicts(), read_hparams(file))


def read_hparams(file: Path) -> dict[str, Any]:
    """The plain settings in ``hparams.yaml`` beside ``file``, if any.

    Names and single values, by indentation; lists, tags and anchors, which could ask for objects, are passed
    over, so that no loader of such files is needed.
    """
    path = file.parent / "hparams.yaml"
    if not path.is_file():
        return {}
    settings: dict[str, Any] = {}
    outer: list[tuple[int, str]] = []
    for line in files.decode(files.read_bytes(path), path).splitlines():
        if not (match := _LINE.fullmatch(line.rstrip())):
            continue
        depth, name, text = len(match[1]), match[2], match[3]
        while outer and outer[-1][0] >= depth:
            outer.pop()
        if not text:
            outer.append((depth, name))
        elif (value := value_of(text)) is not None:
            settings[".".join([*(above for _, above in outer), name])] = value
    return settings


def value_of(text: str) -> str | int | float | bool | None:
    """'1e-3' -> 0.001, 'true' -> True; None for what is no single plain value."""
    text = text.strip()
    if not text or text[0] in "!&*[{|>" or text in ("null", "~"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")
