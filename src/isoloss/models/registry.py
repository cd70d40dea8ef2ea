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
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from isoloss.errors import InputError, IsolossError
from isoloss.models import looped, lstm, transformer
from isoloss.models.shape import Shape
from isoloss.strict import validate
from isoloss.units import Count


@dataclass(frozen=True)
class Family:
    """``build(shape, vocab, context)`` makes one member.

    ``stacked``: the module has a leading member axis (every parameter, and tokens (K, B, T) in, ``Output``
    out); otherwise it maps tokens (B, T) to logits (B, T, V) and members run one after the other.
    ``source``: sha256 of the file a user's family came from; part of a run's identity. ``file``: its path.
    """

    name: str
    shape: type[Shape]
    build: Callable[[Any, int, int], nn.Module]
    count: Callable[[Any, int, int], Count] | None = None
    stacked: bool = False
    source: str | None = None
    file: Path | None = None

    @property
    def shipped(self) -> bool:
        return self.name in SHIPPED

    @property
    def place(self) -> str:
        """Its file as people would type it, or its name where it came from none."""
        if self.file is None:
            return f"family {self.name}"
        here = Path.cwd()
        return str(self.file.relative_to(here) if self.file.is_relative_to(here) else self.file)


SHIPPED = ("transformer", "lstm", "looped")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_families: dict[str, Family] = {}
_loading: list[tuple[str, Path]] = []


def register(family: Family) -> Family:
    """Add a family, or the same file's family again.

    Raises InputError if the name is not usable in a run's name, or taken by another family, or if ``shape``
    or ``build`` is not what it must be.
    """
    if not _NAME.fullmatch(family.name):
        mend = "use 1 to 32 of a-z, 0-9 and '-', starting with a letter"
        raise InputError(f"{family.name!r} is not a usable family name", mend=mend)
    if not (isinstance(family.shape, type) and issubclass(family.shape, Shape) and callable(family.build)):
        mend = "write Family(name, a subclass of isoloss.models.Shape, a torch.nn.Module class)"
        raise InputError(f"family {family.name!r} has no usable shape or build", mend=mend)
    if _loading:
        source, file = _loading[-1]
        family = replace(family, source=source, file=file)
    there = _families.get(family.name)
    if there is not None and (there.source is None or family.source is None):
        raise InputError(f"family {family.name!r} is registered already", mend="choose another name")
    _families[family.name] = family
    return family


def family(name: str) -> Family:
    if name not in _families:
        names = ", ".join(families())
        mend = f"use one of {names}, or name the file that registers it (--family; in Python family_files)"
        raise InputError(f"there is no family {name!r}", mend=mend)
    return _families[name]


def families() -> list[str]:
    return sorted(_families)


def load_file(path: Path) -> None:
    """Run a user's Python file, which calls ``register``. Only a path the user typed ever comes here."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), mend="--family takes the path of a Python file")
    before = dict(_families)  # registering again makes new objects, so that an unchanged table means none
    file = path.absolute()
    _loading.append((hashlib.sha256(path.read_bytes()).hexdigest(), file))
    try:
        spec = importlib.util.spec_from_file_location(f"isoloss_family_{path.stem}", file)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file; its name must end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where annotations written as text are looked up
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"could not be run ({type(error).__name__}: {error})",
            where=str(path),
            mend="run it by itself with python to see where it fails",
        ) from error
    finally:
        _loading.pop()
    if _families == before:
        mend = "call isoloss.models.register(Family(...)) in it"
        raise InputError("registers no family", where=str(path), mend=mend)


def shape_of(name: str, values: dict[str, Any], *, where: str = "") -> Shape:
    """Validated shape settings of a family. Raises InputError naming the key."""
    kind = family(name).shape
    mend = f"{name} takes {', '.join(kind.model_fields)}"
    return validate(kind, values, where=where or f"shape of {name}", mend=mend, whole="shape")


def users_line(error: BaseException) -> str:
    """ "FILE, line N": the last line of a user's family file that ``error`` came through; "" if none."""
    places = {str(family.file): family.place for family in _families.values() if family.file}
    lines = [
        f"{places[frame.f_code.co_filename]}, line {number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in places
    ]
    return lines[-1] if lines else ""


@contextmanager
def users_code(family: Family, mend: str) -> Iterator[None]:
    """What a user's family raises inside is raised as InputError that names their line."""
    try:
        yield
    except IsolossError:
        raise
    except Exception as error:
        if family.shipped:
            raise
        where = users_line(error) or family.place
        raise InputError(f"{type(error).__name__}: {error}", where=where, mend=mend) from error


for _family in (
    Family("transformer", transformer.TransformerShape, transformer.Transformer, transformer.count, True),
    Family("lstm", lstm.LSTMShape, lstm.LSTM, lstm.count),
    Family("looped", looped.LoopedShape, looped.Looped, looped.count, True),
):
    register(_family)
