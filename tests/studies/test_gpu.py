"""How a GPU trains a run, as a function of its memory alone."""

from dataclasses import replace

import pytest
import torch
from settings_of_a_run import run_settings

from isoloss.models import count, family, shape_of
from isoloss.studies import gpu, launch, plan, runner, spec
from isoloss.studies.engines.messages import Engine
from isoloss.studies.estimate import PROCESS_BYTES, bytes_of
from isoloss.studies.plan import PlannedRun
from isoloss.training.compiling import pays
from isoloss.training.settings import Execution


def planned(d_model=32, *, name="transformer", context=512, batch_size=32, seed=0, vocab=4096, **shape):
    heads = {} if name == "lstm" else {"n_head": 1}
    values = {"n_layer": 2, "d_model": d_model, **heads, **shape}
    settings = run_settings(
        family=name,
        shape=values,
        vocab=vocab,
        context=context,
        batch_size=batch_size,
        tokens=(20 * context * batch_size,),
        seed=seed,
    )
    known = shape_of(name, values)
    counts = count(family(name), known, vocab, context)
    return PlannedRun(settings, name, counts, 1.0, bytes_of(settings, known, counts, 1))


@pytest.mark.parametrize(
    ("d_model", "batch_size", "gigabytes", "members"),
    [
        (32, 32, 80, 8),  # 16,384 tokens a step, as in the prototype
        (32, 256, 80, 1),  # a step that is large by itself
        (32, 1, 80, 64),
        (1024, 32, 80, 1),  # 25M parameters fill it
    ],
)
def test_members_by_tokens_and_size(d_model, batch_size, gigabytes, members):
    assert gpu.members_at_once(planned(d_model, batch_size=batch_size), gigabytes * 1e9) == members


def test_no_more_members_than_fit():
    run = planned()
    alone = run.memory_bytes - PROCESS_BYTES[True]
    assert gpu.members_at_once(run, (PROCESS_BYTES[True] + 3.1 * alone) / gpu.SHARE) == 3
    assert gpu.members_at_once(run, 1e6) == 1, "one is tried whatever the estimate says"


def test_those_that_share_a_gpu_share_its_memory(monkeypatch):
    run, sequence = planned(), planned(768, context=1024, batch_size=64, vocab=50304)
    memory = (PROCESS_BYTES[True] + 4.1 * (run.memory_bytes - PROCESS_BYTES[True])) / gpu.SHARE
    assert [gpu.members_at_once(run, sharers * memory, sharers) for sharers in (1, 4)] == [4, 4]
    assert gpu.members_at_once(run, memory, 4) < 4
    pair = [gpu.execution_on_gpu(sequence, Execution(), 80e9, sharers).micro_batches for sharers in (1, 4)]
    assert pair[1] > pair[0]

    monkeypatch.setattr(gpu, "gpu_bytes", lambda: memory)
    monkeypatch.setattr(gpu, "speed", lambda *_: pytest.fail("another's speed"))
    long = replace(run, seconds=600.0)
    for engine in (Engine(True, run, here=True, sharers=4), Engine(True, run, sharers=4)):
        most = runner.most_members(long, 64, engine=engine, execution=Execution(), task_of=list, say=print)
        assert most == gpu.members_at_once(run, memory, 4)


def test_engines_say_how_many_share_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [runner.local_engine("auto", workers, 1).sharers for workers in (None, 2, 3, 8)] == [1, 1, 2, 4]
    scale = spec.read("architectures").scale["gpu"]
    shares = [launch.engine_of("ray", [f"gpus={gpus}"], scale, None).sharers for gpus in (0, 0.25, 1, 2)]
    assert shares == [1, 4, 1, 1]


def test_the_fewest_micro_batches_that_fit():
    run, asked = planned(768, context=1024, batch_size=64, vocab=50304), Execution()
    shape = shape_of("transformer", run.settings.shape)
    counts = []
    for memory in (1e12, 80e9, 24e9, 1e9):
        micro_batches = gpu.execution_on_gpu(run, asked, memory).micro_batches
        counts.append(micro_batches)
        if micro_batches < 64:
            assert bytes_of(run.settings, shape, run.counts, micro_batches, memory) <= gpu.SHARE * memory
        if micro_batches > 1:
            half = bytes_of(run.settings, shape, run.counts, micro_batches // 2, memory)
            assert half > gpu.SHARE * memory
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 64, "one sequence at a time, whatever the estimate says"
    assert gpu.execution_on_gpu(run, Execution(micro_batches=8), 1e12).micro_batches == 8


def test_a_carried_state_has_no_micro_batches():
    run = planned(name="lstm", carry=True)
    assert gpu.execution_on_gpu(run, Execution(), 1e9).micro_batches == 1
    assert gpu.execution_on_gpu(planned(name="lstm"), Execution(), 1e9).micro_batches > 1


def test_a_gpu_gets_cohorts_and_a_processor_single_runs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.gpu_bytes.cache_clear()
    runs = [planned(seed=seed) for seed in range(10)] + [planned(1024, seed=seed) for seed in range(2)]

    def most(run, alike):
        return gpu.members_at_once(run)

    assert sorted(len(group) for group in runner.groups_of(runs, most)) == [1, 1, 2, 8]
    assert [len(group) for group in runner.groups_of(runs, lambda run, alike: 1)] == [1] * 12
    longest = replace(runs[0], seconds=100.0)
    assert runner.groups_of([*runs[1:], longest], lambda run, alike: 1)[0] == [longest]


def calibrated(run, alike=gpu.MOST_MEMBERS, say=print):
    return gpu.calibrated(run, list, 1.0, alike=alike, say=say)


def test_a_calibration_takes_the_fastest_and_is_made_once(monkeypatch, tmp_path):
    speeds, asked = {4: 10.0, 8: 30.0}, []

    def speed(task, seconds):
        asked.append(len(task))
        if len(task) == 16:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return speeds[len(task)]

    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path))
    monkeypatch.setattr(gpu, "tokens_per_second", speed)
    monkeypatch.setattr(gpu, "gpu_bytes", lambda: 80e9)
    run = replace(planned(), seconds=600.0)
    assert calibrated(run) == 8
    speeds[4] = 99.0
    assert calibrated(replace(run, settings=run.settings.model_copy(update={"seed": 5}))) == 8
    assert asked == [4, 8, 16]
    assert calibrated(replace(planned(d_model=40), seconds=600.0)) == 4, "another shape is timed"
    assert calibrated(replace(planned(d_model=48), seconds=1.0)) == 8, "a short run is not"
    assert len(asked) == 6
    # Of two runs two train at once, whatever is the fastest; of ten a count above ten says no more than ten.
    assert calibrated(replace(planned(d_model=56), seconds=600.0), alike=2) == 8
    assert len(asked) == 6
    lines, speeds[10] = [], 50.0
    other = replace(planned(d_model=40), seconds=600.0)
    assert calibrated(other, alike=10, say=lines.append) == 4
    assert asked[6:] == [10]
    assert len(lines) == 1
    assert lines[0].startswith("timing 10 x ")


@pytest.mark.parametrize("study", ["architectures", "looped"])
def test_cohorts_that_fill_a_gpu_for_a_minute_are_compiled(study):
    runs = plan.plan(spec.read(study).scale["gpu"], gpu=True)
    groups = runner.groups_of(runs, lambda run, alike: gpu.members_at_once(run, 80e9))
    by_kind = {}
    for group in groups:
        settings = group[0].settings
        shape = shape_of(settings.family, settings.shape)
        long = sum(run.seconds for run in group) > 60
        by_kind.setdefault((settings.family, long), []).append(pays(settings, shape, "cuda", len(group)))
    assert all(all(compiled) for (family, long), compiled in by_kind.items() if long and family != "lstm")
    assert sum(len(compiled) for (family, long), compiled in by_kind.items() if long and family != "lstm") > 3
    assert not any(by_kind.get(("lstm", True), [])), "control"
