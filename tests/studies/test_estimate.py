"""Estimates need not be right, but they must be positive and grow with what they count."""

import json
from dataclasses import dataclass, replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_of_a_run import run_settings

from isoloss.models import count, family, shape_of
from isoloss.records import reference
from isoloss.records.store import read_plan, read_record, run_folder
from isoloss.studies import estimate
from isoloss.studies.estimate import MachineRate
from isoloss.training.schedule import updates
from isoloss.training.settings import RunSettings
from isoloss.units import Count

HERE = MachineRate(1e10, 100, "made up")
REFERENCE = replace(HERE, rate=1e11)
"""About that of the machine of the reference studies."""


@dataclass
class Sizes:
    d_model: int
    d_head: int = 1000


def counts(matmul=1e6, attention=0.0, head=0.0):
    return Count(1, 1, 1, matmul, attention, head)


@given(st.floats(1, 1e12), st.integers(1, 20_000), st.floats(1.01, 100))
def test_time_grows_with_flops_and_falls_with_width_and_rate(flops, width, factor):
    def taken(flops, width, machine=HERE):
        return estimate.seconds(counts(flops), 1000, Sizes(width), machine)

    seconds = taken(flops, width)
    assert seconds > 0
    assert taken(flops * factor, width) == pytest.approx(seconds * factor)
    assert taken(flops, width + 1) < seconds
    assert taken(flops, width, MachineRate(1e10 * factor, 100, "")) < seconds


def test_at_the_width_of_half_speed_it_takes_twice_as_long():
    for width, seconds in ((100, 2.0), (10**9, 1.0)):
        taken = estimate.seconds(counts(1e10 / 3), 1, Sizes(width), HERE)
        assert taken == pytest.approx(seconds, rel=1e-6)


def test_narrow_heads_slow_attention_alone_and_on_a_processor_alone():
    """FULL_SPEED_HEAD / d_head times as long; on a GPU attention goes by d_model as all else."""
    attention = counts(0.0, 1e10 / 3)
    for d_head, seconds in ((9, 10.0), (45, 2.0), (90, 1.0), (180, 1.0)):
        assert estimate.seconds(attention, 1, Sizes(100, d_head), HERE) == pytest.approx(seconds)
        assert estimate.seconds(counts(1e10 / 3), 1, Sizes(100, d_head), HERE) == pytest.approx(2.0)
    gpu = MachineRate(1e10, 100, "", gpu=True)
    assert estimate.seconds(attention, 1, Sizes(100, 9), gpu) == pytest.approx(2.0)


BASE = {
    "params_total": 1000,
    "width": 64,
    "layers": 2,
    "exits": 1,
    "vocab": 1024,
    "tokens": 65536,
    "context": 16,
}


@pytest.mark.parametrize("stacked", [True, False])
def test_memory_grows_with_everything_it_counts(stacked):
    bytes_ = estimate.memory_bytes(**BASE, stacked=stacked)
    assert bytes_ > estimate.PROCESS_BYTES[stacked] + 28 * 1000
    for key, value in BASE.items():
        more = estimate.memory_bytes(**BASE | {key: 2 * value}, stacked=stacked)
        assert (more > bytes_) == (key != "context"), key


def test_memory_of_an_update_worked_by_hand():
    """float32 weights, gradients, two moments, the trunk's three; activations of layers; logits."""
    for stacked, floats in ((True, 22 * 2 * 64 + 3.6 * 1024), (False, 18 * 2 * 64 + 2.8 * 1024)):
        bytes_ = estimate.memory_bytes(**BASE, stacked=stacked)
        assert bytes_ == pytest.approx(estimate.PROCESS_BYTES[stacked] + 28 * 1000 + 4 * 65536 * floats)


def test_of_logits_in_pieces_one_piece_is_held():
    whole, large = ({**BASE, "vocab": vocab} for vocab in (2**13, 2**17))
    piece = estimate.CPU_BYTES / 8
    activations = 4 * 65536 * 22 * 2 * 64
    estimated = estimate.memory_bytes(**large, stacked=True)
    assert estimated == pytest.approx(estimate.PROCESS_BYTES[True] + 28 * 1000 + activations + 3.6 * piece)
    assert estimate.memory_bytes(**whole, stacked=True) == pytest.approx(estimated), "just whole"
    assert estimate.memory_bytes(**large, stacked=False) > 5 * estimated, "LSTMs form all"


@pytest.mark.parametrize(("stacked", "exits"), [(True, 1), (True, 4), (False, 1)])
def test_a_small_batch_takes_what_its_evaluation_takes(stacked, exits):
    """Activations of one layer, the logits of each exit, and the log-softmax of one."""
    floats = {True: 20, False: 10}[stacked] * 64 + (exits + 1) * 1024
    for context, tokens in ((16, 8192), (1024, 32 * 1024)):
        sizes = BASE | {"tokens": 16, "context": context, "exits": exits}
        bytes_ = estimate.memory_bytes(**sizes, stacked=stacked)
        assert bytes_ == pytest.approx(estimate.PROCESS_BYTES[stacked] + 28 * 1000 + 4 * tokens * floats)


def test_blocks_that_are_not_usual_count_by_what_they_keep():
    def width(**changes):
        return estimate.width_of(
            shape_of("transformer", {"n_layer": 1, "d_model": 64, "n_head": 2} | changes)
        )

    assert width() == pytest.approx(64)
    assert width(d_ff=64) == pytest.approx(64 * 0.7)
    assert width(d_head=64) == pytest.approx(64 * 1.32)
    assert width(activation="swiglu") == pytest.approx(64 * 1.44)
    assert estimate.width_of(shape_of("lstm", {"n_layer": 1, "d_model": 48})) == 48


PEAKS = [
    ("transformer", {"n_layer": 2, "d_model": 24, "n_head": 1}, 1024, 128, 4, 490),
    ("transformer", {"n_layer": 6, "d_model": 192, "n_head": 6}, 4096, 256, 16, 1147),
    ("transformer", {"n_layer": 4, "d_model": 192, "n_head": 6}, 4096, 256, 16, 1009),
    ("transformer", {"n_layer": 8, "d_model": 32, "n_head": 2}, 1024, 128, 4, 504),
    ("transformer", {"n_layer": 12, "d_model": 64, "n_head": 2}, 1024, 256, 16, 755),
    ("transformer", {"n_layer": 1, "d_model": 384, "n_head": 6}, 1024, 128, 16, 776),
    ("transformer", {"n_layer": 2, "d_model": 64, "n_head": 2}, 8192, 128, 8, 1011),
    ("transformer", {"n_layer": 2, "d_model": 64, "n_head": 2}, 512, 1024, 4, 654),
    (
        "transformer",
        {"n_layer": 6, "d_model": 128, "n_head": 4, "activation": "swiglu", "d_ff": 512},
        1024,
        256,
        16,
        893,
    ),
    ("transformer", {"n_layer": 8, "d_model": 128, "n_head": 4, "d_ff": 128}, 1024, 256, 16, 753),
    ("lstm", {"n_layer": 1, "d_model": 64}, 4096, 128, 4, 718),
    ("lstm", {"n_layer": 2, "d_model": 256}, 1024, 128, 16, 598),
    ("lstm", {"n_layer": 8, "d_model": 64}, 1024, 256, 16, 665),
    ("lstm", {"n_layer": 4, "d_model": 156}, 4096, 256, 16, 801),
    ("looped", {"n_layer": 2, "d_model": 96, "n_head": 3, "recurrence": 4}, 1024, 256, 16, 964),
    ("looped", {"n_layer": 1, "d_model": 64, "n_head": 2, "recurrence": 8}, 1024, 128, 16, 789),
    (
        "looped",
        {"n_layer": 2, "d_model": 64, "n_head": 2, "recurrence": 8, "exits": "last"},
        1024,
        256,
        16,
        837,
    ),
]
"""Family, shape, vocabulary, context, sequences, and the peak in MB of a process that trains as a worker."""


@pytest.mark.parametrize(("name", "values", "vocab", "context", "batch", "peak"), PEAKS)
def test_memory_is_within_15_percent_of_what_workers_took(name, values, vocab, context, batch, peak):
    settings = run_settings(
        family=name,
        shape=values,
        vocab=vocab,
        context=context,
        batch_size=batch,
        tokens=(10 * batch * context,),
    )
    shape = shape_of(name, values)
    estimated = estimate.bytes_of(settings, shape, count(family(name), shape, vocab, context), 1)
    assert estimated == pytest.approx(1e6 * peak, rel=0.15)


TIMES = [
    ("transformer", {"n_layer": 1, "d_model": 8}, 128, 4, 5.85),
    ("transformer", {"n_layer": 4, "d_model": 8}, 128, 4, 10.69),
    ("transformer", {"n_layer": 8, "d_model": 8}, 128, 4, 15.47),
    ("transformer", {"n_layer": 8, "d_model": 10}, 128, 4, 15.69),
    ("transformer", {"n_layer": 8, "d_model": 16}, 64, 2, 11.17),
    ("transformer", {"n_layer": 8, "d_model": 16}, 128, 4, 20.30),
    ("transformer", {"n_layer": 8, "d_model": 16}, 128, 16, 49.08),
    ("transformer", {"n_layer": 8, "d_model": 32}, 128, 4, 34.22),
    ("transformer", {"n_layer": 4, "d_model": 64, "n_head": 2}, 128, 4, 26.50),
    ("lstm", {"n_layer": 8, "d_model": 16}, 128, 4, 12.48),
    ("lstm", {"n_layer": 4, "d_model": 40}, 128, 4, 12.18),
    ("looped", {"n_layer": 1, "d_model": 16, "recurrence": 8, "exits": "last"}, 128, 4, 18.55),
]
"""Family, shape, context, sequences, and milliseconds of CPU of an update: the least of 30, all in turn, on
two cores that others used; the best of the matmuls between them ran at 153 GFLOP/s."""


def test_time_of_narrow_and_deep_models_is_one_factor_from_the_estimate(monkeypatch):
    def ratios():
        factors = []
        for name, values, context, batch, milliseconds in TIMES:
            shape = shape_of(name, values | ({} if name == "lstm" else {"n_head": values.get("n_head", 1)}))
            tokens = (1000 * batch * context,)
            settings = run_settings(family=name, vocab=1024, context=context, batch_size=batch, tokens=tokens)
            counts = count(family(name), shape, 1024, context)
            seconds = estimate.cost(settings, shape, counts, 1, MachineRate(153e9, 100, ""), validation=0)[0]
            factors.append(milliseconds / (1e3 * seconds / updates(settings)))
        return [ratio / median(factors) for ratio in factors]

    assert 1 / 1.5 < min(ratios()) < max(ratios()) < 1.5
    monkeypatch.setattr(estimate, "LAYER_SECONDS", 0.0)
    assert max(ratios()) > 2, "control: by FLOPs alone"


def test_calls_of_layers_take_time_on_a_processor_alone():
    shape, settings = (
        shape_of("looped", {"n_layer": 3, "d_model": 8, "n_head": 1, "recurrence": 2}),
        run_settings(),
    )

    def taken(machine, micro_batches=1):
        return estimate.cost(settings, shape, counts(0.0), micro_batches, machine)[0]

    assert taken(HERE) == pytest.approx(0.8e-3 * 6 * updates(settings))
    assert taken(HERE, micro_batches=2) == pytest.approx(2 * taken(HERE))
    assert taken(replace(HERE, gpu=True)) == 0


def medians_of_time(estimated):
    """CPU seconds of the reference runs over those estimated: medians by study and family, over all's."""
    ratios = {}
    for name in reference.names()[1:]:
        folder = reference.folder(name)
        for run in read_plan(folder)["runs"]:
            record = read_record(run_folder(folder, run["run_id"]))
            settings = RunSettings.model_validate_json(json.dumps(record.settings))
            ratio = record.cpu_seconds / estimated(settings)
            ratios.setdefault((name, record.family), []).append(ratio)
    middle = median(ratio for group in ratios.values() for ratio in group)
    return [median(group) / middle for group in ratios.values()]


def test_time_of_the_reference_studies_is_one_factor_from_the_estimate():
    def seconds(settings, machine=REFERENCE):
        shape = shape_of(settings.family, settings.shape)
        counts = count(family(settings.family), shape, settings.vocab, settings.context)
        return estimate.cost(settings, shape, counts, 1, machine)[0]

    medians = medians_of_time(seconds)
    assert len(medians) >= 5
    assert 1 / 1.25 < min(medians) < max(medians) < 1.25
    alone = replace(REFERENCE, width=0, gpu=True)
    by_flops = medians_of_time(lambda settings: seconds(settings, alone))
    assert max(by_flops) / min(by_flops) > 1.25**2, "control: by FLOPs alone narrow models take longer"


def test_the_rate_of_this_machine_is_measured():
    rates = estimate.matmul_rates(n=128, seconds=0.01, probes=3)
    assert len(rates) == 3
    assert all(1e7 < rate < 1e14 for rate in rates)
    machine = estimate.machine_rate(gpu=False)
    assert machine.rate > 0
    assert "measured now" in machine.basis
    assert estimate.machine_rate(gpu=True).rate > machine.rate
    assert "assumed" in estimate.machine_rate(gpu=True).basis


def test_a_probe_beside_a_neighbour_is_not_the_rate_but_is_said(monkeypatch):
    monkeypatch.setattr(estimate, "matmul_rates", lambda: [55e9, 105e9, 90e9])
    monkeypatch.setattr(estimate.os, "getloadavg", lambda: (5.25, 1.0, 1.0))
    estimate.machine_rate.cache_clear()
    machine = estimate.machine_rate(gpu=False)
    estimate.machine_rate.cache_clear()
    assert machine.rate == 105e9
    assert machine.basis.endswith(
        "105 GFLOP/s for large matmuls on one core, the best of 3 probes from 55; load 5.2"
    )


def test_the_pauses_are_no_part_of_a_rate(monkeypatch):
    pauses = []
    monkeypatch.setattr(estimate.time, "sleep", pauses.append)
    estimate.matmul_rates(n=64, seconds=0.002, probes=4)
    assert pauses == [0.004] * 4
