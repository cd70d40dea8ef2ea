"""What a warp is: the inputs that a sum of power laws sees in place of the plain ones."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from isoloss.laws.forms.form import Array

Slopes = Mapping[tuple[int, str], Array]


class Warp(ABC):
    """``parameters`` are its own; the terms see the J inputs named in ``sees``.

    ``starts`` holds coordinates to start each parameter from, ``units`` the plain input whose scale a seen
    one has, ``rescales`` the parameters whose plain coordinates differ from the scaled ones.
    """

    parameters: tuple[str, ...]
    sees: tuple[str, ...]
    starts: Mapping[str, tuple[float, ...]]
    units: Mapping[str, str]
    rescales: tuple[str, ...] = ()

    @abstractmethod
    def apply(self, theta: Mapping[str, Array], z_In: Array) -> tuple[Array, Slopes]:
        """The seen inputs z_..Jn, and the derivatives of row j by a parameter's coordinate.

        ``theta`` maps each parameter of the law to its coordinate.
        """

    @abstractmethod
    def plain(self, params: Mapping[str, Any], x: Mapping[str, Any]) -> Mapping[str, Array]:
        """The same change in plain units."""

    def unscale(self, name: str, theta: Mapping[str, Array], log_scale: Mapping[str, float]) -> Array:
        """The plain coordinate of a parameter in ``rescales``."""
        return theta[name]
