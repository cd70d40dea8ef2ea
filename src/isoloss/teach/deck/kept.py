"""The live page kept between starts: drawing forty pictures takes ten seconds, and a class is waiting."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.report import cache
from isoloss.teach.deck import page

SOURCES = (".py", ".html", ".css", ".js", ".json", ".toml", ".txt")


def live_page(results: Path | None, study: Path | None) -> str:
    """``page.build`` for the server, or what it gave when package, results and study were the same.

    The newest page alone is kept, under the user's data folder; a folder that is not writable keeps none.
    Raises InputError for results or a study that cannot be read.
    """
    place = files.home() / "deck" / f"{key(results, study)}.html"
    with suppress(OSError):  # none yet, or another deck that starts now has put its own there
        return place.read_text("utf-8")
    html = page.build(results, study, live=True)
    try:
        files.write_text(place, html)
        for old in place.parent.glob("*.html"):
            if old != place:
                files.remove_file(old)
    except OSError:
        pass  # drawn again next time
    return html


def key(results: Path | None, study: Path | None) -> str:
    """sha256 over all that decides the page: the package's own files, the results, the study."""
    total = hashlib.sha256()
    for name, data in _read(resources.files("isoloss")):
        total.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    for path in sorted(results.glob("*.json")) if results is not None else []:
        total.update(f"result {path.name}\0{files.sha256(path)}\n".encode())
    total.update(f"study {cache.fingerprint(study) if study is not None else 'shipped'}".encode())
    return total.hexdigest()


def _read(folder: Any, before: str = "") -> Iterator[tuple[str, bytes]]:
    for part in sorted(folder.iterdir(), key=lambda part: part.name):
        if part.is_dir():
            yield from _read(part, f"{before}{part.name}/")
        elif part.name.endswith(SOURCES):
            yield before + part.name, part.read_bytes()
