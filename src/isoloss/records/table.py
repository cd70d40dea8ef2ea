"""The loss table: one row per run and evaluation, the columns every later stage and every outsider reads.

Contract columns: run_id, study, family, params, params_total, params_executed, tokens, flops_6nd,
flops_exact, loss, loss_se, bits_per_byte, n_layer, d_model, d_ff, n_head, recurrence, context, vocab,
batch_tokens, learning_rate, seed, step, cooled, status. Beside them: label, reason, diverged_step, and for
models with exits loss_expected, entropy, loss_total.

A planned run that left no evaluation has one row with null losses and its status, never 0 and never absent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isoloss.records.schema import Evaluation, Record

COLUMNS: dict[str, Any] = {
    "run_id": pl.String,
    "study": pl.String,
    "family": pl.String,
    "label": pl.String,
    "params": pl.Int64,
    "params_total": pl.Int64,
    "params_executed": pl.Int64,
    "tokens": pl.Int64,
    "flops_6nd": pl.Float64,
    "flops_exact": pl.Float64,
    "loss": pl.Float64,
    "loss_se": pl.Float64,
    "bits_per_byte": pl.Float64,
    "n_layer": pl.Int64,
    "d_model": pl.Int64,
    "d_ff": pl.Int64,
    "n_head": pl.Int64,
    "recurrence": pl.Int64,
    "context": pl.Int64,
    "vocab": pl.Int64,
    "batch_tokens": pl.Int64,
    "learning_rate": pl.Float64,
    "seed": pl.Int64,
    "step": pl.Int64,
    "cooled": pl.Boolean,
    "status": pl.String,
    "loss_expected": pl.Float64,
    "entropy": pl.Float64,
    "loss_total": pl.Float64,
    "diverged_step": pl.Int64,
    "reason": pl.String,
}


def loss_table(
    plan: Mapping[str, Any], records: Sequence[Record], failures: Mapping[str, Mapping[str, Any]]
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    recorded = {record.run_id: record for record in records}
    for run in plan["runs"]:
        row = run_columns(plan["study"], run)
        if record := recorded.get(run["run_id"]):
            row |= {"status": record.status, "reason": record.reason, "diverged_step": record.diverged_step}
            rows += [row | evaluation_columns(record, e) for e in record.evaluations] or [row]
        else:
            failure = failures.get(run["run_id"], {})
            rows.append(row | {"status": "failed" if failure else "running", "reason": failure.get("reason")})
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows], schema=COLUMNS)


def run_columns(study: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run as its study's plan or its record has it: what holds before any evaluation."""
    settings, counts, shape = run["settings"], run["counts"], run["settings"]["shape"]
    return {
        "run_id": run["run_id"],
        "study": study,
        "label": run["label"],
        **{name: settings[name] for name in ("family", "context", "vocab", "learning_rate", "seed")},
        **{name: counts[name] for name in ("params", "params_total", "params_executed")},
        **{name: shape.get(name) for name in ("n_layer", "d_model", "d_ff", "n_head")},
        "recurrence": shape.get("recurrence", 1),
        "batch_tokens": settings["batch_size"] * settings["context"],
    }


def evaluation_columns(record: Record, evaluation: Evaluation) -> dict[str, Any]:
    names = ("step", "tokens", "cooled", "loss", "loss_se", "bits_per_byte", "entropy")
    return {
        **{name: getattr(evaluation, name) for name in names},
        "flops_6nd": record.counts.flops_6nd_per_token * evaluation.tokens,
        "flops_exact": record.counts.flops_exact_per_token * evaluation.tokens,
        "loss_expected": evaluation.expected,
        "loss_total": evaluation.total,
    }
