"""A Transformer's kept weights as the library transformers loads them.

Its plain Transformer is, to the last operation, what transformers calls Arcee with exact GELU, and Llama with
SwiGLU, where all gains of the norms are 1. Three things are written otherwise and compute the same:

* The first norm acts on rows of the embedding table, so the table is written normalised; a tied head is then
  a table of its own, the embedding as it is.
* Rotary pairs are (2i, 2i+1) here and (i, i + C/2) there: the rows of W_q and W_k change places.
* W_q, W_k and W_v are one matrix here and three there; all are transposed.

Learned positions are added before the first norm, which no architecture there does.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from isoloss import files
from isoloss.errors import InputError, Refusal
from isoloss.records.store import WEIGHTS, check_file, read_record

Weights = dict[str, NDArray[np.float32]]

EPSILON = float(np.finfo(np.float32).eps)
"""What the norm adds to the mean square, here as there."""


def export_weights(run: Path, out: Path) -> None:
    """``config.json`` and ``model.safetensors`` of the run in folder ``run``, in the new folder ``out``.

    Raises InputError if the run kept no weights, Refusal if transformers has no model that computes the same.
    """
    record = read_record(run)
    if WEIGHTS not in record.files:
        mend = "train it with isoloss run --keep-weights, in a folder of its own"
        raise InputError("kept no weights", where=str(run), mend=mend)
    settings = record.settings
    config = config_of(settings)
    weights = {name: array[0] for name, array in load_file(check_file(run, record, WEIGHTS)).items()}
    with files.new_folder(out) as folder:
        files.write_json(folder / "config.json", config)
        data = save(renamed(weights, settings["shape"]), {"format": "pt"})
        files.write_bytes(folder / "model.safetensors", data)


def config_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a run's settings. Raises Refusal where transformers has no such model."""
    shape = settings["shape"]
    plain = settings["family"] == "transformer"
    if not plain or shape["positions"] != "rotary":
        what = f"{shape['positions']} positions" if plain else settings["family"]
        raise Refusal(
            f"transformers has no model that computes this one ({what})",
            mend="load weights.safetensors into isoloss.models.build_cohort, by the settings in record.json",
        )
    gated = shape["activation"] == "swiglu"
    return {
        "architectures": ["LlamaForCausalLM" if gated else "ArceeForCausalLM"],
        "model_type": "llama" if gated else "arcee",
        "hidden_act": "silu" if gated else "gelu",
        "vocab_size": settings["vocab"],
        "hidden_size": shape["d_model"],
        "intermediate_size": shape["d_ff"],
        "num_hidden_layers": shape["n_layer"],
        "num_attention_heads": shape["n_head"],
        "num_key_value_heads": shape["n_head"],
        "head_dim": shape["d_head"],
        "max_position_embeddings": settings["context"],
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "rms_norm_eps": EPSILON,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": "float32",
    }


def renamed(weights: Weights, shape: Mapping[str, Any]) -> Weights:
    """The same model's weights, by the names and in the layout of transformers."""
    table = weights["vocabulary.tokens.weight"]
    head = weights.get("vocabulary.head.weight")
    gain = np.ones(shape["d_model"], np.float32)
    norm = np.sqrt(np.mean(np.square(table), axis=1, keepdims=True) + np.float32(EPSILON))
    out = {
        "model.embed_tokens.weight": table / norm,
        "lm_head.weight": table if head is None else head.T,
        "model.norm.weight": gain,
    }
    for layer in range(shape["n_layer"]):
        ours, theirs = f"blocks.{layer}.", f"model.layers.{layer}."
        qkv = weights[f"{ours}attention.qkv.weight"].T.reshape(3, shape["n_head"], shape["d_head"], -1)
        halves = [np.concatenate([w[:, 0::2], w[:, 1::2]], axis=1) for w in qkv[:2]]
        for name, array in zip("qkv", [*halves, qkv[2]], strict=True):
            out[f"{theirs}self_attn.{name}_proj.weight"] = array.reshape(-1, shape["d_model"])
        out[f"{theirs}self_attn.o_proj.weight"] = weights[f"{ours}attention.out.weight"].T
        for name in ("gate", "up", "down"):
            if (array := weights.get(f"{ours}feed_forward.{name}.weight")) is not None:
                out[f"{theirs}mlp.{name}_proj.weight"] = array.T
        for name in ("input_layernorm", "post_attention_layernorm"):
            out[f"{theirs}{name}.weight"] = gain
    return {name: np.ascontiguousarray(array) for name, array in out.items()}
