"""Levels of intervals, and how far a t interval of that level reaches."""

from scipy.special import stdtrit

from isoloss.errors import InputError


def check_seed(seed: int) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {seed}", mend="give a whole number, 0 or larger")
    return seed


def check_level(level: float) -> float:
    if not isinstance(level, int | float):
        raise InputError(f"level is {level!r}", mend="give a share between 0 and 1, such as 0.9")
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}", mend="give a share between 0 and 1, such as 0.9")
    return float(level)


def quantile(level: float, df: int) -> float:
    """Half-width of a two-sided t interval in standard errors."""
    return float(stdtrit(df, 0.5 + level / 2))
