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
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from isoloss.errors import InputError
from isoloss.models import looped, lstm, transformer
from isoloss.models.shape import Shape
from isoloss.strict import validate
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


_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_families: dict[str, Family] = {}
_source: list[str | None] = [None]


def register(family: Family) -> Family:
    """Add a family, or the same file's family again.

    Raises InputError if the name is not usable in a run's name, or taken by another family.
    """
    if not _NAME.fullmatch(family.name):
        mend = "use 1 to 32 of a-z, 0-9 and '-', starting with a letter"
        raise InputError(f"{family.name!r} is not a usable family name", mend=mend)
    family = replace(family, source=family.source or _source[-1])
    there = _families.get(family.name)
    if there is not None and (there.source is None or family.source is None):
        raise InputError(f"family {family.name!r} is registered already", mend="choose another name")
    _families[family.name] = family
    return family


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
    before = dict(_families)  # registering again makes new objects, so that an unchanged table means none
    _source.append(hashlib.sha256(path.read_bytes()).hexdigest())
    try:
        spec = importlib.util.spec_from_file_location(f"isoloss_family_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file; its name must end in .py")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"could not be run ({type(error).__name__}: {error})",
            where=str(path),
            mend="run it by itself with python to see where it fails",
        ) from error
    finally:
        _source.pop()
    if _families == before:
        mend = "call isoloss.models.register(Family(...)) in it"
        raise InputError("registers no family", where=str(path), mend=mend)


def shape_of(name: str, values: dict[str, Any], *, where: str = "") -> Shape:
    """Validated shape settings of a family. Raises InputError naming the key."""
    kind = family(name).shape
    mend = f"{name} takes {', '.join(kind.model_fields)}"
    return validate(kind, values, where=where or f"shape of {name}", mend=mend, whole="shape")


for _family in (
    Family("transformer", transformer.TransformerShape, transformer.Transformer, transformer.count, True),
    Family("lstm", lstm.LSTMShape, lstm.LSTM, lstm.count),
    Family("looped", looped.LoopedShape, looped.Looped, looped.count, True),
):
    register(_family)
