"""Numbers as words: one way to write a count, a loss, a difference and an interval."""

from collections.abc import Sequence

from isoloss.figures.compare import Difference
from isoloss.units import human


def count(number: float) -> str:
    """12345 -> '12.3K'."""
    return human(number)


def counts(low: float, high: float) -> str:
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def nats(value: float) -> str:
    return f"{value:.3f}"


def signed(value: float) -> str:
    """With a sign, and a true minus."""
    return f"{value:+.3f}".replace("-", "−")


def percent(share: float) -> str:
    """Two digits, or all before the point: '0.12%', '12%', '120%'."""
    value = 100 * share
    return f"{value:.0f}%" if abs(value) >= 99.5 else f"{value:.2g}%"


def between(interval: tuple[float, float] | None, write=signed) -> str:
    """'[+0.012, +0.034]', or that there is none."""
    if interval is None:
        return "[no interval]"
    return f"[{write(interval[0])}, {write(interval[1])}]"


def difference(value: Difference) -> str:
    """'+0.023 nats [+0.012, +0.034]'."""
    return f"{signed(value.value)} nats {between(value.interval)}"


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def level(share: float) -> str:
    return f"{100 * share:g}%"


def capital(words: str) -> str:
    return words[0].upper() + words[1:]
