"""Laws on runs that they have not seen: each mean error, and whether it is told apart from the best one."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from isoloss import text
from isoloss.figures import marks
from isoloss.figures.figure import Figure, captioned
from isoloss.figures.style import GRID, INK, REAL
from isoloss.plans.compare import Comparison
from isoloss.plans.standing import ScoreGap

WIDTH, ROW = 260, 30
ROOM = 1.3
"""Right of the largest error, for its number."""
PANELS = {"largest": "Mean error on the hidden runs (%)", "folds": "Mean error on the folds (%)"}
FORECAST = "forecast"
BEST, EQUAL, MORE, LESS = "best law", "not told apart from it", "errs more", "errs less"
RING = "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM.5,0A.5,.5,0,1,0,-.5,0A.5,.5,0,1,0,.5,0Z"
WORSE = "#808080"
LOOKS = {BEST: (REAL, "diamond"), EQUAL: (REAL, RING), MORE: (WORSE, "circle"), LESS: (REAL, marks.STAR)}
MOST_NAMED = 2
"""Laws that a title names; of more it says how many."""


def figure(outcome: Comparison) -> Figure:
    """A panel for the hidden runs and one for the folds, a row a law."""
    table = rows_of(outcome)
    order = table["law"].unique(maintain_order=True).to_list()
    looks = {name: look for name, look in LOOKS.items() if name in table["standing"]}
    hidden = table.filter(split="largest").drop_nulls("standing").select("law", "error", "standing").rows()
    missing = [f" {law}: refused, {reason}." for law, reason in outcome.refused]
    unscored = {(law.law, reason.partition(": ")[2]) for law in outcome.entries for reason in law.left_out}
    missing += [f" {law}: not scored, {reason}." for law, reason in sorted(unscored)]
    return captioned(
        "compared-laws",
        alt.hconcat(*(_panel(table, split, order, looks) for split in PANELS), spacing=24),
        _title(outcome, table.filter(split="largest")),
        table,
        rule=text.capital(outcome.rule),
        folds=outcome.fold_count,
        level=text.level(outcome.level),
        forecast=" The forecast averages laws." if FORECAST in order else "",
        errors="; ".join(f"{name} {text.percent(error / 100)}, {look}" for name, error, look in hidden)
        or "none",
        verdict=outcome.verdict(),
        missing="".join(missing),
    )


def rows_of(outcome: Comparison) -> pl.DataFrame:
    """split, law, error (percent), standing (against the best law), times_low, times_high.

    The last two are the interval of how many times the best law's errors its errors are, run by run. Error
    and standing are null where the law could not be fitted to what was left.
    """
    rows = [
        (split, law.law, *_scored(getattr(law, split), getattr(law, f"behind_{split}")))
        for split in PANELS
        for law in outcome.entries
    ]
    if outcome.forecast_gap is not None:
        forecast = _scored(outcome.forecast, outcome.forecast_gap, outcome.best.largest)
        rows.append(("largest", FORECAST, *forecast))
        rows.append(("folds", FORECAST, *_scored(None, None)))
    numbers = dict.fromkeys(("times_low", "times_high"), pl.Float64)
    words = {"split": pl.String, "law": pl.String, "error": pl.Float64, "standing": pl.String}
    return pl.DataFrame(rows, schema=words | numbers, orient="row").with_columns(pl.col("error") * 100)


_Scored = tuple[float | None, str | None, float | None, float | None]


def _scored(error: float | None, gap: ScoreGap | None, best: float | None = None) -> _Scored:
    """``gap`` is behind the best law, or of that law (whose error is ``best``) behind one that errs less."""
    if error is None or gap is None:
        return error, None if error is None else BEST, None, None
    low, high = gap.times or (None, None)
    if best is None or error >= best:
        return error, MORE if gap.told_apart else EQUAL, low, high
    return error, LESS if gap.told_apart else EQUAL, high and 1 / high, low and 1 / low


def _title(outcome: Comparison, hidden: pl.DataFrame) -> str:
    best, where = outcome.best, f"on {outcome.hidden_words}"
    if best.largest is None:
        return "No law could be fitted without the hidden runs"
    error = text.percent(best.largest)
    if len(outcome.entries) == 1:
        return f"{best.law}, the only law that the runs determine, errs by {error} {where}"
    if LESS in hidden["standing"]:
        errors = f"{text.percent(outcome.forecast)} against {error}"
        return f"The forecast errs less than the best law, {best.law}, {where}: {errors}"
    equal = hidden.filter(pl.col("law") != FORECAST, standing=EQUAL)["law"].to_list()
    title = f"{best.law} errs least of the laws {where} ({error})"
    if not equal:
        return title
    if outcome.too_few:
        return f"{title}; fewer than three runs judge nothing"
    names = text.listed(equal) if len(equal) <= MOST_NAMED else text.plural(len(equal), "other")
    return f"{title}, not told apart from {names}"


def _panel(
    table: pl.DataFrame, split: str, order: Sequence[str], looks: Mapping[str, tuple[str, str]]
) -> alt.LayerChart:
    rows = table.filter(split=split)
    words = ["not scored" if error is None else text.percent(error / 100) for error in rows["error"]]
    rows = rows.with_columns(pl.col("error").fill_null(0.0), label=pl.Series(words))
    scored = rows.drop_nulls("standing").drop("label")
    x = alt.X("error:Q", title=PANELS[split])
    x = x.scale(domain=[0, ROOM * (marks.span(rows["error"])[1] or 1)], nice=False)
    x = x.axis(tickCount=5, grid=False, labelFlush=False)
    y = alt.Y("law:N", sort=list(order), title=None).axis(ticks=False, labelPadding=8, labelLimit=200)
    colour = marks.key(alt.Color, "standing", {name: colour for name, (colour, _) in looks.items()})
    shape = marks.key(alt.Shape, "standing", {name: shape for name, (_, shape) in looks.items()})
    stems = marks.chart_of(scored).mark_rule(strokeWidth=1.5, color=GRID)
    numbers = marks.chart_of(rows).mark_text(align="left", dx=9, fontSize=12, color=INK)
    layers = [
        stems.encode(x, y, x2=alt.datum(0)),
        marks.points(scored, x, y, colour=colour, shape=shape, size=80),
        numbers.encode(x, y, text="label:N"),
    ]
    return marks.panel(layers, WIDTH, ROW * len(order))
