"""Runs that lost what they had learned are found whatever they say, and no run that only wavers is."""

from math import log
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import isoloss
from isoloss.analysis.findings import findings
from isoloss.records import load, reference
from isoloss.records.divergence import lost, worse_than_guessing

GUESS, STEPS = log(1024), 400
rng = np.random.default_rng(0)


def curve(losses, branch_at=None):
    """A trunk, which from ``branch_at`` on is a branch."""
    step = np.arange(len(losses)) + 1
    branch = (step >= (branch_at or np.inf)).astype(np.int64)
    return pl.DataFrame({"branch": branch, "step": step, "total": np.asarray(losses, dtype=float)})


def falling(noise=0.1):
    """From a guess down to about 4 nats, with the noise of small batches."""
    return 4 + (GUESS - 4) * np.exp(-np.arange(STEPS) / 60) + noise * rng.standard_normal(STEPS)


def rise(losses, by, start, stop=None):
    raised = losses.copy()
    raised[start:stop] += by
    return raised


@pytest.mark.parametrize("by", [0.8, 2.0, 100.0])
def test_a_rise_that_stays_is_found_on_the_trunk_and_in_a_branch(by):
    losses = rise(falling(), by, 300)
    assert "rose from" in lost(curve(losses), GUESS)
    assert "stayed" in lost(curve(losses, branch_at=320), GUESS)


@pytest.mark.parametrize(
    "losses",
    [
        falling(),
        falling(noise=0.5),
        rise(falling(), 3.0, 200, 260),  # a spike from which it recovers
        rise(falling(), 3.0, STEPS - 4),  # a spike that has not lasted
        rise(falling(), -1.0, 300),  # of the other sign
        rise(falling(), 0.1, 300),  # less than a tenth of what was gained
        np.full(STEPS, GUESS) + 0.1 * rng.standard_normal(STEPS),  # learns nothing
        falling()[:20],  # too short to be judged
        [],
    ],
)
def test_a_run_that_wavers_recovers_or_falls_has_not_diverged(losses):
    assert lost(curve(losses), GUESS) is None


def test_a_rise_in_the_first_of_two_branches_is_found():
    losses = falling()
    last = pl.concat(
        [curve(losses[:360]), curve(losses[360:], branch_at=1).with_columns(pl.col("step") + 360)]
    )
    first = pl.DataFrame({"branch": np.full(60, 2), "step": np.arange(200, 260), "total": np.full(60, 6.0)})
    assert lost(last, GUESS) is None
    assert "to 6 nats" in lost(pl.concat([last, first]), GUESS)


def evaluation(loss, tokens, se=0.01, cooled=True):
    return SimpleNamespace(loss=loss, loss_se=se, tokens=tokens, cooled=cooled)


def test_a_run_that_ends_above_a_guess_has_diverged_and_one_that_began_there_has_not():
    ends_above = [evaluation(4.0, 10), evaluation(GUESS + 0.1, 20, cooled=False)]
    assert "above ln V = 6.93" in worse_than_guessing(ends_above, GUESS)
    assert worse_than_guessing([evaluation(GUESS + 9, 10), evaluation(4.0, 20)], GUESS) is None
    assert worse_than_guessing([evaluation(GUESS + 0.01, 0, cooled=False)], GUESS) is None, "untrained"
    assert worse_than_guessing([], GUESS) is None


def test_no_run_that_ships_is_accused_wherever_it_is_cut_off():
    study = load(reference.folder("reference"))
    trunks = study.curves().filter(pl.col("branch") == 0)
    assert {record.status for record in study.records} == {"finished"}
    accused = [
        (run_id, length)
        for (run_id,), trunk in trunks.group_by("run_id")
        for length in range(32, trunk.height, 8)
        if lost(trunk[:length].select("branch", "step", "total"), GUESS)
    ]
    assert accused == []


WILD = """
name = "mixed"
title = "Which family is ahead?"
[scale.mini]
corpus = "tiny"
vocabulary = 300
context = 16
batch_size = 4
tokens = [640, 1280]
seeds = [0, 1]
evaluation = { windows = 4, final_windows = 8, trace_windows = 2 }
[[scale.mini.models]]
family = "lstm"
shapes = [{ n_layer = 1, d_model = 8 }, { n_layer = 1, d_model = 16 }]
learning_rates = [9.9]
[[scale.mini.models]]
family = "transformer"
shapes = [{ n_layer = 1, d_model = 8, n_head = 1 }, { n_layer = 1, d_model = 16, n_head = 1 }]
learning_rates = [0.01]
"""


def test_a_family_trained_at_a_wild_rate_loses_its_place_and_no_comparison_is_made(tiny, tmp_path):
    (tmp_path / "mixed.toml").write_text(WILD)
    study = isoloss.run(
        str(tmp_path / "mixed.toml"), out=tmp_path / "out", changes=["recipe.clip=1e30"], workers=1
    )
    gone = {record.label for record in study.records if record.status == "diverged"}
    assert gone, "the rate was meant to be wild"
    assert all(label.startswith("lstm") for label in gone)
    left = study.table().filter(pl.col("status") == "finished", pl.col("family") == "lstm")
    assert left.height == 0 or left["loss"].max() < log(300)
    sentences = [finding.sentence for finding in findings(study)]
    assert any("diverged; no figure, law or finding has them" in sentence for sentence in sentences)
    assert not any("ahead" in sentence for sentence in sentences)
