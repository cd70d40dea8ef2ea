"""Everything that isoloss raises on purpose.

    IsolossError
    |- InputError   wrong usage or input              exit code 2
    |- Refusal      the data cannot answer            exit code 3
    `- RunError     a run or a study failed           exit code 1

Each message says what is wrong, where, and how to mend it, so that a reader needs no traceback.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class IsolossError(Exception):
    """Base of the tree. ``what`` is wrong, ``where`` it is (file, row, key), ``mend`` is the way out."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", mend: str = ""):
        self.what, self.where, self.mend = what, where, mend
        super().__init__(what, where, mend)

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        mend = f"\n  To mend it: {self.mend}" if self.mend else ""
        return f"{where}{self.what}{mend}"

    def __reduce__(self):
        # Exceptions cross process borders; keyword-only arguments need this to survive the trip.
        return partial(type(self), where=self.where, mend=self.mend), (self.what,)


class InputError(IsolossError):
    """A file, table, setting or argument that cannot be used as it is."""

    exit_code = 2


class Refusal(IsolossError):
    """The data cannot answer the question. ``what`` is the reason, ``mend`` says what would lift it."""

    exit_code = 3


class RunError(IsolossError):
    """A run or a study that did not end well."""

    exit_code = 1


def attempt(measure: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Refusal:
    """What ``measure`` of these arguments gives, or its refusal as a value."""
    try:
        return measure(*args, **options)
    except Refusal as reason:
        return reason


def refuse_rows(measure: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Rows that one method takes may not be what ``measure`` takes: that is a Refusal here, no InputError."""
    try:
        return measure(*args, **options)
    except InputError as error:
        raise Refusal(error.what, where=error.where, mend=error.mend) from None
