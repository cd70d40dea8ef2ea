"""Which pairs of exponents the runs allow: draws from the fit, along lines of one optimal allocation."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import INK, PREDICTED, QUIET, REAL
from isoloss.laws import Array, Fit

SIDE, DRAWS = 400, 800
LINES = (0.4, 0.45, 0.5, 0.55, 0.6)


def figure(fit: Fit) -> Figure:
    """The exponents alpha of N and beta of D. Raises Refusal for a law without them, or without interval."""
    allocation = fit.allocation()
    if allocation is None or not {"alpha", "beta"} <= set(fit.form.parameters):
        raise Refusal("the law has no exponents alpha and beta", mend="fit chinchilla")
    if fit.covariance is None or {"alpha", "beta"} & set(fit.fixed) or fit.tied:
        raise Refusal("alpha and beta are not both free", mend="fit the law with both exponents free")
    drawn = np.array([list(fit.form.plain(row).values()) for row in _coordinates(fit)])
    names = list(fit.form.parameters)
    cloud = pl.DataFrame({name: drawn[:, names.index(name)] for name in ("alpha", "beta")})
    share = (cloud["beta"] / (cloud["alpha"] + cloud["beta"])).to_numpy()
    low, high = np.quantile(share, [(1 - fit.level) / 2, (1 + fit.level) / 2])
    x = alt.X("alpha:Q", title="alpha, exponent of N").scale(
        domain=_room(cloud["alpha"]), zero=False, nice=False
    )
    y = alt.Y("beta:Q", title="beta, exponent of D").scale(
        domain=_room(cloud["beta"]), zero=False, nice=False
    )
    best = pl.DataFrame({name: [fit.params[name]] for name in ("alpha", "beta")})
    layers = [
        *_rays(marks.domain(x), marks.domain(y), x, y),
        marks.points(cloud, x, y, colour=REAL, size=10, opacity=0.3, clip=True),
        marks.points(best, x, y, colour=PREDICTED, shape="diamond", size=110),
    ]
    of = "bootstrap refits" if fit.bootstrap is not None else "draws from the fit's covariance"
    return captioned(
        "parameter-cloud",
        marks.panel(layers, SIDE, SIDE),
        f"The best N grows as C^{allocation['a']:.2f} ({low:.2f} to {high:.2f})",
        cloud,
        draws=f"{cloud.height} {of}",
        level=text.level(fit.level),
    )


def _coordinates(fit: Fit) -> Array:
    """Coordinates of the plain parameters, a row a draw."""
    log_scale_I = np.log([fit.units.inputs[name] for name in fit.form.inputs])
    theta_Sp = fit.draws(DRAWS, np.random.default_rng(0))
    return fit.form.unscale(theta_Sp, log_scale_I, float(np.log(fit.units.loss)))


def _room(values: pl.Series) -> list[float]:
    """The middle 99 % with a tenth to spare."""
    low, high = np.quantile(values.to_numpy(), [0.005, 0.995])
    spare = 0.1 * (high - low)
    return [float(low - spare), float(high + spare)]


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
