"""Lines as each trainer prints them."""

import pytest

from isoloss.errors import InputError
from isoloss.sources.logs import loss_table
from isoloss.sources.logs.textlog import PATTERNS

LOGS = {
    "nanogpt": """Overriding: n_layer = 6
Overriding: block_size = 256
tokens per iteration will be: 491,520
number of parameters: 10.65M
step 250: train loss 2.3961, val loss 2.4012
iter 250: loss 2.4, time 4ms, mfu 3%
""",
    "nanochat": """Vocab size: 65,536
num_layers: 20
Number of parameters: 560,988,160
Total batch size 524,288 => gradient accumulation steps: 1
Step 00250 | Validation bpb: 1.0123
""",
    "llm.c": """| num_parameters        | 124475904                                          |
| channels C            | 768 |
total_batch_size=524288
s:250 tel:4.7043
s:250 trl:4.6 lr:0.0001 norm:1.2
""",
    "modded-nanogpt": "step:250/1555 val_loss:4.5492 train_time:62832ms step_avg:251ms\n",
    "megatron": """  num_layers ...................................... 24
  seq_length ...................................... 2048
  global_batch_size ............................... 256
 [2025-01-01 10:00:00] iteration      250/  500000 | consumed samples:        64000 | lm loss: 4.6E+00 |
 validation loss at iteration 250 | lm loss value: 4.549200E+00 | lm loss PPL: 9.4E+01 |
""",
    "litgpt": "Total parameters: 162,322,944\niter 250: val loss 4.5492, val time: 2345.11 ms\n",
    "torchtitan": "\x1b[36m[titan] - Model llama3 size: 6,139,136 total parameters\x1b[0m\n"
    "[titan] - step: 250  loss:  4.60  grad_norm: 1\n[titan] - \x1b[32mvalidate step: 250  loss:  4.5492\n",
}
FACTS = {
    "nanogpt": {"params_total": 10_650_000, "tokens": 250 * 491_520, "n_layer": 6, "context": 256},
    "nanochat": {"params_total": 560_988_160, "tokens": 250 * 524_288, "vocab": 65_536},
    "llm.c": {"params_total": 124_475_904, "tokens": 250 * 524_288, "d_model": 768, "loss": 4.7043},
    "modded-nanogpt": {"planned_steps": 1555, "loss": 4.5492},
    "megatron": {"tokens": 250 * 256 * 2048, "n_layer": 24, "loss": 4.5492},
    "litgpt": {"params_total": 162_322_944, "loss": 4.5492},
    "torchtitan": {"params_total": 6_139_136, "loss": 4.5492},
}
FACTS["nanogpt"]["loss"], FACTS["nanochat"]["bits_per_byte"] = 2.4012, 1.0123


def test_every_pattern_has_a_log_here():
    assert list(LOGS) == list(PATTERNS) == list(FACTS)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("named", [True, False])
def test_the_lines_of_each_trainer(tmp_path, name, named):
    (tmp_path / "run.log").write_text(LOGS[name])
    frame = loss_table("nanogpt", tmp_path, pattern=name if named else None).frame
    assert frame.height == 1
    assert frame.row(0, named=True) | FACTS[name] | {"step": 250, "run_id": "run"} == frame.row(0, named=True)
    assert f"as {name} prints it" in frame["origin"][0]


def test_a_log_is_named_after_its_folder_where_its_own_name_says_nothing(tmp_path):
    (tmp_path / "d12").mkdir()
    (tmp_path / "d12" / "train.log").write_text(LOGS["litgpt"])
    (tmp_path / "d12" / "notes.md").write_text(LOGS["litgpt"])
    assert loss_table("nanogpt", tmp_path).frame["run_id"].to_list() == ["d12"]


TRAINING = {
    "nanogpt": ("iter 250: loss 2.4100, time 4ms, mfu 3%", "batch_loss"),
    "nanochat": ("step 00250/21400 (1.17%) | loss: 2.4100 | lrm: 1.00 | dt: 300ms", "train_loss"),
    "modded-nanogpt": ("step:250/1750 train_loss:2.4100 train_time:1ms", "train_loss"),
    "litgpt": ("Epoch 1 | iter 250 step 250 | loss train: 2.4100, val: n/a | iter time: 1 ms", "train_loss"),
}


@pytest.mark.parametrize("name", TRAINING)
def test_a_log_of_training_losses_alone_is_asked_about(tmp_path, name):
    line, key = TRAINING[name]
    (tmp_path / "a.log").write_text(line + "\n")
    with pytest.raises(InputError, match="held-out") as error:
        loss_table("nanogpt", tmp_path)
    assert key in error.value.mend
    frame = loss_table("nanogpt", tmp_path, columns={"loss": key}).frame
    assert frame.select("step", "loss").rows() == [(250, 2.41)]
    assert f"as {name} prints it" in frame["origin"][0]


def test_a_log_that_no_trainer_printed_is_told_which_table_would_do(tmp_path):
    (tmp_path / "mine.log").write_text("epoch 1 loss 3\n")
    with pytest.raises(InputError, match="has no line of a loss as nanogpt, ") as error:
        loss_table("nanogpt", tmp_path / "mine.log")
    assert "the columns params, tokens and loss in nats per token" in error.value.mend


def test_a_loss_that_became_nan_is_nan_and_no_gap(tmp_path):
    (tmp_path / "a.log").write_text("step 1: train loss nan, val loss nan\n")
    assert loss_table("nanogpt", tmp_path).frame["loss"].is_nan().to_list() == [True]
