"""Sums by position: any partition of the windows gives the same ones, and means are taken once."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoloss import files
from isoloss.corpus.batches import evaluation_windows, lane_batch, windows_before
from isoloss.models import build_cohort, family, shape_of
from isoloss.training.evaluation import evaluate, read_late, sums_of
from isoloss.training.loop import train
from isoloss.training.settings import Execution

CPU = torch.device("cpu")
VOCAB, CONTEXT = 300, 16
SHAPES = {
    "transformer": {"n_layer": 2, "d_model": 16, "n_head": 2},
    "lstm": {"n_layer": 2, "d_model": 16},
    "looped": {"n_layer": 1, "d_model": 16, "n_head": 2, "recurrence": 3},
}


def model_of(name, **shape):
    kind = family(name)
    model = build_cohort(kind, shape_of(name, SHAPES[name] | shape), VOCAB, CONTEXT, [0, 1])
    return model.double()


@pytest.mark.parametrize("name", ["transformer", "lstm", "looped"])
def test_any_partition_of_the_windows_gives_the_same_sums(small_text, name):
    model = model_of(name)
    x_MT, y_MT = evaluation_windows(small_text.validation, count=12, context=CONTEXT)
    whole = evaluate(model, x_MT, y_MT, members=2, device=CPU, batch=12)
    for batch in (1, 5, 7):
        parts = evaluate(model, x_MT, y_MT, members=2, device=CPU, batch=batch)
        for a, b in zip(whole, parts, strict=True):
            assert a.windows == b.windows == 12
            np.testing.assert_allclose(a.sum_PT, b.sum_PT, rtol=1e-12)
            np.testing.assert_allclose(a.sumsq_PT, b.sumsq_PT, rtol=1e-12)
            for part in a.parts:
                assert a.standard_error(part) == pytest.approx(b.standard_error(part), rel=1e-9, abs=1e-7)


def test_control_state_leaking_from_window_to_window_would_be_noticed(small_text):
    """A carried state must be set to zero before each batch, or the partition would matter."""
    model = model_of("lstm", carry=True)
    x_MT, y_MT = evaluation_windows(small_text.validation, count=8, context=CONTEXT)
    first = evaluate(model, x_MT, y_MT, members=2, device=CPU, batch=4)[0]
    second = evaluate(model, x_MT, y_MT, members=2, device=CPU, batch=8)[0]
    np.testing.assert_allclose(first.sum_T("exit_1"), second.sum_T("exit_1"), rtol=1e-12)
    with torch.no_grad():
        leaked = [model(torch.from_numpy(x_MT[i : i + 4]).expand(2, -1, -1)).logits[0] for i in (0, 4)]
        fresh = model_of("lstm", carry=False)
        clean = fresh(torch.from_numpy(x_MT[4:8]).expand(2, -1, -1)).logits[0]
    assert not torch.allclose(leaked[1], clean)


def test_a_carried_state_brings_the_text_before_and_only_that(small_text):
    model = model_of("lstm", carry=True)
    x_MT, y_MT = evaluation_windows(small_text.validation, count=9, context=CONTEXT)
    before_MT = windows_before(small_text.validation, count=9, context=CONTEXT)
    assert (before_MT[1:, -1] == small_text.validation.ids[x_position(small_text, x_MT)[1:] - 1]).all()
    informed = evaluate(model, x_MT, y_MT, before_MT, members=2, device=CPU, batch=9)[0]
    second = evaluate(model, x_MT, y_MT, before_MT, members=2, device=CPU, batch=2)[0]
    np.testing.assert_allclose(informed.sum_T("exit_1"), second.sum_T("exit_1"), rtol=1e-12)
    forgetful = evaluate(model, x_MT, y_MT, members=2, device=CPU)[0]
    assert not np.allclose(informed.sum_T("exit_1"), forgetful.sum_T("exit_1"), rtol=1e-9)


def x_position(text, x_MT):
    """Where in the file each evaluation window begins."""
    ids, n = np.asarray(text.validation.ids), len(x_MT)
    windows = (len(ids) - 1) // CONTEXT
    places = np.arange(n) * windows // n * CONTEXT
    assert all((ids[place : place + CONTEXT] == x).all() for place, x in zip(places, x_MT, strict=True))
    return places


def test_lanes_go_on_where_they_were(small_text):
    pairs = [lane_batch(small_text.train, seed=3, step=s, batch_size=4, context=CONTEXT) for s in range(4)]
    for (_, y_BT), (x_BT, _) in pairwise(pairs):
        assert (y_BT[:, -1] == x_BT[:, 0]).sum() >= 3, "one lane may wrap around the file's end"
    other = lane_batch(small_text.train, seed=4, step=0, batch_size=4, context=CONTEXT)
    assert not (other[0] == pairs[0][0]).all()


@settings(max_examples=50)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 6), st.integers(0, 10**6))
def test_sums_merge_whatever_the_order(sizes, positions, seed):
    loss = np.random.default_rng(seed).gamma(2.0, 2.0, size=(sum(sizes), positions))
    whole, at, parts = sums_of({"exit_1": loss}), 0, []
    for size in sizes:
        parts.append(sums_of({"exit_1": loss[at : at + size]}))
        at += size
    merged = parts[-1]
    for part in parts[:-1]:
        merged = merged + part
    np.testing.assert_allclose(merged.sum_T("exit_1"), whole.sum_T("exit_1"), rtol=1e-12)
    assert merged.windows == whole.windows
    assert whole.mean("exit_1") == pytest.approx(loss.mean(), rel=1e-12)
    if len(loss) > 1:
        expected = loss.mean(axis=1).std(ddof=1) / np.sqrt(len(loss))
        assert whole.standard_error("exit_1") == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["transformer", "looped"])
def test_micro_batches_change_nothing_beyond_rounding(make_task, name):
    curves = []
    for micro in (1, 2, 4):
        task = make_task(name, folder=f"micro{micro}", execution=Execution(micro_batches=micro))
        assert train(task)
        curves.append(pl.read_parquet(task.lead.folder / "curve.parquet"))
    for other in curves[1:]:
        for part in curves[0].columns[4:]:
            assert other[part].to_list() == pytest.approx(curves[0][part].to_list(), abs=1e-4)


def test_the_record_agrees_with_its_positions(make_task):
    task = make_task("looped")
    assert train(task)
    positions = pl.read_parquet(task.lead.folder / "positions.parquet")
    for e in files.read_json(task.lead.folder / "record.json")["evaluations"]:
        measured = positions.filter(pl.col("step") == e["step"], pl.col("cooled") == e["cooled"])
        for part, value in (("exit_3", e["loss"]), ("expected", e["expected"]), ("total", e["total"])):
            rows = measured.filter(pl.col("part") == part)
            assert rows["sum"].sum() / rows["count"].sum() == pytest.approx(value, rel=1e-12)
        assert e["exits"][-1] == e["loss"]
        assert e["total"] == pytest.approx(e["expected"] - 0.1 * e["entropy"], rel=1e-5)
        assert 0 < e["entropy"] <= np.log(3) + 1e-6


def test_bits_per_byte_is_nats_over_bytes(make_task, small_text):
    task = make_task("transformer")
    assert train(task)
    e = files.read_json(task.lead.folder / "record.json")["evaluations"][-1]
    _, y_MT = evaluation_windows(small_text.validation, count=8, context=CONTEXT)
    nats = e["loss"] * y_MT.size
    assert e["bits_per_byte"] == pytest.approx(
        nats / np.log(2) / small_text.token_bytes[y_MT].sum(), rel=1e-9
    )


@pytest.mark.parametrize(
    ("device", "order"), [("cpu", "send read send read"), ("cuda", "send send read read")]
)
def test_a_gpu_is_sent_all_before_it_is_asked_and_a_processor_keeps_nothing(device, order):
    seen = []

    def sent():
        for number in range(2):
            seen.append("send")
            yield number

    assert [seen.append("read") or number for number in read_late(sent(), torch.device(device))] == [0, 1]
    assert " ".join(seen) == order
