"""What a fit and a study can do beyond their rooms: rooms above plan and draw, the public face says who."""

from collections.abc import Callable
from typing import Any, ClassVar


class Shown:
    """``_repr_mimebundle_``: what a notebook shows of it."""

    _repr_mimebundle_: ClassVar[Callable[..., dict[str, str]]]


class FitFace(Shown):
    """Methods that ``isoloss.api`` gives whenever isoloss is imported, so that laws import no room above.

    ``plan(**question)``: which model for how many tokens. ``plot(kind, *others)``: one of its figures, with
    laws beside it.
    """

    plan: ClassVar[Callable[..., Any]]
    plot: ClassVar[Callable[..., Any]]


class StudyFace(Shown):
    """``plot(kind)``: one of a study's figures."""

    plot: ClassVar[Callable[..., Any]]
