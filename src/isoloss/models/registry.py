"""Families by name. A user adds one from their own file, without touching the package:

    # my_family.py, given as  isoloss run STUDY --family my_family.py
    from isoloss.models import Family, Shape, register

    class BigramShape(Shape):
        d_model: int

    class Bigram(torch.nn.Module):            # tokens (B, T) -> logits (B, T, V)
        def __init__(self, shape, vocab, context): ...

    register(Family("bigram", BigramShape, Bigram))

A family without a closed-form count is counted on PyTorch's meta device, which allocates nothing.
"""

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from torch import nn

from isoloss.errors import InputError
from isoloss.models import looped, lstm, transformer
from isoloss.models.shape import Shape
from isoloss.units import Count


@dataclass(frozen=True)
class Family:
    """``build(shape, vocab, context)`` makes one member.

    ``stacked``: the module has a leading member axis (every parameter, and tokens (K, B, T) in, ``Output``
    out); otherwise it maps tokens (B, T) to logits (B, T, V) and members run one after the other.
    ``source``: sha256 of the file a user's family came from; part of a run's identity.
    """

    name: str
    shape: type[Shape]
    build: Callable[[Any, int, int], nn.Module]
    count: Callable[[Any, int, int], Count] | None = None
    stacked: bool = False
    source: str | None = None


_families: dict[str, Family] = {}
_source: list[str | None] = [None]


def register(family: Family) -> Family:
    """Add a family. Raises InputError if the name is taken by another one."""
    if family.name in _families and _families[family.name].build is not family.build and _source[-1] is None:
        raise InputError(f"family {family.name!r} is registered already", mend="choose another name")
    _families[family.name] = Family(**{**family.__dict__, "source": family.source or _source[-1]})
    return _families[family.name]


def family(name: str) -> Family:
    if name not in _families:
        raise InputError(
            f"there is no family {name!r}",
            mend=f"use one of {', '.join(families())}, or name the file that registers it with --family",
        )
    return _families[name]


def families() -> list[str]:
    return sorted(_families)


def load_file(path: Path) -> None:
    """Run a user's Python file, which calls ``register``. Only a path the user typed ever comes here."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), mend="--family takes the path of a Python file")
    before = dict(_families)
    _source.append(hashlib.sha256(path.read_bytes()).hexdigest())
    try:
        spec = importlib.util.spec_from_file_location(f"isoloss_family_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file; its name must end in .py")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        raise InputError(f"could not be run ({type(error).__name__}: {error})", where=str(path)) from error
    finally:
        _source.pop()
    if _families == before:
        mend = "call isoloss.models.register(Family(...)) in it"
        raise InputError("registers no family", where=str(path), mend=mend)


def shape_of(name: str, values: dict[str, Any], *, where: str = "") -> Shape:
    """Validated shape settings of a family. Raises InputError naming the key."""
    try:
        return family(name).shape.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "shape"
        known = ", ".join(family(name).shape.model_fields)
        raise InputError(
            f"{key}: {first['msg']}", where=where or f"shape of {name}", mend=f"{name} takes {known}"
        ) from None


for _family in (
    Family("transformer", transformer.TransformerShape, transformer.Transformer, transformer.count, True),
    Family("lstm", lstm.LSTMShape, lstm.LSTM, lstm.count),
    Family("looped", looped.LoopedShape, looped.Looped, looped.count, True),
):
    register(_family)
