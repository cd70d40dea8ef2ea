"""Trace one head for a sentence, and hold the steps against the model's own attention."""

import numpy as np

from isoloss.teach.attention.head import double, head_of, weights_of
from isoloss.teach.attention.sentence import ids_of
from isoloss.teach.attention.settings import StepsSettings
from isoloss.teach.attention.steps.trace import trace_of
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables

TOLERANCE = 1e-5
"""The model computes in single precision, the steps in double: numbers near 1 then differ by about 1e-7."""


def measure(settings: StepsSettings, report: Report) -> Tables:
    """Tables ``words``, ``matrices`` (every number of every step), ``sums`` and ``check``."""
    words = settings.sentence.split()
    head = head_of(words, settings.d_model, settings.seed)
    report(0.5, "the head has read the sentence")
    trace = trace_of(double(head.x_TD), weights_of(head.attention))
    return {
        "words": [
            {"place": place, "word": word, "token": token}
            for place, (word, token) in enumerate(zip(words, ids_of(words), strict=True), 1)
        ],
        "matrices": [row for name, matrix in trace.items() for row in matrix_rows(name, matrix)],
        "sums": [{"place": place, "value": float(total)} for place, total in enumerate(trace["A"].sum(1), 1)],
        "check": [
            difference("softmax", trace["A"], double(head.weights_TS)),
            difference("output", trace["O"], double(head.output_TD)),
        ],
    }


def difference(what: str, steps: np.ndarray, model: np.ndarray) -> Row:
    """Largest difference between the steps and the model's own numbers; ``n``: how many were compared."""
    return {
        "what": what,
        "value": float(np.abs(steps - model).max()),
        "tolerance": TOLERANCE,
        "n": steps.size,
    }


def matrix_rows(name: str, matrix: np.ndarray) -> list[Row]:
    """Every number of a matrix; rows and columns from 1; null stands for minus infinity."""
    return [
        {"matrix": name, "row": r + 1, "column": c + 1, "value": float(value) if np.isfinite(value) else None}
        for (r, c), value in np.ndenumerate(matrix)
    ]
