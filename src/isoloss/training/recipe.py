"""The recipe's learning rates: one coarse sweep per family and size, shipped as a table.

No published rule covers models below a million parameters (two of them differ fifty-fold at ten thousand), so
the rates come from a sweep, the same for every family: ``isoloss run learning-rates --scale evening`` and
then ``python benchmarks/learning_rates.py DIR``, which writes ``recipe.toml`` beside this file.
"""

import importlib.resources
import tomllib
from functools import cache
from math import exp, log
from typing import Any

import numpy as np

from isoloss.errors import InputError

BEYOND = -1 / 3
"""Slope of log rate over log N above the largest swept size (arXiv 2406.19146, 5M to 900M parameters)."""


@cache
def table() -> dict[str, Any]:
    text = (importlib.resources.files("isoloss.training") / "recipe.toml").read_text("utf-8")
    return tomllib.loads(text)


def learning_rate(family: str, params: int, shape: dict[str, Any]) -> float:
    """The rate for a family at N = ``params`` non-embedding parameters.

    Between swept sizes log rate is linear in log N; below the smallest it stays; above the largest it falls
    as N^(-1/3). LSTMs have a row of sizes per depth, looped models per recurrence; the nearest one serves.

    Raises InputError for a family that was not swept.
    """
    rows = [row for row in table()["rates"] if row["family"] == family]
    if not rows:
        raise InputError(
            f"the recipe has no learning rate for family {family!r}",
            mend="give learning_rates = [...] in the study's entry for it",
        )
    variant = variant_of(family, shape)
    nearest = min({row["variant"] for row in rows}, key=lambda v: (abs(log(v) - log(variant)), v))
    points = sorted((row["params"], row["learning_rate"]) for row in rows if row["variant"] == nearest)
    return round(float(f"{interpolate(points, params):.3g}"), 10)


def swept() -> dict[str, list[int]]:
    """Of each family, the least and the most parameters that its rates were swept at."""
    sizes: dict[str, list[int]] = {}
    for row in table()["rates"]:
        sizes.setdefault(row["family"], []).append(row["params"])
    return {family: [min(params), max(params)] for family, params in sizes.items()}


def variant_of(family: str, shape: dict[str, Any]) -> int:
    """What besides size the sweep tells apart: depth of LSTMs, recurrence of looped models."""
    key = {"lstm": "n_layer", "looped": "recurrence"}.get(family)
    return int(shape.get(key, 1)) if key else 1


def interpolate(points: list[tuple[int, float]], params: int) -> float:
    log_params, log_rates = np.log(points).T
    beyond = max(0.0, log(params) - log_params[-1])
    return exp(np.interp(log(params), log_params, log_rates) + BEYOND * beyond)
