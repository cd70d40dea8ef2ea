"""What a fit can do beyond ``laws``: rooms above plan and draw, and the public face says here who does."""

from collections.abc import Callable
from typing import Any, ClassVar


class FitFace:
    """Methods that ``isoloss.api`` gives whenever isoloss is imported, so that laws import no room above.

    ``plan(**question)``: which model for how many tokens. ``plot(*others)``: the fit with its data.
    """

    plan: ClassVar[Callable[..., Any]]
    plot: ClassVar[Callable[..., Any]]
