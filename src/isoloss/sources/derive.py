"""Columns that follow from others: each by a rule that the result names."""

import math
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Rule:
    """``text`` says it, "name = ...", and ``value`` does it."""

    text: str
    value: pl.Expr

    @property
    def name(self) -> str:
        return self.text.partition(" ")[0]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it takes, in order."""
        return tuple(dict.fromkeys(self.value.meta.root_names()))


def rules(*, bytes_per_token: float | None = None, tied_embeddings: bool | None = None) -> list[Rule]:
    """The rules in force, the more direct before the less. 6 N D is Kaplan et al. 2020, eq. 2.2.

    Nats against bits per byte only with ``bytes_per_token`` (bytes of text a token, mean over the
    evaluation text); total against non-embedding parameters only with ``tied_embeddings``.
    """
    flops, params, tokens, epochs = (pl.col(name) for name in ("flops", "params", "tokens", "epochs"))
    executed, recurrent, loops = (
        pl.col(name) for name in ("params_executed", "params_recurrent", "recurrence")
    )
    # A stack run r times executes N_once + r N_rec; at r = 1 nothing needs to tell the two apart.
    looped = pl.when(loops > 1).then((executed - params) / (loops - 1)).otherwise(params)
    in_force = [
        Rule("tokens = steps * batch_tokens", pl.col("steps") * pl.col("batch_tokens")),
        Rule("tokens = unique_tokens * epochs", pl.col("unique_tokens") * epochs),
        Rule("tokens = flops / (6 params)", flops / (6 * params)),
        Rule("flops = 6 params tokens", 6 * params * tokens),
        Rule("params = flops / (6 tokens)", flops / (6 * tokens)),
        Rule("batch_tokens = batch_sequences * context", pl.col("batch_sequences") * pl.col("context")),
        Rule(
            "unique_tokens = tokens / epochs",
            pl.when(epochs.is_finite() & (epochs > 0)).then(tokens / epochs),
        ),
        Rule("params_recurrent = (params_executed - params) / (recurrence - 1)", looped),
        Rule("params_once = params - params_recurrent", (params - recurrent).clip(0)),
    ]
    if tied_embeddings is not None:
        tables = 1 if tied_embeddings else 2
        embedding = tables * pl.col("vocab") * pl.col("d_model")
        in_force += [
            Rule(f"params_total = params + {tables} vocab d_model", params + embedding),
            Rule(f"params = params_total - {tables} vocab d_model", pl.col("params_total") - embedding),
        ]
    if bytes_per_token is not None:
        nats = math.log(2) * bytes_per_token
        bits = f"ln 2 * {bytes_per_token:g}"
        in_force += [
            Rule(f"loss = bits_per_byte * {bits}", pl.col("bits_per_byte") * nats),
            Rule(f"bits_per_byte = loss / ({bits})", pl.col("loss") / nats),
        ]
    return in_force


def derive(
    name: str, frame: pl.DataFrame, in_force: list[Rule], trail: frozenset[str] = frozenset()
) -> tuple[pl.DataFrame, dict[str, str]] | None:
    """``frame`` with the column ``name``, and the rules that made it and what it needed; None if none can."""
    if name in frame.columns:
        return frame, {}
    for rule in in_force:
        if rule.name != name or trail & {name, *rule.needs}:
            continue
        applied: dict[str, str] = {}
        grown = frame
        for need in rule.needs:
            step = derive(need, grown, in_force, trail | {name})
            if step is None:
                break
            grown, more = step
            applied |= more
        else:
            return grown.with_columns(rule.value.alias(name)), applied | {name: rule.text}
    return None
