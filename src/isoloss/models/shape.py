"""What every family's shape settings share: strict, frozen, unknown keys refused. Imports no torch."""

from isoloss.strict import Strict

MOST = 100_000
"""Upper bound of a width, depth or count: counts beyond it would not fit the tables' 64-bit integers."""


class Shape(Strict):
    """Base of a family's shape: the numbers that fix its weights, and nothing else."""
