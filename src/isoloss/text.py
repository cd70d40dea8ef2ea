"""Numbers as words: the one way to write a count, a loss, a share, a difference and an interval.

Counts end in K, M, B or T; a percent sign follows its number without a space; an interval is 'a to b'.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol

Ends = Sequence[float | None]
"""Both ends of an interval; None is an end that the data leave open."""

_COUNT_SUFFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))
_SIZE_SUFFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))


class Estimated(Protocol):
    """A number with the interval that its data allow."""

    @property
    def value(self) -> float: ...

    @property
    def interval(self) -> tuple[float, float] | None: ...


def count(value: float) -> str:
    """Of parameters, tokens and FLOPs: 7e9 -> '7B', from 1e15 on a power of ten, 1e21 -> '1e21'."""
    return _suffixed(value, _COUNT_SUFFIXES) if abs(value) < 1e15 else power(value)


def counts(low: float, high: float) -> str:
    """A range of counts, or the one that it is: '1K to 7B', '7B'."""
    return count(low) if low == high else interval((low, high), count)


def size(value: float) -> str:
    """Of files and memory: 1234567 -> '1.23MB'."""
    return f"{_suffixed(value, _SIZE_SUFFIXES)}B"


_UNITS = (("s", 1, 60), ("min", 60, 60), ("h", 3600, 48))
"""Of time, each with its seconds and so many from which the next is taken."""


def duration(seconds: float) -> str:
    """Of about so long: '0.4 s', '45 s', '4.3 min', '12 h', '93 days'."""
    fitting = ((unit, size) for unit, size, most in _UNITS if round(seconds / size) < most)
    unit, size = next(fitting, ("days", 86_400))
    value = seconds if size == 1 else max(1.0, seconds / size)
    return f"{power(value, 2) if value < 9.95 else f'{value:,.0f}'} {unit}"


def _suffixed(value: float, suffixes: Sequence[tuple[float, str]]) -> str:
    for factor, suffix in suffixes if math.isfinite(value) else ():
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.3g}"


def power(value: float, digits: int = 3) -> str:
    """An exponent without plus and zeros in front: 5.76e+23 -> '5.76e23', 2e-05 -> '2e-5'."""
    return _plain(f"{value:.{digits}g}")


def headline(said: str) -> tuple[str, str]:
    """The first sentence of a warning, which says what matters, and its detail: '' where there is none."""
    first, *rest = re.split(r"(?<=[.?!]) (?=[A-Z])", said, maxsplit=1)
    return first, "".join(rest)


def _plain(spelled: str) -> str:
    return re.sub(r"e\+?(-?)0*", r"e\1", spelled)


def number(value: float | None, digits: int = 4) -> str:
    """So many significant digits, with a true minus; 'none' where there is no number."""
    return "none" if value is None else power(value, digits).replace("-", "−")


def brief(value: float) -> str:
    """As a sentence says it, in three digits: '0.360', '2110', '6.94e13'; a table beside it has more."""
    rounded = float(f"{value:.3g}")
    if rounded == 0 or 1e3 <= abs(rounded) < 1e6:
        return f"{rounded:.0f}".replace("-", "−")
    return _plain(f"{value:#.3g}").rstrip(".").replace("-", "−")


def loss(value: float) -> str:
    """Nats a token, to a thousandth."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """A difference of losses: with a sign, and a true minus."""
    return f"{value:+.3f}".replace("-", "−")


def signed_percent(share: float) -> str:
    """A change: '+12%', '−2.6%', with a true minus."""
    return f"{'−' if share < 0 else '+'}{percent(abs(share))}"


def percent(share: float | None, decimals: int | None = None) -> str:
    """Two digits, or all before the point: '0.12%', '12%', '120%'; or so many decimals: '99.8%'.

    With decimals, what is not all but would round to all is '>99.9%'.
    """
    if share is None:
        return "none"
    value = 100 * share
    if decimals is None:
        return f"{value:.0f}%" if abs(value) >= 99.5 else f"{value:.2g}%"
    almost_all = 100 - 10**-decimals
    if almost_all + 0.5 * 10**-decimals <= value < 100:
        return f">{almost_all:.{decimals}f}%"
    return f"{value:.{decimals}f}%"


def level(share: float) -> str:
    """Of an interval: 0.95 -> '95%', 0.999 -> '99.9%'."""
    return f"{100 * share:g}%"


def interval(ends: Ends | None, write: Callable[[float], str] = number) -> str:
    """'1.2 to 3.4', 'open to 3.4', or that there is none."""
    if ends is None:
        return "no interval"
    low, high = ("open" if end is None else write(end) for end in ends)
    return f"{low} to {high}"


def difference(of: Estimated) -> str:
    """Of losses: '+0.023 nats (+0.012 to +0.034)'."""
    return f"{signed(of.value)} nats ({interval(of.interval, signed)})"


def plural(number_of: int, noun: str) -> str:
    """'1 seed', '1,200 updates'."""
    return f"{number_of:,} {noun}{'' if number_of == 1 else 's'}"


def listed(words: Sequence[str], last_word: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'; or with 'or' before the last."""
    *rest, last = words
    return f"{', '.join(rest)} {last_word} {last}" if rest else last


def capital(words: str) -> str:
    """The same words, the first letter large."""
    return words[:1].upper() + words[1:]
