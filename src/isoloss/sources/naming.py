"""Which column is which: well-known names, each exact, and never a choice between two."""

from collections.abc import Iterable, Mapping

# Our name -> names of others, in lower case with '_' for spaces and hyphens; single letters as they are.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "params": (
        "params", "N", "parameters", "n_params", "num_params", "n_parameters", "num_parameters",
        "parameter_count", "param_count", "model_size",
    ),
    "params_total": ("params_total", "total_params", "total_parameters"),
    "params_executed": ("params_executed",),
    "tokens": (
        "tokens", "D", "n_tokens", "num_tokens", "training_tokens", "train_tokens", "tokens_seen",
    ),
    "unique_tokens": ("unique_tokens",),
    "flops": ("flops", "flop", "C", "training_flop", "training_flops", "total_flops", "budget"),
    "loss": ("loss", "L", "val_loss", "validation_loss", "eval_loss", "test_loss", "final_val_loss"),
    "bits_per_byte": ("bits_per_byte", "bpb", "val_bpb"),
    "recurrence": ("recurrence",),
    "position": ("position",),
    "run_id": ("run_id",),
    "family": ("family", "arch", "architecture"),
    "dataset": ("dataset", "corpus"),
    "tokenizer": ("tokenizer",),
    "vocab": ("vocab", "vocab_size", "vocabulary"),
    "context": ("context", "context_length", "seq_len", "sequence_length"),
    "n_layer": ("n_layer", "n_layers", "num_layers"),
    "d_model": ("d_model", "hidden_size", "hidden_dim", "embedding_dim"),
    "d_ff": ("d_ff", "d_ffn", "intermediate_size", "ffn_dim"),
    "n_head": ("n_head", "n_heads", "num_heads"),
    "learning_rate": ("learning_rate", "lr"),
    "batch_tokens": ("batch_tokens",),
    "seed": ("seed",),
    "steps": ("steps", "step", "last_step", "num_steps", "train_steps"),
    "planned_steps": ("planned_steps",),
    "warmup_steps": ("warmup_steps",),
    "warmup_tokens": ("warmup_tokens",),
    "cooled": ("cooled",),
    "status": ("status", "state"),
}  # fmt: skip

# What holds labels, even where every row must have one; the other known names hold numbers.
LABELS = frozenset({
    "family", "dataset", "tokenizer", "cooled", "status", "cluster", "run_id", "holdout",
})  # fmt: skip
NUMBERS = (frozenset(SYNONYMS) | {"epochs", "batch_sequences"}) - LABELS

# Other counts of the same parameters: which one is used is said.
PARAMETER_COUNTS = frozenset({
    *SYNONYMS["params"], *SYNONYMS["params_total"], "params_executed", "params_no_embed",
    "params_non_embedding", "params_with_embedding", "non_embedding_params", "physical_params",
    "active_params",
})  # fmt: skip


def plain(name: str) -> str:
    """'Training FLOP' -> 'training_flop'; 'N' stays 'N'."""
    name = name.strip()
    return name if len(name) == 1 else name.lower().replace(" ", "_").replace("-", "_")


def candidates(name: str, columns: Iterable[str]) -> list[str]:
    """The ``columns`` that are well-known names of our ``name``."""
    return [column for column in columns if plain(column) in SYNONYMS.get(name, (name,))]


def other_counts(columns: Iterable[str], column_of: Mapping[str, str]) -> list[str]:
    """Columns that count parameters too, and are not among those taken."""
    used = set(column_of.values())
    return [column for column in columns if plain(column) in PARAMETER_COUNTS and column not in used]
