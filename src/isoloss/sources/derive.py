"""Columns that follow from others: each by a rule that the result names."""

import math
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Rule:
    name: str
    needs: tuple[str, ...]
    text: str
    value: pl.Expr


def rules(*, bytes_per_token: float | None = None, tied_embeddings: bool | None = None) -> list[Rule]:
    """The rules in force, the more direct before the less. 6 N D is Kaplan et al. 2020, eq. 2.2.

    Nats against bits per byte only with ``bytes_per_token`` (bytes of text a token, mean over the
    evaluation text); total against non-embedding parameters only with ``tied_embeddings``.
    """
    flops, params, tokens = pl.col("flops"), pl.col("params"), pl.col("tokens")
    loops = pl.col("recurrence")
    # A stack run r times executes N_once + r N_rec; at r = 1 nothing needs to tell the two apart.
    looped = pl.when(loops > 1).then((pl.col("params_executed") - params) / (loops - 1)).otherwise(params)
    in_force = [
        Rule("tokens", ("steps", "batch_tokens"), "tokens = steps * batch_tokens",
             pl.col("steps") * pl.col("batch_tokens")),
        Rule("tokens", ("unique_tokens", "epochs"), "tokens = unique_tokens * epochs",
             pl.col("unique_tokens") * pl.col("epochs")),
        Rule("tokens", ("flops", "params"), "tokens = flops / (6 params)", flops / (6 * params)),
        Rule("flops", ("params", "tokens"), "flops = 6 params tokens", 6 * params * tokens),
        Rule("params", ("flops", "tokens"), "params = flops / (6 tokens)", flops / (6 * tokens)),
        Rule("batch_tokens", ("batch_sequences", "context"), "batch_tokens = batch_sequences * context",
             pl.col("batch_sequences") * pl.col("context")),
        Rule("unique_tokens", ("tokens", "epochs"), "unique_tokens = tokens / epochs",
             tokens / pl.col("epochs")),
        Rule("params_recurrent", ("params", "params_executed", "recurrence"),
             "params_recurrent = (params_executed - params) / (recurrence - 1)", looped),
        Rule("params_once", ("params", "params_recurrent"), "params_once = params - params_recurrent",
             (params - pl.col("params_recurrent")).clip(0)),
    ]  # fmt: skip
    if tied_embeddings is not None:
        tables = 1 if tied_embeddings else 2
        embedding = tables * pl.col("vocab") * pl.col("d_model")
        text = f"{tables} vocab d_model"
        in_force += [
            Rule("params_total", ("params", "vocab", "d_model"), f"params_total = params + {text}",
                 params + embedding),
            Rule("params", ("params_total", "vocab", "d_model"), f"params = params_total - {text}",
                 pl.col("params_total") - embedding),
        ]  # fmt: skip
    if bytes_per_token is not None:
        nats = math.log(2) * bytes_per_token
        in_force += [
            Rule("loss", ("bits_per_byte",), f"loss = bits_per_byte * ln 2 * {bytes_per_token:g}",
                 pl.col("bits_per_byte") * nats),
            Rule("bits_per_byte", ("loss",), f"bits_per_byte = loss / (ln 2 * {bytes_per_token:g})",
                 pl.col("loss") / nats),
        ]  # fmt: skip
    return in_force


def derive(
    name: str, frame: pl.DataFrame, known: list[Rule], trail: frozenset[str] = frozenset()
) -> tuple[pl.DataFrame, dict[str, str]] | None:
    """``frame`` with the column ``name``, and the rules that made it and what it needed; None if none can."""
    if name in frame.columns:
        return frame, {}
    for rule in known:
        if rule.name != name or trail & {name, *rule.needs}:
            continue
        applied: dict[str, str] = {}
        grown = frame
        for need in rule.needs:
            step = derive(need, grown, known, trail | {name})
            if step is None:
                break
            grown, more = step
            applied |= more
        else:
            return grown.with_columns(rule.value.alias(name)), applied | {name: rule.text}
    return None
