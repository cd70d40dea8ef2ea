"""What the amnesia demo measures: expectations with tolerances from seeds, each with a control."""

import numpy as np
import polars as pl
import pytest

from isoloss import stats
from isoloss.teach import panels
from isoloss.teach.amnesia.contest import measure
from isoloss.teach.amnesia.contest.measure import (
    Cell,
    binding_cell,
    contest,
    distances,
    first_letter_cell,
    random_place_cell,
)
from isoloss.teach.amnesia.contest.outcomes import outcomes
from isoloss.teach.amnesia.contest.sides import params_of
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, BLOCK, DEFAULT
from isoloss.teach.amnesia.reach import measure as reach
from isoloss.teach.amnesia.settings import (
    BindingSettings,
    FirstLetterSettings,
    RandomPlaceSettings,
    ReachSettings,
)
from isoloss.teach.amnesia.value_set import value_set_share
from isoloss.teach.shares import gap
from isoloss.teach.tasks import Binding


def quiet(done, text, tables=None):
    assert 0 <= done <= 1
    assert text


def nothing(*_):
    """Of a cohort whose training is over, or at a look."""


def ended(cell, names, settings):
    """The outcome of some sides of a cell at the settings' one rate."""
    chosen = Cell(cell.labels, cell.task, [side for side in cell.sides if side.name in names], cell.test)
    rows = contest([chosen], settings, quiet, nothing, nothing)
    by_side = outcomes(pl.DataFrame(rows, infer_schema_length=None))
    return {side: by_side[side][0] for side in names}


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("cell", [first_letter_cell, random_place_cell, lambda t, w: binding_cell(4, 64, w)])
def test_sides_have_parameters_within_a_tenth(cell, width):
    one = cell(20, width)
    counts = [params_of(side, one.task) for side in one.sides]
    assert max(counts) < 1.1 * min(counts)
    # Control: an LSTM as wide as the Transformer would not be like for like.
    wide = next(side for side in one.sides if side.family == "lstm")
    same = type(wide)(wide.name, "lstm", wide.shape | {"d_model": width})
    assert params_of(same, one.task) < params_of(one.sides[0], one.task) / 1.1


@pytest.mark.parametrize(("pairs", "values"), [(1, 5), (2, 8), (4, 8), (8, 8), (4, 32), (8, 32)])
def test_the_value_set_line_is_what_simulation_gives(pairs, values):
    draw = np.random.default_rng(3)
    drawn = draw.integers(0, values, (20_000, pairs))
    most = np.array([np.bincount(row).max() for row in drawn]) / pairs
    se = most.std() / len(most) ** 0.5
    assert abs(most.mean() - value_set_share(pairs, values)) <= 4 * se + 1e-12
    # Control: guessing the values evenly is another line.
    assert abs(most.mean() - 1 / values) > 4 * se


def test_the_value_set_line_is_what_its_strategy_earns_on_the_very_strings():
    x_BT, y_BT = Binding(4, 64, 32, one_query=True).batch(np.random.default_rng(5), 2_000)
    values_BD = x_BT[:, 1:8:2]
    said_B = np.array([np.bincount(row).argmax() for row in values_BD])
    low, high = stats.share(int((y_BT == said_B[:, None]).any(1).sum()), 2_000).interval
    assert low < value_set_share(4, 32) < high
    assert not low < value_set_share(8, 32) < high


def test_a_default_lstm_reaches_orders_of_magnitude_less_far_than_forget_bias_3():
    settings = ReachSettings(seeds=3, strings=16, length=64)
    rows = reach.measure(settings, quiet)["reach"]
    at = {row["side"]: row for row in rows if row["k"] == 19}
    assert at[DEFAULT]["high"] < 1e-3 * at[BIAS_3]["low"]
    assert 1e-6 < at[DEFAULT]["value"] < 1e-3 < 0.05 < at[BIAS_3]["value"] < 1
    # Control: at one step the starts do not differ by orders of magnitude.
    near = {row["side"]: row for row in rows if row["k"] == 1}
    assert not near[DEFAULT]["high"] < 1e-3 * near[BIAS_3]["low"]
    values = [row["value"] for row in rows if row["side"] == BLOCK and row["k"]]
    assert max(values) < 3 * min(values)
    assert max(values) < 0.1


def test_no_gradient_reaches_what_comes_later():
    """Reading another place than the last would show up as a share of the tokens behind it."""
    settings = ReachSettings(seeds=1, strings=4, length=16, width=16)
    last = reach.reach(reach.SIDES[BLOCK], settings, 0)
    broken = reach.reach(lambda w, t: shifted(reach.SIDES[BLOCK](w, t)), settings, 0)
    assert np.isfinite(last).all()
    assert last[0] == 1
    assert (last > 0).all()
    assert not np.isfinite(broken).all()


def shifted(layer):
    return lambda x_BTD: layer(x_BTD).roll(1, 1)


@pytest.fixture(scope="module")
def letters():
    settings = FirstLetterSettings(seeds=2, rates=(3e-3,), cap=200, batch=64)
    return ended(first_letter_cell(20, 32), (ATTENTION, DEFAULT, BIAS_3), settings)


def test_forget_bias_3_says_the_first_letter_where_the_default_is_near_chance(letters):
    assert min(share.value for share in letters[BIAS_3].shares) >= 0.97
    for share in letters[DEFAULT].shares:
        assert share.interval[0] < 2 / 26
    assert gap(letters[BIAS_3].shares, letters[DEFAULT].shares).low > 0.5
    # Control: the same difference the other way round is below 0.
    assert gap(letters[DEFAULT].shares, letters[BIAS_3].shares).high < -0.5


def test_attention_says_the_first_letter_within_the_updates(letters):
    assert letters[ATTENTION].all_arrived
    assert not letters[DEFAULT].arrived


def test_attention_binds_while_the_lstm_knows_the_values_only():
    by_side = ended(
        binding_cell(4, 64, 32), (ATTENTION, BIAS_1), BindingSettings(seeds=2, cap=400, every=50, batch=64)
    )
    line = value_set_share(4, 32)
    assert min(share.value for share in by_side[ATTENTION].shares) >= 0.99
    for share in by_side[BIAS_1].shares:
        low, high = share.interval
        # The strings of the test are a sample themselves: the line is met within a wider interval than 95%.
        assert low - 0.01 < line < high + 0.01
    # Control: neither chance nor the line of fewer pairs fits.
    assert all(share.interval[0] > 1 / 32 + 0.1 for share in by_side[BIAS_1].shares)
    assert all(share.interval[1] < value_set_share(2, 32) - 0.1 for share in by_side[BIAS_1].shares)


def test_the_lstm_finds_a_letter_at_a_random_place_from_every_distance():
    cell = random_place_cell(16, 32)
    settings = RandomPlaceSettings(seeds=1, lengths=(16,), cap=400, batch=64)
    rows = []
    lone = Cell(cell.labels, cell.task, cell.sides[1:])
    contest_rows = contest([lone], settings, quiet, lambda *ended: rows.extend(distances(*ended)), nothing)
    assert outcomes(pl.DataFrame(contest_rows, infer_schema_length=None))[BIAS_1][0].all_arrived
    assert [row["distance"] for row in rows] == [1, 2, 4, 8, 14]
    assert min(row["value"] for row in rows) > 0.95
    # Control: at the start of the same run it knew nothing.
    assert contest_rows[0]["value"] < 0.2


def test_a_panel_measures_every_cell_rate_and_seed_and_reports_on_the_way():
    settings = panels.panel("binding").settings_from(
        {
            "pairs": [1, 2],
            "keys": [2],
            "widths": [8],
            "rates": [1e-3, 1e-2],
            "seeds": 2,
            "cap": 12,
            "every": 5,
        }
        | {"batch": 4}
    )
    heard = []
    rows = measure.binding(settings, lambda done, text, tables=None: heard.append((done, tables)))["curves"]
    seen = {(r["pairs"], r["side"], r["rate"], r["seed"]) for r in rows}
    assert len(seen) == 2 * 2 * 2 * 2
    assert {r["update"] for r in rows} <= {0, 5, 10, 12}
    assert all(r["low"] <= r["value"] <= r["high"] and r["n"] == 2_000 for r in rows)
    shares = [done for done, _ in heard]
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] <= 1
    assert heard[0][1]["curves"]
    assert len(heard[-1][1]["curves"]) == len(rows)


def test_the_same_settings_give_the_same_numbers():
    settings = panels.panel("first-letter").settings_from(
        {"lengths": [4], "widths": [8], "seeds": 1, "cap": 10, "every": 10, "batch": 4}
    )
    twice = [measure.first_letter(settings, quiet)["curves"] for _ in range(2)]
    one, other = ([{k: v for k, v in row.items() if k != "cpu_seconds"} for row in rows] for rows in twice)
    assert one == other
