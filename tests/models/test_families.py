"""What each family must be: its initial state, its exits, its special cases, and users' own."""

import math

import pytest
import torch
from scipy.stats import kstest, uniform

from isoloss.errors import InputError
from isoloss.models import Family, Shape, build_cohort, count, family, load_file, register, shape_of
from isoloss.models.looped import exit_log_probabilities
from isoloss.models.lstm import initialise, initialise_chrono

VOCAB, CONTEXT = 50, 10


def build(name, values, seeds=(0,)):
    return build_cohort(family(name), shape_of(name, values), VOCAB, CONTEXT, list(seeds))


@pytest.mark.parametrize("name", ["transformer", "lstm", "looped"])
def test_an_untrained_model_knows_nothing(name):
    values = {"n_layer": 2, "d_model": 32} | ({} if name == "lstm" else {"n_head": 2})
    values |= {"recurrence": 2} if name == "looped" else {}
    model = build(name, values)
    x = torch.randint(VOCAB, (1, 64, CONTEXT))
    for logits in model(x).logits:
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 2), torch.randint(VOCAB, (64 * CONTEXT,)))
        assert loss.item() == pytest.approx(math.log(VOCAB), abs=0.05)


def test_lstm_forget_bias_is_one_in_one_bias_only():
    layer = build("lstm", {"n_layer": 1, "d_model": 8}).members[0].layers[0]
    both = layer.bias_ih_l0 + layer.bias_hh_l0
    assert both[8:16].tolist() == [1.0] * 8
    assert both[:8].abs().sum() == both[16:].abs().sum() == 0


def test_lstm_recurrent_weights_are_orthogonal_per_gate():
    weight = build("lstm", {"n_layer": 1, "d_model": 8}).members[0].layers[0].weight_hh_l0
    for gate in weight.split(8):
        torch.testing.assert_close(gate @ gate.T, torch.eye(8))


def test_lstm_state_is_reset_unless_carried():
    x = torch.randint(VOCAB, (1, 2, CONTEXT))
    forgetful = build("lstm", {"n_layer": 2, "d_model": 8})
    assert torch.equal(forgetful(x).logits[0], forgetful(x).logits[0])
    carrying = build("lstm", {"n_layer": 2, "d_model": 8, "carry": True})
    assert not torch.equal(carrying(x).logits[0], carrying(x).logits[0])


def test_one_loop_is_the_plain_transformer():
    values = {"n_layer": 2, "d_model": 16, "n_head": 2}
    looped = build("looped", values | {"recurrence": 1, "injection": True})
    plain = build("transformer", values)
    weights = dict(zip([n for n, _ in plain.named_parameters()], looped.parameters(), strict=True))
    plain.load_state_dict(weights, strict=False)
    x = torch.randint(VOCAB, (1, 2, CONTEXT))
    output = looped(x)
    assert output.exit_log_p is None
    assert len(output.logits) == 1
    torch.testing.assert_close(output.logits[0], plain(x).logits[0])


def test_exit_probabilities_sum_to_one_even_for_shut_gates():
    odds = [torch.tensor([[[-200.0, 0.0, 200.0]]]), torch.tensor([[[3.0, -1.0, 0.5]]])]
    log_p = torch.stack(exit_log_probabilities(odds))
    torch.testing.assert_close(log_p.exp().sum(0), torch.ones(1, 1, 3))
    assert log_p.isfinite().all()
    lam = torch.sigmoid(torch.stack(odds)).flatten(1)
    expected = torch.stack([lam[0], lam[1] * (1 - lam[0]), (1 - lam[0]) * (1 - lam[1])])
    torch.testing.assert_close(log_p.exp().flatten(1), expected)


def test_members_of_a_cohort_start_as_they_would_alone():
    values = {"n_layer": 2, "d_model": 16, "n_head": 2, "recurrence": 2}
    both, second = build("looped", values, seeds=(5, 6)), build("looped", values, seeds=(6,))
    x = torch.randint(VOCAB, (1, 2, CONTEXT))
    torch.testing.assert_close(both(x.expand(2, -1, -1)).logits[1][1], second(x).logits[1][0])


@pytest.mark.parametrize(
    ("name", "values", "word"),
    [
        ("transformer", {"n_layer": 2, "d_model": 15, "n_head": 2}, "n_head"),
        ("transformer", {"n_layer": 2, "d_model": 6, "n_head": 2}, "even"),
        ("transformer", {"n_layer": 2, "d_model": 16, "n_head": 2, "d_fff": 3}, "d_fff"),
        ("transformer", {"n_layer": "2", "d_model": 16, "n_head": 2}, "n_layer"),
        ("lstm", {"n_layer": 0, "d_model": 16}, "n_layer"),
        ("lstm", {"n_layer": 1}, "d_model"),
        ("looped", {"n_layer": 1, "d_model": 16, "n_head": 2}, "recurrence"),
        ("looped", {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 2, "exits": "some"}, "exits"),
        ("transfromer", {}, "transfromer"),
    ],
)
def test_a_bad_shape_is_named(name, values, word):
    with pytest.raises(InputError, match=word):
        shape_of(name, values)


FAMILY_FILE = """
import torch
from isoloss.models import Family, Shape, register

class BigramShape(Shape):
    d_model: int

class Bigram(torch.nn.Module):
    def __init__(self, shape, vocab, context):
        super().__init__()
        self.table = torch.nn.Embedding(vocab, shape.d_model)
        self.out = torch.nn.Linear(shape.d_model, vocab)

    def forward(self, x_BT):
        return self.out(self.table(x_BT))

register(Family("bigram-test", BigramShape, Bigram))
"""


def test_a_family_from_a_users_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FAMILY_FILE)
    load_file(path)
    assert len(family("bigram-test").source) == 64
    model = build_cohort(
        family("bigram-test"), shape_of("bigram-test", {"d_model": 4}), VOCAB, CONTEXT, [0, 1]
    )
    assert model(torch.randint(VOCAB, (2, 3, CONTEXT))).logits[0].shape == (2, 3, CONTEXT, VOCAB)


@pytest.mark.parametrize(
    ("content", "word"),
    [("x = 1", "registers no family"), ("x = ", "SyntaxError"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_bad_family_file_is_named(tmp_path, content, word):
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(InputError, match=word) as caught:
        load_file(path)
    assert caught.value.where == str(path)


def test_a_taken_name_is_refused():
    with pytest.raises(InputError, match="registered already"):
        register(Family("lstm", Shape, lambda shape, vocab, context: torch.nn.Identity()))


def test_a_users_file_cannot_replace_a_family_of_the_package(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FAMILY_FILE.replace("bigram-test", "transformer"))
    genuine = family("transformer").build
    with pytest.raises(InputError, match="registered already"):
        load_file(path)
    assert family("transformer").build is genuine


def test_a_users_file_may_be_loaded_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FAMILY_FILE.replace("bigram-test", "bigram-again"))
    load_file(path)
    before = family("bigram-again")
    path.write_text(FAMILY_FILE.replace("bigram-test", "bigram-again") + "\n# changed\n")
    load_file(path)
    assert family("bigram-again").source != before.source


@pytest.mark.parametrize("name", ["", "Has Space", "../up", "[bold]", "x" * 40, "1st"])
def test_a_family_name_must_do_as_part_of_a_runs_name(name):
    with pytest.raises(InputError, match="not a usable family name"):
        register(Family(name, Shape, lambda shape, vocab, context: torch.nn.Identity()))


@pytest.mark.parametrize(
    ("name", "what"),
    [("none.py", "no such file"), ("mine.txt", "its name must end in .py"), ("", "no such file")],
)
def test_what_is_no_python_file_is_no_family(tmp_path, name, what):
    (tmp_path / "mine.txt").write_text(FAMILY_FILE)
    with pytest.raises(InputError, match=what) as caught:
        load_file(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


def test_chrono_gates_remember_for_one_step_to_the_longest():
    """Forget and input gates sum to one at zero input: time scales 1 + exp(b_f), spread evenly."""
    torch.manual_seed(0)
    d, longest = 400, 100
    layer, plain = torch.nn.LSTM(d, d), torch.nn.LSTM(d, d)
    initialise_chrono(layer, longest)
    b_i, b_f = layer.bias_ih_l0[:d], layer.bias_ih_l0[d : 2 * d]
    assert torch.equal(b_i, -b_f)
    assert torch.equal(layer.bias_ih_l0[2 * d :], torch.zeros(2 * d))
    assert torch.equal(layer.bias_hh_l0, torch.zeros(4 * d))
    steps = b_f.exp().detach().numpy()
    assert 1 - 1e-5 <= steps.min() <= steps.max() <= longest - 1 + 1e-3
    even = uniform(1, longest - 2).cdf
    assert kstest(steps, even).pvalue > 1e-4
    initialise(plain)
    control = plain.bias_ih_l0[d : 2 * d].exp().detach().numpy()
    assert kstest(control, even).pvalue < 1e-4, "control: a forget bias of 1 has one time scale"


@pytest.mark.parametrize(
    ("shape", "build"), [(dict, torch.nn.Identity), (VOCAB, torch.nn.Identity), (Shape, None)]
)
def test_a_family_without_the_interface_is_refused(shape, build):
    with pytest.raises(InputError, match="no usable shape or build") as caught:
        register(Family("no-interface", shape, build))
    assert "isoloss.models.Shape" in caught.value.mend


def test_a_users_file_may_write_its_annotations_as_text(tmp_path):
    path = tmp_path / "mine.py"
    literal = 'kind: Literal["a", "b"] = "a"\n    d_model'
    text = FAMILY_FILE.replace("bigram-test", "bigram-text").replace("d_model", literal, 1)
    path.write_text("from __future__ import annotations\nfrom typing import Literal" + text)
    load_file(path)
    assert shape_of("bigram-text", {"d_model": 4, "kind": "b"}).kind == "b"


def test_an_error_while_parameters_are_counted_names_the_users_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(
        FAMILY_FILE.replace("bigram-test", "bigram-slip").replace("self.out(self", "self.oops(self")
    )
    load_file(path)
    with pytest.raises(InputError, match="has no attribute 'oops'") as caught:
        count(family("bigram-slip"), shape_of("bigram-slip", {"d_model": 4}), VOCAB, CONTEXT)
    line = FAMILY_FILE[: FAMILY_FILE.index("return self.out")].count("\n") + 1
    assert caught.value.where == f"mine.py, line {line}"
