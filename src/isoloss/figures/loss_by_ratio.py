"""Loss against tokens a parameter: what over-training buys, after Gadre et al. 2024 (arXiv 2403.08540)."""

import altair as alt
import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import row_words, rows
from isoloss.errors import Refusal
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.fit import GRID, LEVELS
from isoloss.figures.style import linear_axis, log_axis
from isoloss.laws import Fit

WIDTH, HEIGHT = 560, 380


def figure(fit: Fit) -> Figure:
    """The runs over D / N, and the law at sizes N of the runs. Raises Refusal for a law of other inputs."""
    if set(fit.form.inputs) != {"params", "tokens"} or fit.form.gives != "loss":
        raise Refusal(
            f"a law of {', '.join(fit.form.inputs)} does not tell tokens a parameter",
            mend="fit a law of parameters and tokens, such as chinchilla",
        )
    points = rows(fit).with_columns((pl.col("tokens") / pl.col("params")).alias("ratio"))
    low, high = marks.span(points["params"])
    sizes = np.unique(points["params"].to_numpy())
    chosen = sizes[np.unique(np.linspace(0, len(sizes) - 1, LEVELS).round().astype(int))]
    lines = pl.concat(line_of(fit, size, points) for size in chosen)
    ratios = marks.span(points["ratio"])
    x = log_axis(alt.X, "ratio", "Training tokens a parameter, D / N", *ratios, room=1.15)
    y = linear_axis("observed", f"Loss ({fit.loss_unit})", *marks.span(points["observed"], lines["law"]))
    colour = marks.colour_bar("params", "Parameters N", low, high)
    ends = lines.group_by("params", maintain_order=True).last()
    ends = ends.with_columns(marks.on_ramp(ends["params"], low, high), observed="law").with_columns(
        pl.Series("label", [f"N = {text.count(size)}" for size in ends["params"]])
    )
    coloured = points.sort("params", maintain_order=True)
    coloured = coloured.with_columns(marks.on_ramp(coloured["params"], low, high))
    layers = [
        marks.points(coloured, x, y, size=30, opacity=0.7),
        marks.line(lines, x, marks.renamed(y, "law"), colour=colour, by="params", width=1.8),
        *marks.leaders(ends, x, y, HEIGHT, size=11),
        marks.end_labels(ends, marks.EDGE, y, HEIGHT, size=11),
    ]
    return captioned(
        "loss-by-ratio",
        marks.panel(layers, WIDTH, HEIGHT).resolve_scale(color="independent"),
        title_of(lines, float(chosen[len(chosen) // 2]), fit.loss_unit),
        points.select("params", "tokens", "ratio", "observed", "law"),
        rows=row_words(fit),
        law=fit.law,
    )


def line_of(fit: Fit, size: float, points: pl.DataFrame) -> pl.DataFrame:
    """The law of one size over the tokens that sizes near it were trained for."""
    near = points.filter((pl.col("params") / size).log().abs() < np.log(2.0))
    ratio = np.geomspace(*marks.span(near["ratio"]), GRID)
    law = fit.predict(level=None, params=np.full(GRID, size), tokens=ratio * size).loss
    return pl.DataFrame({"params": float(size), "ratio": ratio, "law": np.asarray(law)})


def title_of(lines: pl.DataFrame, size: float, unit: str) -> str:
    """What more tokens buy one size over its range, by the law."""
    line = lines.filter(pl.col("params") == size)
    (least, most), (low, high) = marks.span(line["ratio"]), marks.span(line["law"])
    return (
        f"{text.count(most / least)} times the tokens a parameter lower the loss of "
        f"N = {text.count(size)} by {text.brief(high - low)} {unit.removesuffix(' per token')}"
    )
