"""The live page kept between starts: drawing forty pictures takes ten seconds, and a class is waiting."""

import hashlib
from contextlib import suppress
from pathlib import Path

from isoloss import files
from isoloss.errors import InputError
from isoloss.report import cache
from isoloss.teach.deck import page


def live_page(results: Path | None, study: Path | None) -> str:
    """``page.build`` for the server, or what it gave when package, results and study were the same.

    The newest page alone is kept, under the user's data folder; a folder that is not writable keeps none.
    Raises InputError for results or a study that cannot be read.
    """
    stored = files.home() / "deck" / f"{key(results, study)}.html"
    with suppress(OSError):  # none yet, or another deck that starts now has put its own there
        return stored.read_text("utf-8")
    html = page.build(results, study, live=True)
    with suppress(OSError, InputError):  # drawn again next time
        files.write_text(stored, html)
        for old in stored.parent.glob("*.html"):
            if old != stored:
                files.remove_file(old)
    return html


def key(results: Path | None, study: Path | None) -> str:
    """sha256 over all that decides the page: the package's own files, the results, the study."""
    total = hashlib.sha256(cache.code().encode())
    for path in sorted([results] if results.is_file() else results.glob("*.json")) if results else []:
        total.update(f"result {path.name}\0{files.sha256(path)}\n".encode())
    total.update(f"study {cache.fingerprint(study) if study is not None else 'shipped'}".encode())
    return total.hexdigest()
