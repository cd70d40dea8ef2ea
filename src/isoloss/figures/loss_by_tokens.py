"""The comparison of families at every D that both reached, side by side."""

from dataclasses import dataclass

import altair as alt
import polars as pl

from isoloss import text
from isoloss.analysis.points import LEVEL, cooled_points, of_families, seeds_phrase, shared_tokens
from isoloss.figures.figure import Figure
from isoloss.figures.lines import ROOM, look_of
from isoloss.figures.loss_by_params import ByParams, at_tokens
from isoloss.figures.style import linear_axis, log_axis, titled
from isoloss.records import StudyData

PANEL = 230


@dataclass(frozen=True)
class ByTokens:
    """One comparison for each D, ascending."""

    each: tuple[ByParams, ...]


def measure(study: StudyData) -> ByTokens:
    """Raises Refusal if a family is missing or no D is shared."""
    points = of_families(cooled_points(study.table()), "transformer", "lstm")
    shared_tokens(points)
    families = points.group_by("tokens").agg(pl.col("family").n_unique())
    shared = families.filter(pl.col("family") == 2)["tokens"].sort()
    return ByTokens(tuple(at_tokens(points, tokens) for tokens in shared))


def verdict(data: ByTokens) -> str:
    """In how many sizes the LSTM is ahead, D by D."""
    counted = [(one, ahead_of(one)) for one in data.each]
    kinds = {(one.rival, len(one.headline_gaps)) for one, _ in counted}
    if len(kinds) == 1 and all(ahead is not None for _, ahead in counted):
        rival, size = kinds.pop()
        lstm, ours = (text.listed([str(ahead[i]) for _, ahead in counted]) for i in (0, 1))
        tokens = text.listed([text.count(one.tokens) for one, _ in counted])
        return (
            f"the {rival} is ahead at {lstm} and the Transformer at {ours} of {size} sizes, at D = {tokens}"
        )
    clauses = []
    for one, ahead in counted:
        if ahead is None:
            clauses.append(f"no verdict at {text.count(one.tokens)}")
            continue
        clauses.append(
            f"the {one.rival} is ahead at {ahead[0]} and the Transformer at {ahead[1]} of "
            f"{len(one.headline_gaps)} sizes at D = {text.count(one.tokens)}"
        )
    return "; ".join(clauses)


def ahead_of(one: ByParams) -> tuple[int, int] | None:
    """At how many sizes the LSTM, the Transformer is ahead; None where seeds do not allow a verdict."""
    signs = [gap.difference.sign for gap in one.headline_gaps]
    return None if not signs or None in signs else (signs.count(1), signs.count(-1))


def figure(data: ByTokens) -> Figure:
    title = verdict(data)
    title = text.capital(title)
    rows = pl.concat(
        line.points.with_columns(*look_of(line), pl.lit(one.tokens).alias("tokens"), panel(one))
        for one in data.each
        for line in one.lines
    )
    styles = rows.select("curve", "colour", "shape").unique(maintain_order=True)
    legend = alt.Legend(title=None, orient="top")
    names = styles["curve"].to_list()
    colour = alt.Color(
        "curve:N", scale=alt.Scale(domain=names, range=styles["colour"].to_list()), legend=legend
    )
    shape = alt.Shape(
        "curve:N", scale=alt.Scale(domain=names, range=styles["shape"].to_list()), legend=legend
    )
    x = log_axis(alt.X, "params", "Parameters N", rows["params"].min(), rows["params"].max(), room=ROOM)
    y = linear_axis("loss", "Validation loss (nats per token)", rows["loss"].min(), rows["loss"].max())
    mean = linear_axis(
        "mean(loss)", "Validation loss (nats per token)", rows["loss"].min(), rows["loss"].max()
    )
    mean.shorthand = "mean(loss):Q"
    layered = alt.layer(
        alt.Chart().mark_line(strokeWidth=1.5).encode(x, mean, color=colour),
        alt.Chart().mark_point(filled=True, size=36).encode(x, y, color=colour, shape=shape),
        data=alt.InlineData(values=rows.to_dicts()),
    ).properties(width=PANEL, height=PANEL)
    order = [f"D = {text.count(one.tokens)}" for one in data.each]
    drawn_chart = layered.facet(
        facet=alt.Facet("panel:N", sort=order, header=alt.Header(title=None, labelFontWeight="bold")),
        columns=3,
    )
    subtitle = (
        f"N: non-embedding parameters; each panel at the end of a cooldown of its own; "
        f"{seeds_phrase(data.each[-1].points)}, one point each; lines join means. Ahead: the "
        f"{text.level(LEVEL)} t interval of the difference at equal N leaves out 0."
    )
    return Figure(
        name="loss-by-params-each-d",
        chart=titled(drawn_chart, title, subtitle, characters=100),
        title=title,
        description="A panel for each D: loss against parameters (log axis), a curve a family and depth.",
        shows=f"{title}.",
        would_change="More tokens: the gap depends on D, and these D are small.",
        table=rows.select("tokens", "curve", "params", "seed", "loss"),
    )


def panel(one: ByParams) -> pl.Expr:
    return pl.lit(f"D = {text.count(one.tokens)}").alias("panel")
