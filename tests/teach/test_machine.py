"""The calibration: operations by formula, the clock's doubt, and what the deck expects of this machine."""

import os
from types import SimpleNamespace

import pytest
import torch

from isoloss.teach.machine import measure, tell
from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.panels import PANELS

SMALL = MachineSettings(size=64, repeats=3)


@pytest.fixture
def clock(monkeypatch):
    """clock(0.5, 0.25): the seconds that each repeat takes, one after the other."""

    def make(*seconds):
        now, readings = 0.0, []
        for passed in seconds:
            readings += [now, now := now + passed]
        left = iter(readings)
        monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: next(left)))

    return make


def test_a_product_of_matrices_is_two_n_cubed_operations(clock):
    clock(0.4, 0.1, 0.2)
    products = round(2e8 / 64**3)  # so many that the clock can tell
    work = 2e-9 * products * 64**3
    assert measure.rate(SMALL) == pytest.approx({"gflops": work / 0.2, "low": work / 0.4, "high": work / 0.1})


def test_large_matrices_are_multiplied_once_a_repeat(clock):
    clock(1.0, 1.0, 1.0)
    large = MachineSettings(size=640, repeats=3)
    assert measure.rate(large)["gflops"] == pytest.approx(2e-9 * 640**3)


def test_one_thread_and_all_are_measured_and_the_threads_put_back(monkeypatch):
    before, heard, used = torch.get_num_threads(), [], []

    def rate(settings):
        used.append(torch.get_num_threads())
        return {"gflops": 1.0, "low": 1.0, "high": 1.0}

    monkeypatch.setattr(measure, "rate", rate)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    rows = measure.measure(SMALL, lambda done, text, tables=None: heard.append((done, text)))["rates"]
    assert [row["threads"] for row in rows] == used == [1, 2]
    assert [row["n"] for row in rows] == [3, 3]
    assert [done for done, _ in heard] == [0.0, 0.5]
    assert torch.get_num_threads() == before
    monkeypatch.setattr(os, "cpu_count", lambda: None)  # an unknown number is one
    assert len(measure.measure(SMALL, lambda *_: None)["rates"]) == 1


def test_a_real_calibration_is_a_rate_between_its_bounds():
    for row in measure.measure(SMALL, lambda *_: None)["rates"]:
        assert 0 < row["low"] <= row["gflops"] <= row["high"]


RATES = {"rates": [{"threads": 1, "n": 3, "gflops": 20.0, "low": 18.0, "high": 21.0}]}


def test_half_the_speed_is_said_to_take_twice_as_long(monkeypatch):
    budget = {"cpu_seconds": {"reach": 30.0, "race": 70.0}, "gflops": 40.0}
    budget |= {"machine": "a made-up processor", "made": "2026-01-02"}
    monkeypatch.setattr(tell, "recorded_budget", lambda: budget)
    rate, cost = tell.sentences(SMALL, RATES)
    assert "20 GFLOP/s (18 to 21, 3 repeats)" in rate.text
    assert "100 CPU-seconds on a core that did 40 GFLOP/s (a made-up processor, 2026-01-02)" in cost.text
    assert cost.text.endswith("expect about 200 here.")


def test_the_shipped_budget_counts_panels_that_there_are_and_run_all_has_ninety_seconds():
    shipped = tell.recorded_budget()
    assert shipped["cpu_seconds"].keys() - {"starting"} == {panel.name for panel in PANELS}
    assert all(seconds > 0 for seconds in shipped["cpu_seconds"].values())
    assert sum(shipped["cpu_seconds"].values()) <= 90
    assert shipped["gflops"] > 0


@pytest.mark.parametrize(("low", "busy"), [(30.0, False), (10.0, True)])
def test_a_busy_machine_says_so(low, busy):
    rows = [{"threads": 1, "gflops": 40.0, "low": low, "high": 45.0, "n": 9}]
    rate = tell.sentences(SMALL, {"rates": rows})[0].text
    assert ("something else is running" in rate) == busy
