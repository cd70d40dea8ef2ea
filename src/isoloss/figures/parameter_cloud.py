"""Which pairs of exponents the runs allow: draws from the fit, along lines of one optimal allocation."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.parameters import exponent_cloud
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL, Axis
from isoloss.laws import Fit

SIDE = 400
LINES = (0.4, 0.45, 0.5, 0.55, 0.6)


def figure(fit: Fit) -> Figure:
    """The exponents alpha of N and beta of D. Raises Refusal for a law without them, or without interval."""
    cloud = exponent_cloud(fit)
    low, high = cloud.ends
    x = _axis(alt.X, "alpha", "alpha, exponent of N", cloud.middle["alpha"])
    y = _axis(alt.Y, "beta", "beta, exponent of D", cloud.middle["beta"])
    best = pl.DataFrame({name: [fit.params[name]] for name in ("alpha", "beta")})
    layers = [
        *_rays(marks.domain(x), marks.domain(y), x, y),
        marks.points(cloud.draws, x, y, colour=REAL, size=10, opacity=0.3, clip=True),
        marks.points(best, x, y, colour=PREDICTED, shape="diamond", size=110),
    ]
    of = "bootstrap refits" if fit.bootstrap is not None else "draws from the fit's covariance"
    return captioned(
        "parameter-cloud",
        marks.panel(layers, SIDE, SIDE),
        f"The best N grows as C^{cloud.exponent:.2f} ({low:.2f} to {high:.2f})",
        cloud.draws,
        draws=f"{cloud.draws.height} {of}",
        level=text.level(fit.level),
    )


def _axis(channel: type[Axis], column: str, title: str, middle: tuple[float, float]) -> Axis:
    """Over the middle 99 % of the draws, with a tenth to spare."""
    low, high = middle
    spare = 0.1 * (high - low)
    return channel(f"{column}:Q", title=title).scale(
        domain=[low - spare, high + spare], zero=False, nice=False
    )


def _rays(across: tuple[float, float], up: tuple[float, float], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Lines on which beta / (alpha + beta) is one number, named where they leave the picture."""
    parts = []
    for share in LINES:
        slope = share / (1 - share)
        alpha = np.linspace(max(across[0], up[0] / slope), min(across[1], up[1] / slope), 2)
        if alpha[0] < alpha[1]:
            parts.append(pl.DataFrame({"alpha": alpha, "beta": slope * alpha, "label": f"a = {share:g}"}))
    if not parts:
        return []
    rows = pl.concat(parts)
    names = marks.chart_of(rows.group_by("label", maintain_order=True).last())
    return [
        marks.line(rows, x, y, colour=QUIET, width=1, dash=[4, 4], by="label"),
        names.mark_text(align="right", dx=-10, dy=4, fontSize=11, color=INK).encode(x, y, text="label:N"),
    ]
