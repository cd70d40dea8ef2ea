"""Parameters counted from a model's ``config.json``, or from the shapes in its weights.

layer = d (q + 2 kv) + q d + m d d_ff + biases + norms     q = heads d_head, kv = key-value heads d_head
embedding = vocab d (twice if untied) + positions d        m = 3 with a gate, 2 without
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoloss.sources.logs.logged import object_in
from isoloss.sources.read import FAILURES

_KEYS = {
    "n_layer": ("num_hidden_layers", "n_layer"),
    "d_model": ("hidden_size", "n_embd"),
    "d_ff": ("intermediate_size", "n_inner"),
    "n_head": ("num_attention_heads", "n_head"),
    "vocab": ("vocab_size",),
    "context": ("max_position_embeddings", "n_positions"),
}
WITH_HEAD = "params_with_head"
"""All but the tables that turn tokens and positions into vectors: what Trainer multiplies with."""
_EMBEDDINGS = ("embed_tokens", "embed_in", "embed_out", "wte", "wpe", "lm_head", "embeddings")
_NO_PARAMETERS = ("attn.bias", "attention.bias", "masked_bias", "inv_freq")


@dataclass(frozen=True)
class Architecture:
    """``norm``: numbers a norm has for each width. ``qkv_bias``: of queries, keys and values."""

    gated: bool
    norm: int
    bias: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    positions: bool = False
    tied: bool = False


ARCHITECTURES = {
    "gpt2": Architecture(gated=False, norm=2, bias=True, qkv_bias=True, positions=True, tied=True),
    "gpt_neox": Architecture(gated=False, norm=2, bias=True, qkv_bias=True),
    "llama": Architecture(gated=True, norm=1),
    "mistral": Architecture(gated=True, norm=1),
    "arcee": Architecture(gated=False, norm=1),
    "qwen2": Architecture(gated=True, norm=1, qkv_bias=True),
    "qwen3": Architecture(gated=True, norm=1, qk_norm=True),
}
"""By ``model_type``; a test holds each against the module that transformers builds."""


def counts(*folders: Path) -> tuple[dict[str, Any], str]:
    """Shape and parameters of the model in the first folder that tells, and the file that told them."""
    for folder in folders:
        if (file := folder / "config.json").is_file() and (sizes := of_config(object_in(file))):
            return sizes, str(file)
    for folder in folders:
        if (file := folder / "model.safetensors").is_file() and (sizes := _of_weights(file)):
            return sizes, str(file)
    return {}, ""


def of_config(config: dict[str, Any]) -> dict[str, Any]:
    """n_layer, d_model, ... as the config has them, and params and params_total of a known architecture."""
    sizes = {ours: config[key] for ours, keys in _KEYS.items() for key in keys if _whole(config.get(key))}
    kind = ARCHITECTURES.get(str(config.get("model_type")))
    if kind is None or not {"n_layer", "d_model", "n_head", "vocab"} <= sizes.keys():
        return sizes
    d, heads = sizes["d_model"], sizes["n_head"]
    d_ff = sizes.setdefault("d_ff", 4 * d)
    d_head = config["head_dim"] if _whole(config.get("head_dim")) else d // heads
    kv_heads = config["num_key_value_heads"] if _whole(config.get("num_key_value_heads")) else heads
    q, kv = heads * d_head, kv_heads * d_head
    qkv_bias = kind.qkv_bias or config.get("attention_bias") is True
    out_bias = kind.bias or config.get("attention_bias") is True
    mlp_bias = kind.bias or config.get("mlp_bias") is True
    up = 2 if kind.gated else 1
    layer = d * (q + 2 * kv) + q * d + (up + 1) * d * d_ff + 2 * kind.norm * d
    layer += qkv_bias * (q + 2 * kv) + out_bias * d + mlp_bias * (up * d_ff + d) + kind.qk_norm * 2 * d_head
    params = sizes["n_layer"] * layer + kind.norm * d
    tied = config.get("tie_word_embeddings", kind.tied) is True
    tables = sizes["vocab"] * (1 if tied else 2) + kind.positions * sizes.get("context", 1024)
    head = 0 if tied else sizes["vocab"] * d
    counted = {"params": params, "params_total": params + tables * d, WITH_HEAD: params + head}
    return sizes | counted | {"family": config["model_type"]}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40


def _of_weights(file: Path) -> dict[str, Any]:
    """By the shapes in the header; no number of the weights is read."""
    from safetensors import safe_open

    total = embedding = 0
    try:
        with safe_open(file, framework="numpy") as weights:
            for name in weights.keys():  # noqa: SIM118 - the library's own object, no mapping
                if name.endswith(_NO_PARAMETERS):
                    continue
                size = 1
                for length in weights.get_slice(name).get_shape():
                    size *= length
                total += size
                embedding += size if any(part in name for part in _EMBEDDINGS) else 0
    except FAILURES:
        return {}
    return {"params": total - embedding, "params_total": total} if total else {}
