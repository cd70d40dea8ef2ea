"""FLOPs, hours and money."""

import json

import pytest

from isoloss.errors import InputError
from isoloss.plans import PF_DAY, gpus, hardware, plan
from isoloss.plans.cost import memories


def test_units():
    assert PF_DAY == 8.64e19
    # A machine of 1 PFLOP/s at full use does one PF-day in a day.
    card = hardware("h100", 1.0)
    assert card.hours(PF_DAY) == pytest.approx(24 * 1e15 / 989e12)


def test_peaks_are_dense_and_each_has_a_source():
    assert {"a100", "h100", "h200", "b200", "l40s", "rtx4090", "tpu-v5p", "tpu-v5e", "mi300x"} <= set(gpus())
    for name in gpus():
        card = hardware(name, 0.4)
        assert 5e13 < card.peak_flops < 3e15
        assert card.source
    # The figures with 2:4 sparsity are twice these.
    assert hardware("a100", 0.4).peak_flops == 312e12
    assert hardware("h100", 0.4).peak_flops == 989e12


def test_each_card_has_its_memory():
    for name in gpus():
        sizes = memories(name)
        assert sizes == tuple(sorted(sizes))
        assert 16e9 <= sizes[0] <= sizes[-1] < 300e9
    assert memories("v100") == (16e9, 32e9)
    assert memories("rtx4090") == (24e9,)


def test_unknown_cards_and_shares_are_refused():
    with pytest.raises(InputError, match=r"h100, .*; hours on another go by its dense bf16 peak"):
        hardware("h9000", 0.4)
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(InputError):
            hardware("h100", share)


def test_hours_and_money(known):
    law = known("besiroglu")
    free = plan(law, flops=1e21)
    assert free.gpu_hours == pytest.approx(1e21 / (989e12 * 0.4 * 3600))
    assert free.money is None
    paid = plan(law, flops=1e21, gpu="a100", mfu=0.5, price_per_gpu_hour=2.0)
    assert paid.gpu_hours == pytest.approx(1e21 / (312e12 * 0.5 * 3600))
    assert paid.money == pytest.approx(2 * paid.gpu_hours)
    assert paid.params == free.params


def test_json_is_strict_and_keeps_the_contract(known, fitted):
    for planned in (plan(known("besiroglu"), flops=1e21), plan(fitted, loss=2.3, unique_tokens=1e10)):
        data = json.loads(json.dumps(planned.to_json(), allow_nan=False))
        assert {"flops", "params", "tokens", "loss", "intervals", "warnings", "extrapolation"} <= set(data)
        assert data["hardware"]["gpu"] == "h100"
        assert data["penalty"]["within_10_percent"][0] < 1
        assert data["flops"] == planned.flops
