"""Transformers of one size N = n_layer d_model (4 d_attn + 2 d_ff), SwiGLU 3 d_ff: solved for what is open.

Given ``d_model``, that is ``d_ff``; without, ``d_model`` itself, with d_ff = 4 d_model unless that is given.
``d_head`` without ``n_head`` means n_head = d_model / d_head.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, cast

from isoloss.errors import InputError
from isoloss.models.registry import shape_of
from isoloss.models.shape import MOST
from isoloss.models.transformer import TransformerShape

NEAR = 0.05
"""A shape whose N misses its target by a larger share is refused."""

Values = dict[str, Any]


def solved(values: Values, params: int, *, where: str) -> Values:
    """``values`` with the open one at the whole number whose N is nearest ``params``.

    Raises InputError where nothing is open, a head does not fit, or the nearest misses by more than ``NEAR``.
    """
    mend = "leave one of d_ff and d_model to be solved for, or change n_layer, n_head, d_head or params"
    if {"d_model", "d_ff"} <= values.keys():
        raise InputError(f"{listed(values)} leaves nothing to solve for", where=where, mend=mend)
    free = "d_ff" if "d_model" in values else "d_model"
    open_to = range(1, MOST) if free == "d_ff" else widths(values, where)

    def size(number: int) -> int:
        return params_of(values | {free: number}, where)

    place = bisect_left(open_to, params, key=size)
    number = min(open_to[max(0, place - 1) : place + 1], key=lambda near: abs(size(near) - params))
    if abs(size(number) / params - 1) > NEAR:
        raise InputError(
            f"no Transformer of {listed(values)} comes within {NEAR:.0%} of N = {params:,}; the nearest, "
            f"{free} {number}, has {size(number):,} ({size(number) / params - 1:+.1%})",
            where=where,
            mend=mend,
        )
    return with_heads(values | {free: number}, where)


def widths(values: Values, where: str) -> Sequence[int]:
    """Every d_model that has whole heads, of an even dimension where n_head is what is given."""
    given = [key for key in ("n_head", "d_head") if isinstance(values.get(key), int) and values[key] > 0]
    if not given:
        raise InputError(f"{listed(values)} has no n_head", where=where, mend="give n_head or d_head")
    step = values["d_head"] if given == ["d_head"] else 2 * values["n_head"]
    return range(step, max(step, MOST // 4) + 1, step)


def params_of(values: Values, where: str) -> int:
    """N of one shape."""
    shape = cast(TransformerShape, shape_of("transformer", with_heads(values, where), where=where))
    return shape.n_layer * shape.block_params()


def with_heads(values: Values, where: str) -> Values:
    """``values`` with the n_head that d_head leaves, where only the latter is given."""
    d_head = values.get("d_head")
    if "n_head" in values or not isinstance(d_head, int) or d_head < 1:
        return values
    if values["d_model"] % d_head:
        what = f"d_model {values['d_model']} is not a multiple of d_head {d_head}"
        raise InputError(what, where=where, mend="give n_head")
    return values | {"n_head": values["d_model"] // d_head}


def listed(values: Values) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())
