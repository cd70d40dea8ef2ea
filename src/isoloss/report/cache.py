"""Is a written report still true? Beside it, report.json holds its findings and what it was made of."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.analysis.findings import Finding
from isoloss.errors import InputError

NAME = "report.json"
SUFFIXES = (".svg", ".png", ".pdf", ".csv")
PACKAGE = Path(__file__).parent.parent
SOURCES = (".py", ".toml", ".html", ".css", ".js", ".json", ".txt")


def fingerprint(folder: Path) -> str:
    """sha256 over all that a report reads of the study, and the code that reads it."""
    total = hashlib.sha256(code().encode())
    for pattern in ("study.json", "runs/*/*.json", "runs/*/*.parquet"):
        for path in sorted(folder.glob(pattern)):
            total.update(f"{path.relative_to(folder)}\0{files.sha256(path)}\n".encode())
    return total.hexdigest()


@cache
def code() -> str:
    """sha256 over the package's sources, texts and templates: a changed one may change a verdict."""
    return code_in(PACKAGE)


def code_in(package: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in SOURCES):
        total.update(f"{path.relative_to(package)}\0{files.sha256(path)}\n".encode())
    return total.hexdigest()


def store(out: Path, made_of: str, findings: Sequence[Finding], figures: Sequence[str]) -> None:
    value = {
        "made_of": made_of,
        "findings": [asdict(finding) for finding in findings],
        "figures": list(figures),
    }
    files.write_json(out / NAME, value)


def stored(out: Path, made_of: str) -> tuple[tuple[Finding, ...], tuple[str, ...]] | None:
    """Findings and figures of the report in ``out`` if it was made of the same; else None."""
    path = out / NAME
    if not path.is_file() or not (out / "index.html").is_file():
        return None
    try:
        value: dict[str, Any] = files.read_json(path)
        if value["made_of"] != made_of:
            return None
        names = [f"{name}{end}" for name in value["figures"] for end in SUFFIXES]
        if not all((out / "figures" / name).is_file() for name in names):
            return None
        findings: list[dict[str, Any]] = value["findings"]
        restored = [Finding(**finding | {"caveats": tuple(finding["caveats"])}) for finding in findings]
        return tuple(restored), tuple(value["figures"])
    except (InputError, KeyError, TypeError):
        return None  # a report.json that makes no sense is written anew
