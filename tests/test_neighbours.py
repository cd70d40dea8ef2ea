"""The nearest points, by all pairs as by the tree."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from isoloss import neighbours


@pytest.mark.parametrize("count", [20, 1001])
def test_they_are_those_of_the_tree(count):
    x = np.random.default_rng(0).standard_normal((count, 3))
    distance, index = neighbours.nearest(x, 3)
    expected = KDTree(x).query(x, k=3)
    np.testing.assert_allclose(distance, expected[0])
    assert np.array_equal(index, expected[1])
    assert np.array_equal(index[:, 0], np.arange(count))
