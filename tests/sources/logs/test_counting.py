"""Parameters counted from a config, against the modules that transformers builds."""

import json

import pytest

from isoloss.sources.logs.counting import ARCHITECTURES, counts, of_config

SHAPE = {
    "num_hidden_layers": 2,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_attention_heads": 4,
    "vocab_size": 50,
}
GPT2 = {"n_layer": 2, "n_embd": 24, "n_head": 4, "vocab_size": 50, "n_positions": 32}
CONFIGS = [
    ("gpt2", GPT2),
    ("gpt_neox", SHAPE),
    ("gpt_neox", SHAPE | {"tie_word_embeddings": True}),
    ("llama", SHAPE),
    ("llama", SHAPE | {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
    ("llama", SHAPE | {"tie_word_embeddings": True, "head_dim": 8}),
    ("mistral", SHAPE | {"num_key_value_heads": 1}),
    ("arcee", SHAPE),
    ("qwen2", SHAPE | {"num_key_value_heads": 2}),
    ("qwen3", SHAPE | {"head_dim": 8}),
]


def build(kind, values, device="meta"):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device(device):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **values))


@pytest.mark.parametrize(("kind", "values"), CONFIGS)
def test_the_count_is_that_of_the_module(kind, values):
    model = build(kind, values)
    counted = of_config(json.loads(model.config.to_json_string(use_diff=False)))
    assert counted["params_total"] == sum(weight.numel() for weight in model.parameters())
    embedding = {id(model.get_input_embeddings().weight): model.get_input_embeddings().weight}
    embedding[id(model.get_output_embeddings().weight)] = model.get_output_embeddings().weight
    positions = model.transformer.wpe.weight.numel() if kind == "gpt2" else 0
    tables = sum(weight.numel() for weight in embedding.values())
    assert counted["params"] == counted["params_total"] - tables - positions


def test_every_architecture_is_counted_here():
    assert set(ARCHITECTURES) == {kind for kind, _ in CONFIGS}


def test_the_shapes_of_the_weights_count_where_no_config_does(tmp_path):
    build("llama", SHAPE | {"tie_word_embeddings": True}, "cpu").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "of tomorrow"}')
    counted, origin = counts(tmp_path)
    wanted = of_config(SHAPE | {"model_type": "llama", "tie_word_embeddings": True})
    assert {name: wanted[name] for name in counted} == counted
    assert origin.endswith("model.safetensors")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model_type": "llama"},
        SHAPE | {"model_type": ["llama"]},
        {"model_type": "gpt2"} | GPT2 | {"n_embd": -3},
    ],
)
def test_what_does_not_tell_is_not_counted(config):
    assert "params" not in of_config(config)
