"""From a study to packaged checkpoints: what is packed is what was trained, and nothing else gets in."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from isoloss import files
from isoloss.corpus import library
from isoloss.corpus.batches import evaluation_windows
from isoloss.errors import InputError
from isoloss.records import load
from isoloss.records.store import run_folder
from isoloss.studies import plan, runner, spec
from isoloss.teach.showdown import checkpoints
from isoloss.training.evaluation import evaluate
from isoloss.training.loop import train
from isoloss.training.settings import Execution
from isoloss.training.task import Member, Task

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def packing():
    """``benchmarks/showdown.py`` as a module."""
    module_spec = importlib.util.spec_from_file_location("packing", BENCHMARKS / "showdown.py")
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module


@pytest.fixture
def trained(tiny, study_file, study_text, tmp_path):
    """trained(folder, keep_weights=True) -> a study's folder: two Transformers and an LSTM, 22 updates."""
    head, transformer, lstm, _looped = study_text.split("[[scale.mini.models]]")
    path = study_file(text="[[scale.mini.models]]".join((head, transformer, lstm)))

    def make(name, *, keep_weights=True, changes=()):
        study, folder = spec.read(str(path)), tmp_path / name
        scale = spec.scale_of(study, "mini", changes)
        runs, corpus = plan.plan(scale, gpu=False), library.tokenize(tiny, 300)
        runner.write_plan(folder, study, runner.plan_json(study, "mini", scale, runs))
        execution = Execution(device="cpu", keep_weights=keep_weights)
        for run in runs:
            member = Member(run.settings, run.label, run_folder(folder, run.run_id))
            task = Task(study.name, (member,), scale.corpus, corpus.tokenizer_path.parent, execution)
            member.folder.mkdir(parents=True)
            assert train(task)
        return folder

    return make


@pytest.fixture
def tokenizer(tiny):
    return library.tokenize(tiny, 300).tokenizer_path


def test_what_is_packed_gives_the_recorded_losses(packing, trained, tokenizer, tiny, tmp_path):
    study, rates, out = trained("study"), trained("rates", changes=["seeds=[0]"]), tmp_path / "out"
    written = packing.pack(study, rates, tokenizer, out)
    assert {path.name for path in written} == {path.name for path in out.iterdir()}
    assert {"transformer-0.safetensors", "transformer-1.safetensors", "lstm-0.safetensors"} < {
        path.name for path in written
    }
    about = checkpoints.card(out)
    assert [(run.family, run.seed) for run in about.runs] == [
        ("transformer", 0),
        ("transformer", 1),
        ("lstm", 0),
    ]
    assert (about.corpus, about.vocab, about.steps, about.tokens) == (tiny, 300, 22, 1280)
    assert len(about.other_rates) == 3
    assert checkpoints.tokenizer(out).get_vocab_size() == 300
    corpus = library.tokenize(tiny, 300)
    x_MT, y_MT = evaluation_windows(corpus.validation, count=8, context=16)
    for family, seeds in (("transformer", [0, 1]), ("lstm", [0])):
        model = checkpoints.cohort(about, family, seeds, out)
        sums = evaluate(model, x_MT, y_MT, members=len(seeds), device=torch.device("cpu"))
        for seed, measured in zip(seeds, sums, strict=True):
            run = about.run(family, seed)
            assert measured.mean("exit_1") == pytest.approx(run.loss, abs=0.01), (
                "float16 moves a loss by little"
            )
            assert np.sum(run.sum_T) / (run.windows * 16) == pytest.approx(run.loss, abs=1e-4)
    # Members in another order bring their own weights along.
    swapped = checkpoints.cohort(about, "transformer", [1, 0], out)
    one, other = evaluate(swapped, x_MT, y_MT, members=2, device=torch.device("cpu"))
    for seed, measured in ((1, one), (0, other)):
        assert measured.mean("exit_1") == pytest.approx(about.run("transformer", seed).loss, abs=0.01)


def test_weights_that_were_not_kept_cannot_be_packed(packing, trained, tokenizer, tmp_path):
    study = trained("study", keep_weights=False)
    with pytest.raises(InputError, match="is missing") as caught:
        packing.pack(study, study, tokenizer, tmp_path / "out")
    assert caught.value.where.endswith("weights.safetensors")
    assert not (tmp_path / "out" / checkpoints.MANIFEST).exists(), (
        "without a manifest nothing is a checkpoint"
    )


def test_weights_that_changed_since_their_record_are_refused(packing, trained, tokenizer, tmp_path):
    study = trained("study")
    record = load(study).records[1]
    path = run_folder(study, record.run_id) / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    files.write_bytes(path, bytes(content))
    with pytest.raises(InputError, match="does not match the sha256 in its record"):
        packing.pack(study, study, tokenizer, tmp_path / "out")
