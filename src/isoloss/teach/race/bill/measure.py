"""Time one more token after n: a causal block with its keys and values, an LSTM layer with its state."""

import time
from collections.abc import Callable
from itertools import product

import numpy as np
import torch

from isoloss.teach.panel import Report
from isoloss.teach.race.counts import BLOCK, FLOAT_BYTES, LSTM, state_floats
from isoloss.teach.race.ratios import ratio_of
from isoloss.teach.race.runners import causal_block, lstm_layer
from isoloss.teach.race.settings import BillSettings
from isoloss.teach.race.steps import attention_step, lstm_state, lstm_step, read
from isoloss.teach.race.timing import shuffle
from isoloss.teach.result import Row, Tables

Steps = dict[tuple[int, str], Callable[[], object]]


def measure(settings: BillSettings, report: Report) -> Tables:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.inference_mode():
            return tables_of(settings, step_times(settings, report))
    finally:
        torch.set_num_threads(before)


def step_times(settings: BillSettings, report: Report) -> dict[tuple[int, str], list[float]]:
    """Milliseconds of CPU time of one step, by n and layer: a value a repeat, in an order drawn each time."""
    steps = steps_of(settings)
    rng = np.random.default_rng(0)
    times: dict[tuple[int, str], list[float]] = {key: [] for key in steps}
    for number in range(settings.repeats + 1):
        report(number / (settings.repeats + 1), f"round {number} of {settings.repeats}")
        for key in shuffle(list(steps), rng):
            started_at = time.process_time()
            for _ in range(settings.tokens):
                steps[key]()
            spent = 1e3 * (time.process_time() - started_at) / settings.tokens
            if number > 0:  # round 0 warms up
                times[key].append(spent)
    return times


def steps_of(settings: BillSettings) -> Steps:
    """The token after n, again and again: the same place in the cache, the same state before it."""
    torch.manual_seed(0)
    D, lengths = settings.d_model, sorted(set(settings.lengths))
    layer, block = lstm_layer(D), causal_block(D, lengths[-1] + 1)
    steps: Steps = {}
    for n in lengths:
        x_TBD, new_1BD = torch.randn(n, 1, D), torch.randn(1, 1, D)
        state, cache = lstm_state(layer, x_TBD), read(block, x_TBD.view(1, 1, n, D), room=n + 1)
        steps[n, BLOCK.name] = lambda n=n, c=cache, x=new_1BD: attention_step(block, x[None], c, n)
        steps[n, LSTM.name] = lambda s=state, x=new_1BD: lstm_step(layer, x, s)
    return steps


def median_of(times: list[float]) -> Row:
    """Median milliseconds with the interval that a median of ratios has: these are to 1 ms."""
    return ratio_of(times, [1.0] * len(times)).row()


def tables_of(settings: BillSettings, times: dict[tuple[int, str], list[float]]) -> Tables:
    ns, layers = sorted({n for n, _ in times}), (BLOCK, LSTM)
    first, last = ns[0], ns[-1]
    return {
        "growth": [
            {"runner": layer.name, "n_first": first, "n_last": last}
            | ratio_of(times[last, layer.name], times[first, layer.name]).row()
            for layer in layers
        ],
        "times": [
            {"n_before": n, "runner": name, "clock": "CPU time", **median_of(values)}
            for (n, name), values in sorted(times.items())
        ],
        "ratios": [{"n_before": n, **ratio_of(times[n, BLOCK.name], times[n, LSTM.name]).row()} for n in ns],
        "memory": [
            {"n_before": n, "runner": layer.name, "floats": floats, "bytes": FLOAT_BYTES * floats}
            for n, layer in product(ns, layers)
            for floats in (state_floats(layer, n, settings.d_model),)
        ],
    }
