"""Exported weights give the logits of the model that was trained."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoloss.errors import InputError, Refusal
from isoloss.models import build_cohort, family, shape_of
from isoloss.records import weights
from isoloss.records.weights import config_of, export_weights, renamed

VOCAB, CONTEXT = 61, 24
SHAPE = {"n_layer": 2, "d_model": 16, "n_head": 2, "d_head": 6, "d_ff": 40}


def trained(**changes):
    """Settings, a model of them with weights far from their start, and those without the member axis."""
    shape = shape_of("transformer", SHAPE | changes)
    model = build_cohort(family("transformer"), shape, VOCAB, CONTEXT, [3])
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0).add_(0.1 * torch.randn(weight.shape))
    settings = {"family": "transformer", "shape": shape.model_dump(), "vocab": VOCAB, "context": CONTEXT}
    return settings, model, {name: w.detach()[0].numpy() for name, w in model.named_parameters()}


def theirs(folder, settings, arrays):
    from transformers import AutoModelForCausalLM

    (folder / "config.json").write_text(json.dumps(config_of(settings)))
    tensors = {name: torch.from_numpy(array) for name, array in renamed(arrays, settings["shape"]).items()}
    save_file(
        {name: t.clone() for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_logits_are_those_of_the_model(tmp_path, activation, tied):
    settings, model, arrays = trained(activation=activation, tied=tied)
    x_BT = torch.randint(0, VOCAB, (3, CONTEXT))
    with torch.no_grad():
        ours = model(x_BT[None]).logits[0][0]
        same = theirs(tmp_path, settings, arrays)(x_BT).logits
    assert ours.std() > 0.3
    torch.testing.assert_close(same, ours, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("change", ["epsilon", "pairs", "head"])
def test_control_a_wrong_layout_gives_other_logits(tmp_path, change, monkeypatch):
    settings, model, arrays = trained(tied=True)
    if change == "epsilon":
        monkeypatch.setattr(weights, "EPSILON", 0.1)
    elif change == "head":
        arrays["vocabulary.head.weight"] = arrays["vocabulary.tokens.weight"][::-1].T
    else:
        name = "blocks.0.attention.qkv.weight"
        arrays[name] = arrays[name][:, ::-1].copy()
    x_BT = torch.randint(0, VOCAB, (3, CONTEXT))
    with torch.no_grad():
        gap = (theirs(tmp_path, settings, arrays)(x_BT).logits - model(x_BT[None]).logits[0][0]).abs().max()
    assert gap > 1e-3


OTHERS = [("lstm", {}), ("looped", {"positions": "rotary"}), ("transformer", {"positions": "learned"})]


@pytest.mark.parametrize(("name", "shape"), OTHERS)
def test_what_transformers_does_not_compute_is_refused(name, shape):
    with pytest.raises(Refusal, match="no model that computes"):
        config_of({"family": name, "shape": shape})


def test_a_run_that_kept_its_weights_is_exported_by_its_id(tmp_path, tiny, study_file, isoloss):
    study = tmp_path / "study"
    options = ("--out", str(study), "--workers", "1", "--keep-weights", "--json")
    assert isoloss("run", str(study_file()), *options)[0] == 0
    runs = {path.name.partition("-")[0]: path for path in (study / "runs").iterdir()}

    def export(name):
        arguments = ("export", str(study), "--to", "transformers", "--run", runs[name].name)
        return isoloss(*arguments, "-o", str(tmp_path / "model"))

    assert export("lstm")[0] == 3
    assert not (tmp_path / "model").exists()
    assert export("transformer")[0] == 0
    kept = load_file(runs["transformer"] / "weights.safetensors")
    exported = load_file(tmp_path / "model" / "model.safetensors")
    assert torch.equal(exported["lm_head.weight"], kept["vocabulary.tokens.weight"][0])
    assert export("transformer")[0] == 2  # nothing is written over


def test_a_run_without_weights_says_how_to_keep_them(tmp_path, ran, isoloss):
    run = next((ran.folder / "runs").glob("transformer*"))
    with pytest.raises(InputError, match="kept no weights"):
        export_weights(run, tmp_path / "model")
    code, _, talk = isoloss("export", str(ran.folder), "--to", "transformers", "-o", str(tmp_path / "model"))
    assert code == 2
    assert "which run?" in talk
    assert not (tmp_path / "model").exists()
