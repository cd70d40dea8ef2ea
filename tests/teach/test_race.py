"""The race: its rules under a clock of our own, and what is said of tables that we made up."""

import itertools
from importlib import resources

import numpy as np
import pytest
import torch

from isoloss.errors import InputError
from isoloss.figures.render import svg
from isoloss.teach import panels
from isoloss.teach.panel import run
from isoloss.teach.race import measure, ratios, tell, timing
from isoloss.teach.race.counts import ALONE, BLOCK, FUSED, LSTM, NAIVE, RUNNERS
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, FORWARD, MODES, Job, Processor, Times

ONE, TWO, GPU = Processor("cpu", 1), Processor("cpu", 2), Processor("cuda", 1)
SETTINGS = RaceSettings(lengths=(64, 256), threads=(1, 2))
SPEED = {NAIVE.name: 50.0, FUSED.name: 25.0, LSTM.name: 5.0, ALONE.name: 4.0, BLOCK.name: 10.0}
"""Milliseconds at T = 64 of runners on a machine that is not there; twice as many threads, half the time."""


def wobble(number: int) -> float:
    """A machine that slows down and speeds up: the same for all runners of a round."""
    return 1 + 0.5 * (number % 3)


def tables(speed=SPEED, setups=(ONE, TWO), modes=MODES, left_out=(), noise=0.01, **faster):
    """``faster``: by runner, how many times as fast two threads are; 2 unless given."""
    rng, timed = np.random.default_rng(0), {}
    for setup, mode, length, (name, ms), number in itertools.product(
        setups, modes, SETTINGS.lengths, speed.items(), range(1, 7)
    ):
        job = Job(setup, length, mode, name)
        gain = faster.get(name.replace(" ", "_"), 2.0) if setup != ONE else 1.0
        value = ms * length / 64 * wobble(number) * np.exp(noise * rng.standard_normal()) / gain
        if job not in left_out:
            timed.setdefault(job, []).append(Times(cpu=value * setup.threads, wall=value))
    return measure.tables_of(SETTINGS, timed, dict.fromkeys(left_out, 12.0))


def said(made, key: str) -> str:
    return next(one.text for one in tell.sentences(SETTINGS, made) if one.key == key)


def test_an_interval_covers_the_median_ratio_at_its_level() -> None:
    rng, hits = np.random.default_rng(0), {6: 0, 9: 0, 20: 0}
    for n in hits:
        for _ in range(1_000):
            ratio = ratios.ratio_of(np.exp(rng.standard_normal(n)), np.ones(n))
            hits[n] += ratio.low <= 1.0 <= ratio.high
    assert all(940 <= hit <= 990 for hit in hits.values()), hits


@pytest.mark.parametrize(("n", "k"), [(5, 0), (6, 1), (8, 1), (9, 2), (20, 6)])
def test_rank_is_the_narrowest_that_still_holds_95_percent(n: int, k: int) -> None:
    assert ratios.rank(n) == k


def test_pairs_undo_what_slows_both_and_five_are_too_few() -> None:
    slow = [wobble(i) for i in range(6)]
    ratio = ratios.ratio_of([2 * s for s in slow], slow)
    assert (ratio.value, ratio.low, ratio.high) == (2, 2, 2)
    assert (
        (even := ratios.ratio_of([2 * s for s in slow], [2.4, 1.0, 2.4, 1.0, 2.4, 4.1])).low < 1 < even.high
    )
    with pytest.raises(InputError, match="make no interval"):
        ratios.ratio_of(slow[:5], slow[:5])


def test_the_verdict_flips_when_the_numbers_are_swapped() -> None:
    assert "the LSTM layer is faster at T = 64 (2.0" in said(tables(), "whole-training")
    swapped = tables(SPEED | {LSTM.name: SPEED[BLOCK.name], BLOCK.name: SPEED[LSTM.name]})
    text = said(swapped, "whole-training")
    assert "the causal block is faster at T = 64 (" in text
    assert "the LSTM layer is faster" not in text
    assert " times, " in text
    assert tell.figures(SETTINGS, swapped)[0].title != tell.figures(SETTINGS, tables())[0].title


def test_an_interval_that_holds_one_is_no_clear_difference() -> None:
    text = said(tables(SPEED | {BLOCK.name: SPEED[LSTM.name]}, noise=0.3), "whole-training")
    assert "no clear difference between the causal block and the LSTM layer at T = 64" in text
    assert "faster at T = 64" not in text


def test_attention_alone_may_win_against_the_loop_and_lose_against_the_library() -> None:
    text = said(tables(SPEED | {ALONE.name: 10.0}), "opponents")
    assert "against the Python loop, attention alone is faster" in text
    assert "against the library, the LSTM layer is faster" in text


def test_what_parallel_hardware_adds_is_said_from_the_numbers() -> None:
    block = said(tables(LSTM_layer=0.5), "parallel")
    assert "the block, with the shorter chain of matmuls, gained more" in block
    assert "the causal block: faster (2.0" in block
    assert "the LSTM layer: slower (2.0" in block
    assert "the LSTM layer gained more" in said(tables(causal_block=0.5), "parallel")
    assert "no clear difference between the two gains" in said(tables(noise=0.3), "parallel")
    assert "nothing is said" in said(tables(setups=(ONE,)), "one-thread")


def test_the_first_of_more_cores_has_the_key_that_the_last_slide_asks_for() -> None:
    slide = resources.files("isoloss.teach.deck").joinpath("slides/13-why.html").read_text("utf-8")
    assert '"race", "parallel")' in slide
    for cores in (2, 8):
        made = tables(setups=(ONE, Processor("cpu", cores), GPU))
        sentences = {one.key: one for one in tell.sentences(SETTINGS, made)}
        assert f"{cores} CPU threads instead of 1" in sentences["parallel"].text
        assert sentences["parallel"].short == "More cores: no clear difference between the two gains."
        assert not sentences["parallel-GPU"].short, "one of them aloud"
    # A GPU is no core.
    sentences = {one.key: one for one in tell.sentences(SETTINGS, tables(setups=(ONE, GPU), LSTM_layer=0.5))}
    assert "parallel" not in sentences
    assert sentences["parallel-GPU"].short == "The GPU helped the Transformer more than the LSTM."


def test_a_gpu_is_spoken_of_only_where_one_raced_and_says_who_is_ahead() -> None:
    assert "on the GPU" not in " ".join(one.text for one in tell.sentences(SETTINGS, tables()))
    for swapped, family in ((False, "LSTM"), (True, "Transformer")):
        speed = SPEED | ({LSTM.name: SPEED[BLOCK.name], BLOCK.name: SPEED[LSTM.name]} if swapped else {})
        made = tables(speed, setups=(ONE, GPU))
        sentence = next(one for one in tell.sentences(SETTINGS, made) if one.key == "whole-gpu")
        faster, slower = ("LSTM layer", "Transformer block")[:: -1 if swapped else 1]
        assert {faster, slower} < set(panels.panel("race").guesses), "what the room was asked"
        assert sentence.ahead == family
        assert sentence.short.replace("whole ", "") == f"On the GPU the {faster} is faster than the {slower}."
    even = tables(SPEED | {BLOCK.name: SPEED[LSTM.name]}, setups=(ONE, GPU), noise=0.0)
    sentence = next(one for one in tell.sentences(SETTINGS, even) if one.key == "whole-gpu")
    assert (sentence.ahead, sentence.short) == ("", "On the GPU: no clear difference.")


def test_what_did_not_run_is_listed_with_its_price() -> None:
    gone = Job(ONE, 256, BOTH, NAIVE.name)
    made = tables(left_out=[gone])
    text = said(made, "not-run")
    assert "naive loop, forward + backward, 1 CPU thread, T = 256 (about 12.0 s)" in text
    assert any("not run" in line for line in tell.lines(SETTINGS, made))
    assert not any(one.key == "not-run" for one in tell.sentences(SETTINGS, tables()))


def test_exact_sentences_know_no_clock() -> None:
    slow = tables({name: 7 * ms for name, ms in SPEED.items()})
    exact = [[s.text for s in tell.sentences(SETTINGS, made) if s.exact] for made in (tables(), slow)]
    assert exact[0] == exact[1]
    assert len(exact[0]) == 2
    assert "256 in an LSTM layer, 6 in a causal block" in exact[0][0]


def test_one_thread_is_told_in_cpu_time_and_more_in_wall_time() -> None:
    rows = tables()["times"]
    assert {(row["setup"], row["clock"]) for row in rows} == {
        ("1 CPU thread", "CPU time"),
        ("2 CPU threads", "wall time"),
    }
    two = next(row for row in rows if row["threads"] == 2)
    assert two["value"] == two["wall"]
    assert all(row["low"] <= row["value"] <= row["high"] and row["n"] == 6 for row in rows)


def test_layers_fit_first_and_the_dearest_loop_is_left_out() -> None:
    seconds = {Job(ONE, 64, BOTH, name): ms for name, ms in SPEED.items()}
    seconds |= {Job(TWO, 64, BOTH, name): ms for name, ms in SPEED.items()}
    chosen = timing.within_budget(seconds, budget=19 + 19 + 25)
    assert Job(ONE, 64, BOTH, FUSED.name) in chosen
    assert {job.runner for job in chosen if job.processor == TWO} == {LSTM.name, ALONE.name, BLOCK.name}
    assert Job(ONE, 64, BOTH, NAIVE.name) not in chosen
    assert timing.within_budget(seconds, budget=0.5) == set()
    assert timing.within_budget(seconds, budget=1_000) == set(seconds)


class Clock:
    """Times of a machine that is not there; remembers the order."""

    def __init__(self, cost=lambda job, number: SPEED[job.runner]):
        self.cost, self.order, self.entered = cost, [], []

    def time(self, job: Job) -> Times:
        self.order.append(job)
        ms = self.cost(job, self.order.count(job))
        return Times(ms, ms)

    def run(self, setups=(ONE, TWO), budget=100.0):
        jobs = {Job(s, 64, FORWARD, o.name): SPEED[o.name] / 1e3 for s in setups for o in RUNNERS}
        *_, last = timing.rounds(jobs, 6, budget, enter=self.entered.append, time=self.time)
        return last


def test_each_round_times_all_once_in_an_order_of_its_own_and_the_first_is_dropped() -> None:
    clock = Clock()
    timed, _ = clock.run()

    blocks = [tuple(clock.order[i : i + 10]) for i in range(0, len(clock.order), 10)]
    assert len(blocks) == 7
    assert all(len(set(block)) == 10 for block in blocks)
    assert len(set(blocks)) > 3
    assert len(timed) == 10
    assert {len(times) for times in timed.values()} == {6}
    assert len(clock.entered) == 7 * 2


def test_what_turns_out_dearer_than_foretold_is_left_out_with_all_its_samples() -> None:
    collapse = Clock(lambda job, number: 4_000 if job.processor == TWO and number > 1 else SPEED[job.runner])
    timed, left_out = collapse.run(budget=5.0)
    assert {job.processor for job in left_out} == {TWO}
    assert {job.processor for job in timed} == {ONE}
    assert [len(times) for times in timed.values()] == [6] * 5
    assert Clock().run(budget=5.0)[1] == {}


def test_nothing_fits_and_nothing_is_said_of_time() -> None:
    timed, left_out = Clock().run(budget=1e-6)
    assert timed == {}
    assert len(left_out) == 10
    empty = measure.tables_of(SETTINGS, timed, left_out)
    assert tell.figures(SETTINGS, empty) == []
    keys = {one.key for one in tell.sentences(SETTINGS, empty)}
    assert keys == {"one-thread", "not-run", "chain", "work"}


def test_setups_are_no_more_threads_than_cores_and_a_gpu_if_wanted() -> None:
    settings = RaceSettings(threads=(1, 0, 64))
    assert measure.processors_of(settings, 4, gpu=False) == [Processor("cpu", 1), Processor("cpu", 4)]
    assert measure.processors_of(settings, 1, gpu=True) == [Processor("cpu", 1), Processor("cuda", 1)]
    assert measure.processors_of(RaceSettings(gpu=False), 1, gpu=True) == [Processor("cpu", 1)]


@pytest.mark.parametrize(
    "hostile",
    [
        {"lengths": [8192]},
        {"lengths": []},
        {"batch": 64, "lengths": [4096]},
        {"repeats": 5},
        {"d_model": 100},
    ],
)
def test_hostile_settings_are_refused(hostile: dict) -> None:
    with pytest.raises(InputError, match="panel race"):
        panels.panel("race").settings_from(hostile)


def test_the_recording_is_of_settings_that_the_panel_takes() -> None:
    for name in ("race", "bill"):
        panel = panels.panel(name)
        assert panel.settings_from(panel.full)


def test_a_real_race_is_measured_told_and_drawn_and_leaves_the_threads_alone() -> None:
    panel = panels.panel("race")
    settings = RaceSettings(lengths=(16, 32), d_model=32, batch=1, threads=(1,), budget_seconds=60.0)
    partial, before = [], torch.get_num_threads()
    result = run(panel, settings, lambda done, text, tables=None: partial.append((done, tables)))
    made = result.tables
    assert torch.get_num_threads() == before
    assert len(made["times"]) == 2 * 2 * 5
    assert made["not_run"] == []
    assert all(0 <= done <= 1 for done, _ in partial)
    seen = [some for _, some in partial if some is not None]
    assert len(seen) == 7
    assert [len(tell.figures(settings, some)) for some in seen] == [0, 1, 1, 1, 1, 1, 2]
    assert result.basis.n == 6
    assert {"whole-training", "whole-forward", "same-function", "chain"} <= {s.key for s in result.sentences}


def test_figures_are_drawn_whatever_ran() -> None:
    gone = [Job(ONE, length, BOTH, one.name) for length in SETTINGS.lengths for one in RUNNERS]
    for made in (tables(), tables(left_out=gone), tables(setups=(TWO,))):
        for figure in tell.figures(SETTINGS, made):
            assert "<svg" in svg(figure)
    assert "EXACT" in tell.html(SETTINGS, tables())


def test_the_axes_stand_still_while_the_race_runs() -> None:
    few = [Job(ONE, 256, mode, one.name) for mode in MODES for one in RUNNERS]

    def axes(made):
        chart = tell.figures(SETTINGS, made)[0].chart.to_dict()
        inside = chart["hconcat"][0]["layer"][0]["encoding"]
        return [inside[axis]["scale"]["domain"] for axis in "xy"]

    whole = axes(tables())
    assert axes(tables(left_out=few)) == [whole[0], [1.0, 1_000.0]]
    assert whole[1] == [1.0, 1_000.0], "whole powers of ten"


def test_the_terminal_draws_the_mode_that_the_title_names() -> None:
    lines = panels.panel("race").lines(SETTINGS, tables())
    assert lines[0].startswith(f"1 CPU thread, {BOTH}: ")
    times = [row["value"] for row in tables()["times"] if (row["setup"], row["mode"]) == (ONE.name, BOTH)]
    assert float(lines[1].split("|")[0]) == pytest.approx(max(times), rel=1e-4)


def test_the_title_says_what_the_swapped_sentence_says() -> None:
    for made in (tables(), tables(SPEED | {BLOCK.name: 1.0})):
        title = tell.figures(SETTINGS, made)[0].title
        winner = "LSTM layer" if "LSTM layer is faster" in said(made, "whole-training") else "causal block"
        assert f"the {winner} is faster" in title
