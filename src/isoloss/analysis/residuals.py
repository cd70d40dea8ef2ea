"""The scale of a fit's residuals."""

from isoloss.laws import Fit


def on_logs(fit: Fit) -> bool:
    """Whether residuals are of logarithms."""
    return fit.objective.name != "squared"


def exact(fit: Fit) -> bool:
    """Whether the law misses its runs by no more than the rounding of numbers."""
    scale = 1.0 if on_logs(fit) else fit.units.loss
    return fit.sigma is not None and fit.sigma < 1e-12 * scale
