"""What a fit can do beyond ``laws``: rooms above plan and draw, and the public face says here who does."""

from collections.abc import Callable
from typing import Any

FIT_METHODS: dict[str, Callable[..., Any]] = {}
"""Filled by ``isoloss.api`` whenever isoloss is imported, so that ``laws`` needs no room above it."""


class FitFace:
    """The public methods of a fit that other rooms do."""

    def plan(self, **question: Any) -> Any:
        """Which model for how many tokens: ``isoloss.plans.plan`` of this fit, with its options."""
        return FIT_METHODS["plan"](self, **question)

    def plot(self, *others: Any) -> Any:
        """The fit with its data, an altair chart; ``others`` are laws to draw beside it."""
        return FIT_METHODS["plot"](self, others)
