"""Trace one head for a sentence, and hold the steps against the model's own attention."""

import numpy as np

from isoloss.teach.attention.head import double, head_of, weights_of
from isoloss.teach.attention.sentence import ids_of, words_of
from isoloss.teach.attention.settings import StepsSettings
from isoloss.teach.attention.steps.trace import Trace, trace_of
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables

TOLERANCE = 1e-5
"""The model computes in single precision, the steps in double: numbers near 1 then differ by about 1e-7."""


def measure(settings: StepsSettings, report: Report) -> Tables:
    """Tables ``words``, ``matrices`` (every number of every step), ``sums`` and ``check``."""
    words = words_of(settings.sentence)
    head = head_of(words, settings.d_model, settings.seed)
    report(0.5, "the head has read the sentence")
    trace = trace_of(double(head.x_TD), weights_of(head.attention))
    return {
        "words": [
            {"place": place, "word": word, "token": token}
            for place, (word, token) in enumerate(zip(words, ids_of(words), strict=True), 1)
        ],
        "matrices": matrix_rows(trace),
        "sums": [
            {"place": place, "value": float(total)} for place, total in enumerate(trace.softmax_TS.sum(1), 1)
        ],
        "check": [
            difference("softmax", trace.softmax_TS, double(head.weights_TS)),
            difference("output", trace.output_TD, double(head.output_TD)),
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


def matrix_rows(trace: Trace) -> list[Row]:
    """Every matrix by name; rows and columns from 1; null stands for minus infinity."""
    named = {
        "X": trace.x_TD,
        "W_q": trace.weights.q_DC,
        "W_k": trace.weights.k_DC,
        "W_v": trace.weights.v_DC,
        "Q": trace.q_TC,
        "K": trace.k_SC,
        "V": trace.v_SC,
        "S": trace.score_TS,
        "M": trace.mask_TS,
        "S + M": trace.masked_TS,
        "A": trace.softmax_TS,
        **{f"Z {place}": weighted_SC for place, weighted_SC in enumerate(trace.weighted_TSC, 1)},
        "Y": trace.mixed_TC,
        "W_o": trace.weights.o_CD,
        "O": trace.output_TD,
    }
    return [
        {"matrix": name, "row": r + 1, "column": c + 1, "value": float(value) if np.isfinite(value) else None}
        for name, matrix in named.items()
        for (r, c), value in zip(np.ndindex(matrix.shape), matrix.ravel(), strict=True)
    ]
