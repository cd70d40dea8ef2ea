"""Families are checked before compute is spent: isoloss's own pass, and each fault has its reason."""

import pytest
import torch

from isoloss.errors import InputError
from isoloss.models import family, load_file, shape_of
from isoloss.training.check import check_family

VOCAB = 300
CPU = torch.device("cpu")

SHIPPED = {
    "transformer": ("transformer", {"n_layer": 2, "d_model": 16, "n_head": 2}),
    "transformer, every option": (
        "transformer",
        {"n_layer": 1, "d_model": 16, "n_head": 2, "activation": "swiglu", "positions": "learned"}
        | {"tied": False, "dropout": 0.2},
    ),
    "lstm": ("lstm", {"n_layer": 2, "d_model": 16}),
    "lstm, carried, with dropout": ("lstm", {"n_layer": 2, "d_model": 16, "carry": True, "dropout": 0.2}),
    "looped, gated": ("looped", {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 3}),
    "looped, iso-depth": (
        "looped",
        {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 2, "n_prelude": 1, "n_coda": 1}
        | {"injection": True, "exits": "last"},
    ),
}


@pytest.mark.parametrize("context", [2, 16, 65])
@pytest.mark.parametrize("name", SHIPPED)
def test_what_comes_with_isoloss_passes(name, context):
    kind, values = SHIPPED[name]
    checks = check_family(family(kind), shape_of(kind, values), VOCAB, context, CPU)
    assert {what for what, value in checks.items() if value == "checked"} == {
        "output",
        "members",
        "causal",
        "gradients",
    }
    assert checks["loss"].endswith(" at first, ln V = 5.70")


PLAIN = """
import numpy as np
import torch
from torch import nn
from isoloss.models import Family, Output, Shape, register


class MineShape(Shape):
    d_model: int


class Mine(nn.Module):
    def __init__(self, shape, vocab, context):
        super().__init__()
        self.embedding = nn.Embedding(vocab, shape.d_model)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(shape.d_model, vocab)

    def forward(self, x_BT):
        h_BTD = self.embedding(x_BT)
        h_BTD = self.drop(h_BTD)
        return self.head(h_BTD)


register(Family("mine", MineShape, Mine))
"""
HIDDEN = "        h_BTD = self.drop(h_BTD)\n"
HEAD = "self.head(h_BTD)"
DROP = "        self.drop = nn.Dropout(0.1)\n"
PARTS = {
    "gate": "nn.Parameter(torch.zeros(shape.d_model))",
    "scale": "nn.Parameter(torch.full((shape.d_model,), 1e-5))",
    "norm": "nn.BatchNorm1d(shape.d_model)",
}
"""What a line of ``forward`` may use: there only if it does."""

STACKED = """
import torch
from isoloss.models import Family, Output, Shape, register
from isoloss.models.layers import Embedding


class MineShape(Shape):
    d_model: int


class Mine(torch.nn.Module):
    def __init__(self, shape, vocab, context):
        super().__init__()
        self.embedding = Embedding(vocab, shape.d_model)

    def forward(self, x_KBT):
        h_KBTD = self.embedding(x_KBT)
        return Output([self.embedding.unembed(h_KBTD)])


register(Family("mine", MineShape, Mine, stacked=True))
"""
UNEMBED = "self.embedding.unembed(h_KBTD)"


@pytest.fixture
def check(tmp_path, monkeypatch):
    """check(text) -> what is found of the family ``mine`` that this text registers from here/mine.py."""
    monkeypatch.chdir(tmp_path)

    def read(text, context=16, window=None):
        path = tmp_path / "mine.py"
        path.write_text(text)
        load_file(path)
        return check_family(family("mine"), shape_of("mine", {"d_model": 8}), VOCAB, context, CPU, window)

    return read


def changed(old, new, text=PLAIN):
    assert text.count(old) == 1
    return text.replace(old, new)


def mixing(line):
    """The plain family with another line between embedding and head, and the parts that it uses."""
    parts = [f"        self.{name} = {part}\n" for name, part in PARTS.items() if f"self.{name}" in line]
    return changed(DROP, "".join([DROP, *parts]), changed(HIDDEN, f"        {line}\n"))


def line_of_forward(text):
    return text[: text.index("def forward")].count("\n") + 1


@pytest.mark.parametrize("text", [PLAIN, STACKED])
def test_control_without_a_fault_passes(check, text):
    assert check(text)["causal"] == "checked"


def test_rounding_is_no_fault(check):
    """A convolution by FFT is causal, and yet later tokens move what rounding leaves of earlier ones."""
    convolved = "torch.fft.irfft(torch.fft.rfft(h_BTD, 600, dim=1) * 0.7, 600, dim=1)[:, : x_BT.shape[1]]"
    assert check(mixing(f"h_BTD = {convolved}"), context=300)["causal"] == "checked"


PEEKS = {
    "at the next token": "h_BTD = h_BTD + h_BTD.roll(-1, 1)",
    "at the last token": "h_BTD = h_BTD + h_BTD[:, -1:]",
    "at all tokens": "h_BTD = h_BTD + h_BTD.mean(1, keepdim=True)",
    "within pairs": "h_BTD = h_BTD + h_BTD.unflatten(1, (-1, 2)).flip(2).flatten(1, 2)",
    "through a gate that starts shut": "h_BTD = h_BTD + self.gate * h_BTD.roll(-1, 1)",
    "through a scale that starts small": "h_BTD = h_BTD + self.scale * h_BTD.roll(-1, 1)",
    "by attention without a mask, scaled": (
        "h_BTD = h_BTD + self.scale * nn.functional.scaled_dot_product_attention(h_BTD, h_BTD, h_BTD)"
    ),
    "in training, by statistics of the batch": "h_BTD = self.norm(h_BTD.mT).mT",
    "in evaluation alone": "h_BTD = h_BTD if self.training else h_BTD + h_BTD.roll(-1, 1)",
}


@pytest.mark.parametrize("how", PEEKS)
def test_a_family_that_peeks_is_refused(check, how):
    with pytest.raises(InputError, match="it sees what it is to predict") as caught:
        check(text := mixing(PEEKS[how]))
    assert caught.value.where == f"mine.py, line {line_of_forward(text)}"
    assert "masks" in caught.value.mend


UNREACHED = "no gradient reaches members.0.gate"
FAULTS = {
    "shape": (changed(HEAD, "h_BTD"), r"forward gave torch.float32 of shape \(2, 16, 8\)"),
    "one token less": (changed(HEAD, f"{HEAD}[:, 1:]"), r"of shape \(2, 15, 300\)"),
    "short windows": (changed(HEAD, f"{HEAD} if len(x_BT[0]) > 8 else h_BTD"), r"of shape \(2, 8, 8\)"),
    "whole numbers": (changed(HEAD, f"{HEAD}.long()"), "forward gave torch.int64"),
    "a pair": (changed(HEAD, f"{HEAD}, None"), "forward gave tuple, not a tensor"),
    "NaN": (changed(HEAD, f"{HEAD} * float('nan')"), "forward gave NaN or infinity, untrained"),
    "NaN in a gradient": (mixing("h_BTD = h_BTD + self.gate.sqrt()"), "the gradient of .*gate is not finite"),
    "a parameter without use": (mixing("h_BTD = h_BTD.clone() if self.gate is None else h_BTD"), UNREACHED),
    "a parameter that is frozen": (mixing("h_BTD = h_BTD + self.gate.detach()"), UNREACHED),
    "no gradient": (changed(HEAD, f"{HEAD}.detach()"), "no gradient reaches the weights"),
    "large logits": (changed(HEAD, f"30 * {HEAD}"), "the first loss is .* nats, not within 1 of ln V = 5.70"),
    "a memory": (
        mixing("self.sum = h_BTD.mean() + getattr(self, 'sum', 0); h_BTD = h_BTD + self.sum.detach()"),
        "forward gives other logits for the same tokens the second time",
    ),
    "weights without seed": (
        changed(
            "torch.zeros(shape.d_model)",
            "torch.from_numpy(np.random.default_rng().random(8)).float()",
            mixing("h_BTD = h_BTD + self.gate"),
        ),
        "gate starts otherwise each time",
    ),
    "mixed members": (
        changed("self.embedding(x_KBT)", "self.embedding(x_KBT) + self.embedding(x_KBT).mean(0)", STACKED),
        "member 1 of a cohort computes other logits than by itself",
    ),
    "no Output": (changed(f"Output([{UNEMBED}])", UNEMBED, STACKED), "forward gave Tensor"),
    "one member": (changed(UNEMBED, f"{UNEMBED}[:1]", STACKED), r"of shape \(1, 2, 16, 300\)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refused_for_its_own_reason(check, fault):
    text, reason = FAULTS[fault]
    with pytest.raises(InputError, match=reason) as caught:
        check(text)
    assert caught.value.where == f"mine.py, line {line_of_forward(text)}"
    assert caught.value.mend


def test_a_parameter_for_long_windows_is_not_missed_in_a_short_one(check):
    text = mixing("h_BTD = h_BTD + self.gate if x_BT.shape[1] > 8 else h_BTD")
    assert check(text, context=16, window=8)["gradients"] == "checked"
    with pytest.raises(InputError, match=UNREACHED):
        check(text, context=8)


def test_an_error_of_the_users_names_the_last_of_their_lines(check):
    text = mixing("h_BTD = torch.cat([h_BTD, h_BTD[:, :3]], dim=2)")
    with pytest.raises(InputError, match="RuntimeError: Sizes of tensors must match") as caught:
        check(text)
    assert caught.value.where == f"mine.py, line {line_of_forward(text) + 2}"


def test_what_is_no_module_is_refused_by_file(check):
    with pytest.raises(InputError, match="not a Module subclass") as caught:
        check(
            changed(
                'register(Family("mine", MineShape, Mine))',
                'register(Family("mine", MineShape, lambda *_: 3))',
            )
        )
    assert caught.value.where == "mine.py"


def test_checking_leaves_the_users_random_numbers_alone(check):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    check(PLAIN)
    assert torch.equal(torch.random.get_rng_state(), before)
