"""The step by step trace: equal to the model, masked, summing to 1, and safe against hostile sentences."""

import os
import re
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
import torch
from rich.cells import cell_len

from isoloss.errors import InputError
from isoloss.figures import render
from isoloss.report.templates import fill
from isoloss.teach.attention.head import double, head_of, network, weights_of
from isoloss.teach.attention.matrices import Matrix, lines_of, number
from isoloss.teach.attention.mixing import Recording, causal_weights, mixed_by, uniform
from isoloss.teach.attention.sentence import ids_of
from isoloss.teach.attention.settings import StepsSettings, UntrainedSettings
from isoloss.teach.attention.steps import measure as steps
from isoloss.teach.attention.steps import tell as steps_tell
from isoloss.teach.attention.steps.trace import trace_of
from isoloss.teach.attention.untrained import measure as untrained
from isoloss.teach.attention.untrained import tell as untrained_tell
from isoloss.teach.panels import panel

CSS = resources.files("isoloss.teach.deck").joinpath("deck.css").read_text("utf-8")
SENTENCE = StepsSettings().sentence
HOSTILE = '<script>x</script> "quoted" & [bold]x[/bold] 🙂 naïve'


def silent(done, text, tables=None):
    pass


@pytest.fixture(scope="module")
def tables():
    return steps.measure(StepsSettings(), silent)


def numbers(tables, name):
    rows = [row for row in tables["matrices"] if row["matrix"] == name]
    shape = max(r["row"] for r in rows), max(r["column"] for r in rows)
    values = [-np.inf if row["value"] is None else row["value"] for row in rows]
    return np.array(values).reshape(shape)


def test_each_step_follows_from_the_one_before(tables):
    """By other formulas than the trace's own: torch's softmax, einsum for the mixing."""
    n = {
        name: numbers(tables, name)
        for name in ("X", "W_q", "W_k", "W_v", "W_o", "Q", "K", "V", "S", "S + M", "A", "Y", "O")
    }
    for made, weight in (("Q", "W_q"), ("K", "W_k"), ("V", "W_v")):
        np.testing.assert_allclose(n[made], n["X"] @ n[weight])
    np.testing.assert_allclose(n["S"], np.einsum("tc,sc->ts", n["Q"], n["K"]) / 2)
    np.testing.assert_allclose(n["A"], torch.from_numpy(n["S + M"]).softmax(-1).numpy(), atol=1e-12)
    np.testing.assert_allclose(n["Y"], np.einsum("ts,sc->tc", n["A"], n["V"]))
    for place in range(1, 10):
        np.testing.assert_allclose(numbers(tables, f"Z {place}").sum(0), n["Y"][place - 1])
    np.testing.assert_allclose(n["O"], n["Y"] @ n["W_o"])


def test_rows_sum_to_one_and_see_no_later_word(tables):
    a = numbers(tables, "A")
    np.testing.assert_allclose(a.sum(1), 1, atol=1e-12)
    assert (a[np.triu_indices(9, 1)] == 0).all()
    assert (a[np.tril_indices(9)] > 0).all()
    assert [row["value"] for row in tables["sums"]] == pytest.approx(a.sum(1))


@pytest.mark.parametrize(("d_model", "seed"), [(2, 0), (4, 1), (8, 7)])
def test_steps_reproduce_the_models_own_attention(d_model, seed):
    head = head_of(SENTENCE.split(), d_model, seed)
    trace = trace_of(double(head.x_TD), weights_of(head.attention))
    np.testing.assert_allclose(trace["O"], double(head.output_TD), atol=1e-5)
    np.testing.assert_allclose(trace["A"], double(head.weights_TS), atol=1e-5)


def test_a_trace_without_the_scale_is_caught():
    head = head_of(SENTENCE.split(), 4, 0)
    q_DC, *others = weights_of(head.attention)
    wrong = trace_of(double(head.x_TD), [2 * q_DC, *others])
    row = steps.difference("output", wrong["O"], double(head.output_TD))
    assert row["value"] > row["tolerance"]
    assert "do not reproduce" in steps_tell.check_text({"check": [row]})


def test_sentences_flip_on_broken_numbers(tables):
    assert "reproduce the model's own" in steps_tell.check_text(tables)
    assert "sums to 1" in steps_tell.sums_text(tables)
    off = {**tables, "sums": [{**row, "value": 0.98} for row in tables["sums"]]}
    assert "do not all sum to 1" in steps_tell.sums_text(off)
    ahead = [
        {**r, "value": 0.1} if r["matrix"] == "A" and r["column"] > r["row"] else r
        for r in tables["matrices"]
    ]
    assert "look ahead" in steps_tell.mask_text({**tables, "matrices": ahead})


@pytest.mark.parametrize("heads", [1, 2])
def test_recording_mix_equals_the_fused_one(heads):
    q, k, v = torch.randn(3, 5, heads, 7, 8, generator=torch.Generator().manual_seed(0))
    recording = Recording()
    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(recording(q, k, v), fused)
    torch.testing.assert_close(recording.weights_NHTS.sum(-1), torch.ones(5, heads, 7))
    assert not recording.weights_NHTS.triu(1).any()
    unscaled = recording(q * 8**0.5, k, v)
    assert (unscaled - fused).abs().max() > 1e-2


def test_uniform_mix_is_the_mean_of_the_past():
    q, k, v = torch.randn(3, 2, 1, 6, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(uniform(q, k, v), causal_weights(torch.zeros_like(q), k) @ v)
    assert (uniform(q, k, v) - causal_weights(q, k) @ v).abs().max() > 1e-2


def test_mixes_are_put_back_after_an_error():
    model = network(2, 2, 4, 0)
    attention = model.blocks[0].attention
    before = attention.mix

    def fail():
        with mixed_by(model, {0: uniform}):
            assert attention.mix is uniform
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert attention.mix is before


def test_tokens_come_in_order_of_first_appearance():
    assert ids_of(["b", "a", "b", "c", "a"]) == [0, 1, 0, 2, 1]


def test_numbers_do_not_depend_on_hashing():
    """set() order moved the rows of the script this demo replaces."""
    code = (
        "from isoloss.teach.attention.sentence import ids_of;"
        "from isoloss.teach.attention.settings import StepsSettings as S;"
        "print(ids_of((S().sentence + ' a word').split()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {"[0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 5]\n"}


@pytest.mark.parametrize("name", ["steps", "untrained"])
@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "   ",
        "word",
        "word " * 1000,
        "a b\x1b[31m",
        "a b\x00",
        "a b\u202e",
        "a b\ud800",
        "a " + "w" * 21,
        "a b 👩\u200d🔬",
        7,
        None,
    ],
)
def test_hostile_sentences_are_refused(name, sentence):
    with pytest.raises(InputError, match="sentence"):
        panel(name).settings_from({"sentence": sentence})


def test_markup_in_a_sentence_is_escaped():
    for name, measure, tell in (
        ("steps", steps, steps_tell),
        ("untrained", untrained, untrained_tell),
    ):
        settings = panel(name).settings_from({"sentence": HOSTILE})
        measured = measure.measure(settings, silent)
        assert tell.sentences(settings, measured)
        drawn = [render.render(figure).svg for figure in tell.figures(settings, measured)]
        assert all("<script" not in svg for svg in drawn)
        assert not any("\x1b" in line for line in tell.lines(settings, measured))
        if name == "steps":
            html = str(tell.html(settings, measured))
            assert "<script" not in html
            assert "&lt;script&gt;" in html
            assert "🙂" in html


def test_words_that_the_deck_may_not_say_are_the_users_own_affair():
    """Sentences speak of word 3, not of the word, so that a user's words pass."""
    settings = StepsSettings(sentence="we cannot destroy 50 % perfectly")
    assert steps_tell.sentences(settings, steps.measure(settings, silent))


def test_line_breaks_and_tabs_are_refused_as_control_characters():
    for sentence in ("a\nb", "a\tb"):
        with pytest.raises(InputError):
            panel("steps").settings_from({"sentence": sentence})


def test_every_matrix_is_printed_and_shown(tables):
    settings = StepsSettings()
    text = "\n".join(steps_tell.lines(settings, tables))
    html = str(steps_tell.html(settings, tables))
    meanings = ("X:", "Q:", "K:", "V:", "S:", "M:", "A:", "Z 9:", "Y:", "O:")
    for meaning in meanings:
        assert f" {meaning}" in text
        assert f" {meaning}" in html
    assert "−∞" in text
    assert "sum" in text
    assert "1.00" in text
    assert html.count("<table") == html.count("<caption>") == 14 + 9
    assert html.count('scope="col"') > 50
    assert html.count('scope="row"') > 50


def test_numbers_are_written_with_true_minus_and_no_minus_zero():
    assert [number(v) for v in (-0.001, 0.0, -1.5, None)] == ["0.00", "0.00", "−1.50", "−∞"]


def test_emoji_keep_columns_straight():
    printed = lines_of(Matrix("m", ["🙂", "ab"], ["c", "🙂🙂"], [[0.1, 0.2], [0.3, -0.4]]))
    assert len({cell_len(line) for line in printed[1:4]}) == 1


def test_text_on_shades_can_be_read():
    """WCAG AA for text, contrast at least 4.5: of black on the fullest shades; others are nearer to white."""

    def luminance(code):
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    style = next(line for line in CSS.splitlines() if line.startswith(".matrix :is("))
    assert "color: #000" in style
    full = re.findall(r"--full: (#\w{6})|masked { background: (#\w{6})", CSS)
    assert len(full) == 3
    assert all((luminance(a or b) + 0.05) / 0.05 >= 4.5 for a, b in full)
    assert (luminance("#0072b2") + 0.05) / 0.05 < 6.5 < (luminance("#7dbfe6") + 0.05) / 0.05, "control"


def test_cells_are_shaded_by_their_share_of_the_largest():
    ((_, cells, total),) = Matrix("m", ["a"], ["b", "c", "d"], [[1.0, -2.0, None]], [9.0]).shaded_rows()
    assert (cells, total) == ([("1.00", 50), ("−2.00", -100), ("−∞", None)], "9.00")


def test_html_escapes_labels():
    parts = [[Matrix("<b>", ["<i>"], ["&"], [[1.0]])], [], []]
    html = str(fill("teach/attention/steps/matrices.html", parts=parts))
    assert "<b>" not in html
    assert "<i>" not in html
    assert "&amp;" in html


def test_untrained_seeds_differ_and_the_sentence_says_so():
    settings = UntrainedSettings()
    measured = untrained.measure(settings, silent)
    assert "at most 2 of 5 agree" in untrained_tell.strongest_looks(measured).text
    same = [{**row, "seed": seed} for seed in range(5) for row in measured["map"] if row["seed"] == 0]
    assert "all agree" in untrained_tell.strongest_looks({**measured, "map": same}).text
    rows = untrained_tell.last_rows(measured)
    assert all(sum(weights) == pytest.approx(1, abs=1e-6) for weights in rows.values())


def test_untrained_cell_is_judged_on_the_other_seeds():
    measured = untrained.measure(UntrainedSettings(), silent)
    assert "no clear difference" in untrained_tell.cell_text(measured)
    copied = [{**row, "seed": seed} for seed in range(5) for row in measured["map"] if row["seed"] == 0]
    assert "above even attention" in untrained_tell.cell_text({**measured, "map": copied})
    two = [row for row in measured["map"] if row["seed"] < 2]
    assert "no interval" in untrained_tell.cell_text({**measured, "map": two})
