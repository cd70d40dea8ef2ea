"""`isoloss bench`: each benchmark with a tiny budget, what it says beside what, and what is refused."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from isoloss.bench import cpu, gpu, loops, peers, rows, runs, sweep
from isoloss.bench.report import SOURCE, write_copies
from isoloss.errors import RunError
from isoloss.figures import growth
from isoloss.records import load, reference
from isoloss.records.store import read_plan
from isoloss.training import compiling
from isoloss.training.device import Device

DOCUMENT = {"bench", "machine", "cores", "load", "threads", "isoloss", "versions", "rows"}
SOURCE_RUNS = len(read_plan(reference.folder(SOURCE))["runs"])
ROW = {"what", "value", "unit", "beside", "other", "ratio"}


@pytest.fixture
def small_text(tiny, monkeypatch):
    """A corpus that is tokenized in a blink; designs keep the vocabularies that they count with."""
    monkeypatch.setattr(loops, "CORPUS", tiny)
    monkeypatch.setattr(loops, "MOST_WORDS", 300)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def checked_rows(output):
    document = json.loads(output)
    assert set(document) == DOCUMENT
    for row in document["rows"]:
        assert set(row) == ROW
        assert math.isfinite(row["value"])
        assert row["other"] > 0
        assert row["ratio"] == pytest.approx(row["value"] / row["other"])
    return document["rows"]


def test_cpu_sets_the_loop_beside_its_peers_and_draws_its_growth(isoloss, small_text, monkeypatch, tmp_path):
    monkeypatch.setattr(cpu, "GPTS", cpu.GPTS[:1])
    assert {math.prod(size) for size in cpu.SIZES} == {512, 4096}
    monkeypatch.setattr(cpu, "LSTMS", cpu.LSTMS[:1])
    monkeypatch.setattr(cpu, "COUNTS", (52, 104))
    drawn = tmp_path / "growth.svg"
    code, out, _ = isoloss("bench", "cpu", "--seconds", "0.001", "--json", "--figure", drawn)
    assert code == 0
    table = checked_rows(out)
    peer = {row["beside"] for row in table}
    assert peer == {
        "a plain GPT",
        "a large matmul",
        "torch's LSTM alone",
        "its FLOPs",
        "the estimate",
        "their number",
    }
    assert {row["what"].partition(":")[0] for row in table if ":" in row["what"]} == set(growth.GROWING)
    loops_of_8 = [row for row in table if row["what"].startswith("T_m: looped 1x64, 8 loops")]
    assert [round(row["other"], 1) for row in loops_of_8] == [8.0, 7.0]
    of_runs = [row for row in table if row["what"].startswith("runs: 104 read over 52")]
    assert [(row["unit"], row["other"]) for row in of_runs] == [("x time", 2.0), ("x memory", 2.0)]
    picture = drawn.read_text("utf-8")
    assert all(name in picture for name in growth.GROWING.values())


def test_runs_that_are_read_hold_memory_by_their_number(tmp_path):
    few, more = (tmp_path / name for name in ("few", "more"))
    write_copies(few, 1)
    write_copies(more, 3 * SOURCE_RUNS)
    load(few).table()  # what is imported on the way is held by neither
    assert runs.held(more) / runs.held(few) == pytest.approx(3.0, rel=0.2)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["sweep", "--figure", "x.svg"], "no growth"), (["cpu", "--figure", "x.gif"], "gif")]
    + [(["cpu", option, f"{__file__}/x.svg"], "a file is in the way") for option in ("--figure", "-o")],
)
def test_a_figure_that_cannot_be_is_refused_before_anything_is_timed(isoloss, monkeypatch, arguments, why):
    monkeypatch.setattr(cpu, "time_cpu", lambda *_: pytest.fail("timed"))
    code, out, err = isoloss("bench", *arguments)
    assert (code, out) == (2, "")
    assert why in err


def test_a_gpu_that_is_not_here_is_refused(isoloss, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, out, err = isoloss("bench", "gpu")
    assert (code, out) == (2, "")
    assert "there is no device 'cuda' here" in err


def test_the_gpus_benchmark_is_rehearsed_on_a_processor(isoloss, small_text, tmp_path):
    path = tmp_path / "gpu.json"
    code, out, _ = isoloss("bench", "gpu", "--device", "cpu", "--quick", "-o", path)
    assert code == 0
    table = checked_rows(path.read_text("utf-8"))
    assert len(out.splitlines()) == len(table)
    exact = [row for row in table if row["beside"] == "allowed"]
    assert len(exact) == 5 * 3
    assert all(row["ratio"] <= 1 for row in exact)
    moved = [row for row in table if row["beside"] == "allowed apart"]
    assert all(row["value"] > 0.2 for row in moved), "control: what is allowed would not hide an update"
    units = [row["unit"] for row in table if row["unit"] not in ("nats", "bytes")]
    assert units == ["tokens/s", "tokens/s", "tokens/s", "TFLOP/s", "tokens/s"]


def test_a_device_that_computes_otherwise_is_told_off_after_all_rows(small_text, monkeypatch):
    right = gpu.losses

    def wrong(design, device, *, blocks=True, **sizes):
        return right(design, device, blocks=blocks, **sizes) + (0.0 if blocks else 0.01)

    monkeypatch.setattr(gpu, "losses", wrong)
    seen = []
    with pytest.raises(RunError, match="transformer: in blocks, one by one") as caught:
        seen += gpu.check_exactness("cpu", [replace(gpu.TINY[0])])
    assert "alone, in a cohort" not in str(caught.value)


@pytest.mark.parametrize("loss", [1.0, math.nan])
def test_weights_that_do_not_move_prove_nothing(small_text, monkeypatch, loss):
    monkeypatch.setattr(gpu, "losses", lambda *_, members=1, **__: torch.full((gpu.UPDATES, members), loss))
    with pytest.raises(RunError, match=f"transformer: moved by {gpu.UPDATES} updates"):
        list(gpu.check_exactness("cpu", gpu.TINY[:1]))


def test_on_a_gpu_all_transformers_are_compiled_as_their_peers_are(monkeypatch):
    made = []
    monkeypatch.setattr(gpu, "choose", lambda *_: Device(torch.device("cpu"), autocast=False))
    monkeypatch.setattr(gpu, "find", lambda device: torch.device(device))
    for name in ("matmul", "lstm_alone"):
        monkeypatch.setattr(gpu, name, lambda *_, **__: None)
    monkeypatch.setattr(gpu, "rates", lambda sides, *_: [1.0] * len(sides))
    for name in ("loop", "plain_gpt"):
        monkeypatch.setattr(gpu, name, lambda first, *_, compiled=False, **__: made.append((first, compiled)))
    list(gpu.time_gpu("cuda", 0.1, gpu.SMALL, gpu.LARGE, gpu.LSTMS))
    assert [compiled for _, compiled in made] == [True] * 3 * 3 + [True] * 2 * 2 + [False] * 2


def test_a_sweep_is_set_beside_the_compiled_loop(isoloss, small_text, monkeypatch):
    plain = compiling.compiled
    monkeypatch.setattr(compiling, "compiled", lambda function: plain(function, backend="eager"))
    monkeypatch.setattr(sweep, "MEMBERS", 2)
    code, out, _ = isoloss("bench", "sweep", "--seconds", "0.001", "--json")
    assert code == 0
    assert [(row["unit"], row["beside"]) for row in checked_rows(out)] == [
        ("tokens/s", "one at a time, compiled"),
        ("s", "a later one"),
        ("tokens/s", "one at a time, compiled"),
        ("tokens/s", "one at a time"),
    ]


def test_report_is_timed_on_copies_of_the_reference(isoloss):
    code, out, _ = isoloss("bench", "report", "--quick", "--json")
    assert code == 0
    assert [row["unit"] for row in checked_rows(out)] == ["s", "s", "MB"]


def test_copies_are_a_study_with_seeds_of_their_own(tmp_path):
    count = write_copies(tmp_path, 2 * SOURCE_RUNS + 4)
    assert count == 2 * SOURCE_RUNS
    study = load(tmp_path)
    assert len({record.run_id for record in study.records}) == count
    by_shape = {}
    for record in study.records:
        by_shape.setdefault(record.label, []).append((record.seed, record.evaluations[-1].loss))
    for pairs in by_shape.values():
        assert len({seed for seed, _ in pairs}) == len({loss for _, loss in pairs}) == len(pairs)


def test_an_unknown_benchmark_names_those_there_are(isoloss):
    code, _, err = isoloss("bench", "everything")
    assert code == 2
    assert "cpu, gpu, fit, sweep, report" in err


# What the numbers rest on


def test_rates_are_medians_of_turns_after_a_warmup(monkeypatch):
    now = 0.0

    def side(durations):
        queue = iter(durations)

        def step():
            nonlocal now
            now += next(queue)
            return 10.0

        return step

    # The first turn, slow with imports, does not count.
    fast, slow = side([100.0, 1.0, 1.0, 5.0]), side([1.0, 2.0, 8.0, 2.0])
    assert rows.rates([fast, slow], 0.5, lambda: now) == [10.0, 5.0]


def test_the_plain_gpt_learns():
    step = peers.plain_gpt((1, 16, 1), 50, (2, 8), cpu.CPU, compiled=False)
    assert step() == 16.0
    assert peers.plain_gpt((1, 16, 1), 50, (2, 8), cpu.CPU, compiled=False, reads_every=3)() == 48.0
    model = peers.PlainGPT(1, 16, 1, 50, 8)
    x_BT = torch.randint(50, (2, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(20):
        loss = model(x_BT, x_BT.roll(-1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(50), abs=0.1)
    assert losses[-1] < losses[0] - 0.5


def test_flops_of_a_matmul():
    assert peers.matmul(8, torch.float32, torch.device("cpu"), times=3)() == 3 * 2 * 8**3


def test_memory_held_is_that_of_the_batch_and_the_weights(small_text):
    small, large = (cpu.transformer(2, 64, 2, size=(batch, 128)) for batch in (4, 8))
    state = 16 * small.count().params_total
    assert cpu.held_bytes(large) - state == pytest.approx(2 * (cpu.held_bytes(small) - state), rel=0.05)
    logits = 4 * 4 * 128 * small.vocab
    assert logits < cpu.held_bytes(small) - state < 4 * logits


def test_the_script_for_a_gpu_is_the_same_one_without(tmp_path):
    root = Path(__file__).parents[2]
    script = ["sh", str(root / "benchmarks" / "gpu.sh")]
    out = tmp_path / "gpu.json"
    environment = os.environ | {"OUT": str(out), "PYTHON": sys.executable}
    subprocess.run([*script, "--device", "cpu", "--tiny"], env=environment, check=True, capture_output=True)
    assert any(row["unit"] == "tokens/s" for row in checked_rows(out.read_text("utf-8")))
    refused = subprocess.run([*script, "--all"], env=environment, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "usage" in refused.stderr
