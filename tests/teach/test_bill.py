"""The bill: a step with a cache is the whole block's last output, memory a count, the crossing measured."""

import itertools

import numpy as np
import pytest
import torch

from isoloss.figures.render import svg
from isoloss.teach import panels
from isoloss.teach.panel import run
from isoloss.teach.race.bill import measure, tell
from isoloss.teach.race.counts import BLOCK, LSTM, state_floats
from isoloss.teach.race.runners import causal_block, lstm_layer
from isoloss.teach.race.settings import BillSettings
from isoloss.teach.race.steps import attention_step, lstm_state, lstm_step, read

D = 32
SETTINGS = BillSettings(lengths=(64, 256, 1024, 4096))


@pytest.mark.parametrize("n", [1, 7, 12])
def test_a_step_with_a_cache_is_the_whole_blocks_last_output(n: int) -> None:
    torch.manual_seed(n)
    block, x_KBTD = causal_block(D, 20), torch.randn(1, 2, n + 1, D)
    whole = block(x_KBTD)[:, :, -1:]
    cache = read(block, x_KBTD[:, :, :n], room=n + 1)
    assert torch.allclose(attention_step(block, x_KBTD[:, :, -1:], cache, n), whole, atol=1e-5)


def test_step_after_step_is_the_whole_block() -> None:
    torch.manual_seed(0)
    block, x_KBTD = causal_block(D, 20), torch.randn(1, 1, 6, D)
    cache = read(block, x_KBTD[:, :, :1], room=6)
    steps = [attention_step(block, x_KBTD[:, :, n : n + 1], cache, n) for n in range(1, 6)]
    assert torch.allclose(torch.cat(steps, 2), block(x_KBTD)[:, :, 1:], atol=1e-5)


def test_a_cache_of_another_text_or_a_wrong_place_is_found_out() -> None:
    torch.manual_seed(0)
    block, x_KBTD = causal_block(D, 20), torch.randn(1, 1, 8, D)
    whole = block(x_KBTD)[:, :, -1:]
    other = read(block, torch.randn(1, 1, 7, D), room=8)
    short = read(block, x_KBTD[:, :, :7], room=8)
    assert not torch.allclose(attention_step(block, x_KBTD[:, :, -1:], other, 7), whole, atol=1e-3)
    assert not torch.allclose(attention_step(block, x_KBTD[:, :, -1:], short, 6), whole, atol=1e-3)


def test_a_step_of_the_lstm_is_the_layers_last_output() -> None:
    torch.manual_seed(0)
    layer, x_TBD = lstm_layer(D), torch.randn(9, 1, D)
    h_1BD, _ = lstm_step(layer, x_TBD[-1:], lstm_state(layer, x_TBD[:-1]))
    assert torch.allclose(h_1BD[0], layer(x_TBD)[0][-1], atol=1e-6)
    h_1BD, _ = lstm_step(layer, x_TBD[-1:], lstm_state(layer, x_TBD[:-2]))
    assert not torch.allclose(h_1BD[0], layer(x_TBD)[0][-1], atol=1e-3)


def test_floats_kept_are_those_of_the_tensors() -> None:
    x_TBD = torch.randn(9, 1, D)
    cache = read(causal_block(D, 9), x_TBD.view(1, 1, 9, D), room=9)
    assert state_floats(BLOCK, 9, D) == cache.k_BHTC.numel() + cache.v_BHTC.numel() == 2 * 9 * D
    assert state_floats(LSTM, 9, D) == sum(part.numel() for part in lstm_state(lstm_layer(D), x_TBD)) == 2 * D


def made(block_ms, lstm_ms=1.0, noise=0.01):
    """``block_ms``: milliseconds of the block's step at 64, 256, 1,024 and 4,096."""
    rng, times = np.random.default_rng(0), {}
    for (n, ms), name in itertools.product(
        zip(SETTINGS.lengths, block_ms, strict=True), (BLOCK.name, LSTM.name)
    ):
        value = ms if name == BLOCK.name else lstm_ms
        times[n, name] = [value * float(np.exp(noise * e)) for e in rng.standard_normal(12)]
    return measure.tables_of(SETTINGS, times)


def said(tables, key: str) -> str:
    return next(one.text for one in tell.sentences(SETTINGS, tables) if one.key == key)


def test_the_crossing_is_bracketed_by_what_the_intervals_decide() -> None:
    assert "becomes the dearer one between n = 256 and 1,024" in said(made([0.5, 0.8, 1.5, 4.0]), "crossing")
    assert "between n = 64 and 1,024" in said(made([0.5, 1.0, 1.5, 4.0]), "crossing")
    assert "dearer one at every n measured, 64 to 4,096" in said(made([2.0, 2.0, 3.0, 4.0]), "crossing")
    assert "cheaper one at every n measured" in said(made([0.5, 0.5, 0.6, 0.7]), "crossing")
    assert "not decided between n = 64 and 4,096" in said(made([1.0] * 4, noise=0.2), "crossing")
    assert "from n = 4,096 on; below that it is not decided" in said(made([1.0, 1.0, 1.0, 4.0]), "crossing")


BETTER, WORSE = (0.5, 0.6), (1.5, 1.8)


@pytest.mark.parametrize(
    ("ahead", "short"),
    [
        ("LLLL", "At every length measured one more word is cheaper for the LSTM."),
        ("BBBB", "At every length measured one more word is cheaper for the Transformer."),
        ("BB?L", "After enough words, one more is cheaper for the LSTM."),
        ("?L?L", "After enough words, one more is cheaper for the LSTM."),
        ("LL?B", "After enough words, one more is cheaper for the Transformer."),
        ("LBLL", "Who is cheaper depends on the length."),
        ("BB??", "Who is cheaper depends on the length."),
        ("?L??", "Who is cheaper depends on the length."),
        ("????", "No clear difference in the price of one more word."),
    ],
)
def test_after_enough_words_is_said_only_where_nothing_turns_it_round(ahead: str, short: str) -> None:
    """A letter a length, the shortest first: who is cheaper there, if it is clear."""
    spans = {"L": WORSE, "B": BETTER, "?": (0.9, 1.1)}
    rows = [
        {"n_before": n, "a": BLOCK.name, "b": LSTM.name, "low": low, "value": (low + high) / 2, "high": high}
        for n, (low, high) in zip(SETTINGS.lengths, map(spans.get, ahead), strict=True)
    ]
    sentence = tell.crossing(rows[::-1])
    assert sentence.short == short
    assert sentence.ahead == ("LSTM" if ahead == "LLLL" else "Transformer" if ahead == "BBBB" else "")
    if ahead == "LL?B":
        assert "the causal block is faster at n = 4,096" in sentence.text


def test_a_median_time_has_the_interval_that_its_ratio_has() -> None:
    times = [float(n) for n in range(1, 31)]
    assert measure.median_of(times) == {"value": 15.5, "low": 10.0, "high": 21.0, "n": 30}


def test_the_verdict_flips_and_may_be_open() -> None:
    assert "the LSTM layer is faster at every n measured from 64 (2.0" in said(made([2.0] * 4), "step")
    assert "the causal block is faster at every n measured from 64 (2.0" in said(made([0.5] * 4), "step")
    assert "no clear difference" in said(made([1.0] * 4, noise=0.2), "step")
    titles = [tell.figures(SETTINGS, made([ms] * 4))[0].title for ms in (2.0, 0.5)]
    assert "LSTM layer is faster" in titles[0]
    assert "causal block is faster" in titles[1]


def test_growth_is_said_of_the_side_that_grows() -> None:
    text = said(made([1.0, 1.0, 2.0, 4.0]), "growth")
    assert "more for the causal block (4.0" in text or "more for the causal block (3.9" in text
    assert "no clear difference for the LSTM layer" in text
    assert "no clear difference for the causal block" in said(made([1.0] * 4), "growth")


def test_memory_is_exact_and_the_same_whatever_the_clock_says() -> None:
    sentences = [
        next(s for s in tell.sentences(SETTINGS, made([ms] * 4)) if s.key == "memory") for ms in (1, 9)
    ]
    assert sentences[0] == sentences[1]
    assert sentences[0].exact
    assert "4.19MB after n = 4,096" in sentences[0].text


def test_a_real_bill_is_measured_told_and_drawn_and_leaves_the_threads_alone() -> None:
    panel, heard = panels.panel("bill"), []
    settings = BillSettings(lengths=(16, 32), d_model=32, repeats=6, tokens=2)
    before = torch.get_num_threads()
    result = run(panel, settings, lambda done, text, tables=None: heard.append(done))
    measured = result.tables
    assert torch.get_num_threads() == before
    assert heard == sorted(heard)
    assert [row["n"] for row in measured["times"]] == [6] * 4
    assert {s.key for s in result.sentences} == {"step", "crossing", "growth", "memory"}
    for figure in tell.figures(settings, measured):
        assert "<svg" in svg(figure)
    assert len(tell.lines(settings, measured)) == 3
    assert tell.figures(settings, {}) == []
