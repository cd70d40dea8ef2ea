"""The runs of a study as one chart to explore: what stands on the axes is chosen on the page."""

from typing import Any

import altair as alt
import polars as pl

from isoloss.analysis.points import points_of
from isoloss.figures.marks import SHAPES
from isoloss.figures.style import COUNTS, configured, family_colour, shades
from isoloss.records import StudyData

HEIGHT = 440
AXES = {
    "params": "Parameters N, non-embedding",
    "params_total": "All parameters",
    "flops_6nd": "Training compute, 6 N D FLOPs",
    "tokens": "Training tokens D",
}
LOSS = "Validation loss (nats per token)"
TOOLTIPS = {
    "curve": "model",
    "params": "N",
    "tokens": "D",
    "flops_6nd": "FLOPs",
    "seed": "seed",
    "loss": "loss",
    "low": "from (two s.e.)",
    "high": "to",
    "run_id": "run",
}
FORMATS = {"params": ",", "tokens": ",", "flops_6nd": ".3~e", "loss": ".4f", "low": ".4f", "high": ".4f"}
COLUMNS = ("family", "curve", *AXES, "seed", "loss", "low", "high", "run_id")


def rows_of(study: StudyData) -> pl.DataFrame:
    """A row a run and D, at the end of its cooldown; ``low`` and ``high``: two standard errors over text.

    Raises Refusal before any run has finished.
    """
    points = points_of(study)
    loss, error = pl.col("loss"), 2 * pl.col("loss_se")
    return points.with_columns(low=loss - error, high=loss + error).select(COLUMNS)


def specification(rows: pl.DataFrame) -> dict[str, Any]:
    """Points with bars of two standard errors, native hover, zoom; as wide as its place. Rows are the page's.

    ``chosen`` names the run that the table points at, ``left`` the curves that the legend on the page
    has not faded. What stands on x, and both scales, the page changes.
    """
    looks = looks_of(rows)
    colours, shapes = zip(*looks.values(), strict=True)
    colour = alt.Color("curve:N", legend=None).scale(domain=list(looks), range=colours)
    shape = alt.Shape("curve:N", legend=None).scale(domain=list(looks), range=shapes)
    x = alt.X(
        "params:Q",
        title=AXES["params"],
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(labelExpr=COUNTS),
    )
    y = alt.Y("loss:Q", title=LOSS, scale=alt.Scale(zero=False, padding=20))
    base = alt.Chart(alt.NamedData("rows")).encode(x=x, color=colour)
    bars = base.mark_rule(aria=False).encode(
        y=alt.Y("low:Q", title=LOSS),
        y2="high:Q",
        opacity=_opacity(0.5, 0.05),
    )
    points = base.mark_point(filled=True, size=70, aria=False).encode(
        y=y, shape=shape, tooltip=_tooltips(), opacity=_opacity(0.95, 0.08)
    )
    params = alt.param(name="left", value=[]), alt.param(name="chosen", value="")
    zoom = alt.selection_interval(name="zoom", bind="scales")
    chart = alt.layer(bars, points.add_params(*params, zoom)).properties(width="container", height=HEIGHT)
    return configured(chart).to_dict(validate=False)


def _tooltips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{field}:Q", title=title, format=FORMATS[field])
        if field in FORMATS
        else alt.Tooltip(f"{field}:N", title=title)
        for field, title in TOOLTIPS.items()
    ]


def _opacity(full: float, faint: float) -> dict[str, Any]:
    """Faint what the legend has faded, and what the table does not point at."""
    left = "(length(left) === 0 || indexof(left, datum.curve) >= 0)"
    pointed = "(chosen === '' || datum.run_id === chosen)"
    return {"condition": {"test": f"{left} && {pointed}", "value": full}, "value": faint}


def looks_of(rows: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """Of each curve a colour, shades of its family's, and a shape of its own."""
    curves = rows.select("family", "curve").unique(maintain_order=True).rows()
    families = list(dict.fromkeys(family for family, _ in curves))
    out: dict[str, tuple[str, str]] = {}
    for family in families:
        members = [curve for of, curve in curves if of == family]
        for curve, colour in zip(members, shades(family_colour(family, families), len(members)), strict=True):
            out[curve] = (colour, SHAPES[len(out) % len(SHAPES)])
    return out
