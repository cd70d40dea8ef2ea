"""Numbers as people write them: 70B, 1.4T, 3e21, 300 PF-days; and numbers that no model has."""

import math
import re

from isoloss.errors import InputError

MULTIPLES = {
    "k": 1e3, "thousand": 1e3, "thousands": 1e3,
    "m": 1e6, "mio": 1e6, "mil": 1e6, "mln": 1e6, "million": 1e6, "millions": 1e6,
    "b": 1e9, "bn": 1e9, "g": 1e9, "billion": 1e9, "billions": 1e9,
    "t": 1e12, "tn": 1e12, "trillion": 1e12, "trillions": 1e12,
    "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12,
} | {f"{ten}{digits}": 10.0**digits for ten in ("1e", "10^", "10") for digits in (3, 6, 9, 12)}  # fmt: skip
_SIZES = {"g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18, "z": 1e21}
FLOPS_UNITS = {f"{size}flop": factor for size, factor in _SIZES.items()} | {
    f"{size}f-days": 86400 * factor for size, factor in _SIZES.items()
}
_NAMES = {"giga": "g", "tera": "t", "peta": "p", "exa": "e", "zetta": "z"}
_NUMBER = re.compile(r"([-+]?(?:\d{1,3}(?:[,_]\d{3})+|\d+)?(?:\.\d*)?(?:e[-+]?\d+)?)\s*(.*)", re.IGNORECASE)
_FLOPS = re.compile(
    r"(giga|tera|peta|exa|zetta|[gtpez])?[\s-]?f(?:lops?)?(?:/s)?[\s-]?(days?|d)?", re.IGNORECASE
)

# Kaplan's smallest model has 768 parameters; nobody trained 1e15, on 1e17 tokens, or for 1e32 FLOPs.
_BOUNDS = {"params": (500, 1e15), "tokens": (500, 1e17), "flops": (1e6, 1e32)}
_SLIPS = {
    "params": "write 70B for 70 billion parameters",
    "tokens": "write 1.4T for 1.4 trillion tokens",
    "flops": "write 1e21, or 300PF-days",
}


def number(text: str) -> float:
    """'70B' -> 7e10, '1.4T', '3e21', '1_000_000', '300 PF-days' -> 2.592e22.

    Raises InputError for anything else: a decimal comma, NaN, hours of a GPU.
    """
    match = _NUMBER.fullmatch(text.strip())
    digits, unit = (match[1].replace("_", "").replace(",", ""), match[2].strip()) if match else ("", "")
    try:
        value = float(digits) * _factor(unit)
    except (ValueError, KeyError, OverflowError):
        value = math.nan
    if math.isfinite(value):
        return value
    mend = "write 70B, 1.4T, 3e21 or 300PF-days"
    if re.search(r"hour|gpu|tpu", text, re.IGNORECASE):
        mend = "hours of devices are no FLOPs: multiply by the device's FLOP/s, the share it reaches and 3600"
    raise InputError(f"{text!r} is not a number", mend=mend)


def _factor(unit: str) -> float:
    if not unit:
        return 1.0
    word = re.sub(r"\s*(params?|parameters|tokens?)$", "", unit.lower())
    if word in MULTIPLES or not word:
        return MULTIPLES.get(word, 1.0)
    match = _FLOPS.fullmatch(word)
    if match is None:
        raise KeyError(unit)
    size = _NAMES.get(match[1] or "", match[1] or "")
    if not size:
        return 86400.0 if match[2] else 1.0
    return FLOPS_UNITS[f"{size}f-days" if match[2] else f"{size}flop"]


def plausible(name: str, value: float, where: str) -> float:
    """``value`` if a model may have it. Raises InputError with the likely slip and ``where`` it was given."""
    low, high = _BOUNDS.get(name, (-math.inf, math.inf))
    if low <= value <= high:
        return value
    raise InputError(
        f"{name} is {value:g}: no model has so {'few' if value < low else 'many'}",
        where=where,
        mend=_slip(name, value),
    )


def _slip(name: str, value: float) -> str:
    if 0 < value < 500 and name != "flops":
        return f"{_SLIPS[name]}; if billions are meant, {value:g}B"
    if 0 < value < 1e6 and name == "flops":
        return f"{_SLIPS[name]}; if PF-days are meant, {value:g}PF-days"
    return _SLIPS[name]
