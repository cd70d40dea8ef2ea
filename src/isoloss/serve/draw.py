"""The figures and findings of a study as its report has them, by a process of its own.

    python -m isoloss.serve.draw FOLDER PREFIX

prints {"trouble": why there are none, "parts": {id: HTML}} as JSON; every id begins with PREFIX.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoloss.analysis.findings import findings_of
from isoloss.analysis.study import analyse
from isoloss.errors import IsolossError
from isoloss.figures import render
from isoloss.records import load
from isoloss.report.publish import phone_pictures
from isoloss.report.sections import sections
from isoloss.report.templates import fill, inline

KINDER = 10
"""What trains goes first on a busy core."""


def parts(folder: Path, prefix: str) -> dict[str, str]:
    """Findings that have an answer, each chapter's figures, and once for all what is still missing.

    Raises InputError for records that cannot be trusted.
    """
    analysis = analyse(load(folder))
    answered = [finding for finding in findings_of(analysis) if finding.numbers]
    fragments = {"findings": fill("serve/findings.html", id=f"{prefix}-findings", findings=answered)}
    missing: dict[tuple[str, str], list[str]] = {}
    for chapter in sections(analysis):
        for reason in chapter.missing:
            missing.setdefault((reason.what, reason.mend), []).append(chapter.title)
        if chapter.figures:
            figures = [replace(figure, name=f"{prefix}-{figure.name}") for figure in chapter.figures]
            fragments[chapter.anchor] = fill(
                "serve/chapter.html",
                id=f"{prefix}-{chapter.anchor}",
                title=chapter.title,
                figures=figures,
                inline={figure.name: inline(figure, render.svg(figure)) for figure in figures},
                narrow=dict(phone_pictures(figures)),
            )
    fragments["missing"] = fill("serve/missing.html", id=f"{prefix}-missing", missing=missing)
    return {f"{prefix}-{name}": str(html) for name, html in fragments.items()}


def main(folder: str, prefix: str) -> None:
    answer: dict[str, Any] = {"trouble": "", "parts": {}}
    if hasattr(os, "nice"):
        os.nice(KINDER)
    try:
        answer["parts"] = parts(Path(folder), prefix)
    except IsolossError as error:
        answer["trouble"] = str(error)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
