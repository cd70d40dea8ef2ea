"""Shapes of one size: what is solved for, the nearest whole number, and refusals that name the shape."""

import pytest

from isoloss.errors import InputError
from isoloss.models import shape_of
from isoloss.models.fixed_size import NEAR, solved


def size(values):
    """N by the formula of Kaplan et al. 2020, eq. 2.1, written out again."""
    d_attn = values["n_head"] * values.get("d_head", values["d_model"] // values["n_head"])
    d_ff = values.get("d_ff", 4 * values["d_model"])
    return 2 * values["n_layer"] * values["d_model"] * (2 * d_attn + d_ff)


@pytest.mark.parametrize(
    ("values", "params", "wanted"),
    [
        ({"n_layer": 3, "n_head": 4, "d_model": 64}, 147_456, {"d_ff": 256}),
        ({"n_layer": 3, "n_head": 4, "d_model": 32}, 147_456, {"d_ff": 704}),
        ({"n_layer": 3, "d_head": 16, "d_model": 80}, 147_456, {"d_ff": 147, "n_head": 5}),
        ({"n_layer": 3, "n_head": 8, "d_head": 16, "d_model": 32}, 147_456, {"d_ff": 512}),
        ({"n_layer": 3, "n_head": 4}, 147_456, {"d_model": 64}),
        ({"n_layer": 12, "d_head": 64}, 1_475_000_000, {"d_model": 3200, "n_head": 50}),
        ({"n_layer": 3, "n_head": 4, "d_ff": 704}, 147_456, {"d_model": 32}),
    ],
)
def test_the_open_number_is_solved_for(values, params, wanted):
    shape = solved(values, params, where="here")
    assert shape == values | wanted
    assert abs(size(shape) / params - 1) <= NEAR
    assert shape_of("transformer", shape)


@pytest.mark.parametrize("n_layer", [1, 2, 3, 4, 8])
def test_no_other_width_of_whole_heads_comes_nearer(n_layer):
    values = {"n_layer": n_layer, "n_head": 2}
    shape = solved(values, 36_864, where="here")
    widths = [shape["d_model"] + step for step in (-8, -4, 0, 4, 8)]
    misses = [abs(size(values | {"d_model": width}) - 36_864) for width in widths]
    assert misses.index(min(misses)) == 2


def test_a_gated_block_counts_its_third_matrix():
    shape = solved({"n_layer": 2, "n_head": 2, "d_model": 32, "activation": "swiglu"}, 40_000, where="here")
    assert 2 * 32 * (4 * 32 + 3 * shape["d_ff"]) == pytest.approx(40_000, rel=0.003)


@pytest.mark.parametrize(
    ("values", "params", "what"),
    [
        (
            {"n_layer": 6, "n_head": 2},
            147_456,
            "no Transformer of n_layer 6, n_head 2 comes within 5% of N = 147,456; the nearest, d_model 44, "
            "has 139,392 (-5.5%)",
        ),
        ({"n_layer": 3, "n_head": 4, "d_model": 128}, 147_456, "the nearest, d_ff 1, has 197,376 (+33.9%)"),
        ({"n_layer": 3, "n_head": 4}, 100, "the nearest, d_model 8, has 2,304 (+2204.0%)"),
        ({"n_layer": 3, "n_head": 4, "d_model": 64, "d_ff": 256}, 147_456, "leaves nothing to solve for"),
        ({"n_layer": 3}, 147_456, "n_layer 3 has no n_head"),
        ({"n_layer": 3, "d_head": 16, "d_model": 40}, 147_456, "d_model 40 is not a multiple of d_head 16"),
        ({"n_head": 4}, 147_456, "the key 'n_layer' is missing"),
        ({"n_layer": 3, "n_head": 4, "width": 3}, 147_456, "unknown key 'width'"),
        ({"n_layer": 0, "n_head": 4}, 147_456, "n_layer: Input should be greater than 0"),
        ({"n_layer": 3, "n_head": 0}, 147_456, "has no n_head"),
        ({"n_layer": 3, "d_head": 8, "d_model": 0}, 147_456, "d_model: Input should be greater than 0"),
    ],
)
def test_what_has_no_solution_is_refused_by_name(values, params, what):
    with pytest.raises(InputError) as caught:
        solved(values, params, where="models of family transformer")
    assert what in caught.value.what
    assert caught.value.where == "models of family transformer"
    assert caught.value.mend
