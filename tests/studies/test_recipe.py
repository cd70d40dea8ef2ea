"""Learning rates from the swept table; the table here is made up, so that no sweep changes these tests."""

import pytest

from isoloss.errors import InputError
from isoloss.training import recipe

TABLE = {
    "rates": [
        {"family": "transformer", "variant": 1, "params": 10_000, "learning_rate": 0.02},
        {"family": "transformer", "variant": 1, "params": 1_000_000, "learning_rate": 0.005},
        {"family": "transformer", "variant": 1, "params": 100_000, "learning_rate": 0.02},
        {"family": "lstm", "variant": 1, "params": 10_000, "learning_rate": 0.01},
        {"family": "lstm", "variant": 4, "params": 10_000, "learning_rate": 0.04},
        {"family": "looped", "variant": 2, "params": 10_000, "learning_rate": 0.03},
    ]
}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(recipe, "table", lambda: TABLE)


@pytest.mark.usefixtures("table")
class TestMadeUpTable:
    @pytest.mark.parametrize(("params", "rate"), [(10_000, 0.02), (100_000, 0.02), (1_000_000, 0.005)])
    def test_swept_sizes_get_the_swept_rate(self, params, rate):
        assert recipe.learning_rate("transformer", params, {}) == rate

    def test_between_sizes_log_rate_is_linear_in_log_n(self):
        # Half way from 1e5 to 1e6 in log N is 316,228; the geometric mean of 0.02 and 0.005 is 0.01.
        assert recipe.learning_rate("transformer", 316_228, {}) == pytest.approx(0.01, rel=1e-3)
        assert recipe.learning_rate("transformer", 30_000, {}) == 0.02

    def test_below_the_smallest_size_the_rate_stays(self):
        assert recipe.learning_rate("transformer", 10, {}) == 0.02

    def test_above_the_largest_size_it_falls_as_the_cube_root(self):
        assert recipe.learning_rate("transformer", 8_000_000, {}) == pytest.approx(0.0025, rel=1e-3)
        assert recipe.learning_rate("transformer", 1_000_000_000, {}) == pytest.approx(0.0005, rel=1e-3)

    @pytest.mark.parametrize(("layers", "rate"), [(1, 0.01), (4, 0.04), (8, 0.04)])
    def test_lstms_have_a_row_by_depth(self, layers, rate):
        assert recipe.learning_rate("lstm", 10_000, {"n_layer": layers}) == rate

    def test_the_depth_half_way_takes_the_smaller_row(self):
        assert recipe.learning_rate("lstm", 10_000, {"n_layer": 2}) == 0.01

    def test_depth_means_nothing_to_a_transformer_and_recurrence_to_a_looped_model(self):
        assert recipe.learning_rate("transformer", 10_000, {"n_layer": 9}) == 0.02
        assert recipe.learning_rate("looped", 10_000, {"n_layer": 9, "recurrence": 7}) == 0.03

    def test_a_family_without_row_is_refused(self):
        with pytest.raises(InputError, match="no learning rate for family 'mamba'") as caught:
            recipe.learning_rate("mamba", 10_000, {})
        assert "learning_rates" in caught.value.mend


@pytest.mark.parametrize("family", ["transformer", "lstm", "looped"])
def test_the_shipped_table_serves_every_family_at_every_size(family):
    rates = [
        recipe.learning_rate(family, 10**power, {"n_layer": 2, "recurrence": 2}) for power in range(3, 10)
    ]
    assert all(0 < rate < 1 for rate in rates)
    assert rates[-1] < rates[0], "a model a million times as large wants a smaller rate"
