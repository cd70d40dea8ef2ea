"""What the bill's tables say."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from isoloss import table
from isoloss.figures import marks
from isoloss.figures.figure import Figure
from isoloss.figures.style import FAMILY_COLOURS, log_axis
from isoloss.teach.prose import figure
from isoloss.teach.race import draw
from isoloss.teach.race.counts import BLOCK, LSTM
from isoloss.teach.race.ratios import factor, judge, winner
from isoloss.teach.race.settings import BillSettings
from isoloss.teach.race.tell import at_all, factors, say
from isoloss.teach.result import Row, Sentence, Tables, sentence
from isoloss.teach.versus import Claim, family_of
from isoloss.text import capital, size

BADGES = {"bill-memory": "EXACT"}
"""Of figures that are not what the panel is: here floats that were counted."""
LOOKS: dict[str, marks.Look] = {
    BLOCK.name: (FAMILY_COLOURS["transformer"], "square", [7, 4]),
    LSTM.name: (FAMILY_COLOURS["lstm"], "circle", [1, 0]),
}


def count(settings: BillSettings, tables: Tables) -> int:
    return settings.repeats


def sentences(settings: BillSettings, tables: Tables) -> list[Sentence]:
    rows, short = tables["ratios"], "The LSTM keeps one summary; attention keeps every word."
    verdict = judge(rows, BLOCK.name, LSTM.name, "n_before")
    return [
        sentence("step", say("step", verdict=verdict, n=rows[0]["n"])),
        sentence("crossing", *crossing(rows)),
        sentence("growth", f"{_growth(tables['growth'])}."),
        sentence("memory", _memory(settings, tables["memory"]), short, exact=True),
    ]


def crossing(rows: Sequence[Row]) -> Claim:
    """Whose next word is cheaper, and from which length on, where no longer one turns that round."""
    ahead = [winner(row, BLOCK.name, LSTM.name) for row in sorted(rows, key=lambda row: row["n_before"])]
    last, short = ahead[-1], "Who is cheaper depends on the length."
    if family := at_all(rows):
        short = f"At every length measured one more word is cheaper for the {family}."
    elif not any(ahead):
        short = "No clear difference in the price of one more word."
    elif last and not {*ahead[ahead.index(last) :]} - {last, None}:
        short = f"After enough words, one more is cheaper for the {family_of(last)}."
    return Claim(f"{capital(dearer_from(rows))}.", short, family, factors(rows))


def dearer_from(rows: Sequence[Row]) -> str:
    """Between which n the block becomes the dearer of the two, as far as the intervals decide.

    "Dearer from n on" asks that it is decided there and at every larger n measured.
    """
    rows = sorted(rows, key=lambda row: row["n_before"])
    first, last = (f"{rows[end]['n_before']:,}" for end in (0, -1))
    dearer = [winner(row, BLOCK.name, LSTM.name) == LSTM.name for row in rows]
    cheaper = [winner(row, BLOCK.name, LSTM.name) == BLOCK.name for row in rows]
    start = next((i for i in range(len(rows)) if all(dearer[i:])), None)
    if start == 0:
        return f"the block's step is the dearer one at every n measured, {first} to {last}: no crossing seen"
    if start is None:
        if all(cheaper):
            return f"the block's step is the cheaper one at every n measured, {first} to {last}"
        if any(dearer):
            return judge(rows, BLOCK.name, LSTM.name, "n_before", numbers=False)
        return f"where the block's step becomes dearer is not decided between n = {first} and {last}"
    end = f"{rows[start]['n_before']:,}"
    before = [i for i in range(start) if cheaper[i]]
    if not before:
        return f"the block's step is the dearer one from n = {end} on; below that it is not decided"
    begin = f"{rows[before[-1]]['n_before']:,}"
    return f"the block's step becomes the dearer one between n = {begin} and {end}"


def _growth(rows: Sequence[Row]) -> str:
    """How much dearer the last n is than the first, on either side."""
    changes = {"now": "less", "before": "more", None: "no clear difference"}
    parts = "; ".join(
        f"{changes[winner(row, 'now', 'before')]} for the {row['runner']} ({factor(row)})" for row in rows
    )
    return say("growth", parts=parts, **rows[0])


def _memory(settings: BillSettings, rows: Sequence[Row]) -> str:
    last = max(row["n_before"] for row in rows)
    memory = {row["runner"]: size(row["bytes"]) for row in rows if row["n_before"] == last}
    return say("memory", d=settings.d_model, n=last, cache=memory[BLOCK.name], state=memory[LSTM.name])


def figures(settings: BillSettings, tables: Tables) -> list[Figure]:
    if not tables.get("times"):
        return []
    return [_cost(tables), _stored(tables["memory"])]


def _cost(tables: Tables) -> Figure:
    rows = tables["times"]
    verdict = judge(tables["ratios"], BLOCK.name, LSTM.name, "n_before", numbers=False)
    chart = _curves(rows, "CPU time of one more token, ms", bars=True)
    return figure("race", "bill-cost", chart, pl.DataFrame(rows), verdict=verdict, n=rows[0]["n"])


def _stored(rows: Sequence[Row]) -> Figure:
    first, last = (edge(row["n_before"] for row in rows) for edge in (min, max))
    floats = {(row["n_before"], row["runner"]): row["floats"] for row in rows}
    at_first, at_last = (f"{floats[n, BLOCK.name] // floats[n, LSTM.name]:,}" for n in (first, last))
    chart = _curves([row | {"value": row["bytes"]} for row in rows], "Bytes kept a layer", bars=False)
    words = {"first": f"{first:,}", "last": f"{last:,}", "at_first": at_first, "at_last": at_last}
    return figure("race", "bill-memory", chart, pl.DataFrame(rows), **words)


def _curves(rows: Sequence[Row], y_title: str, *, bars: bool) -> alt.LayerChart:
    frame = marks.with_looks(pl.DataFrame(rows).sort("runner", "n_before"), "runner", LOOKS)
    ns = sorted(set(frame["n_before"]))
    x = log_axis(alt.X, "n_before", "Tokens n read before", ns[0], ns[-1], room=1.2, ticks=ns, labels=",d")
    low, high = marks.span(*(frame[name] for name in (("low", "high") if bars else ("value",))))
    y = log_axis(alt.Y, "value", y_title, low, high, room=1.4, labels="~g" if bars else "~s")
    return marks.panel(draw.curves(frame, LOOKS, x, y, draw.HEIGHT, bars=bars), draw.WIDTH, draw.HEIGHT)


def lines(settings: BillSettings, tables: Tables) -> list[str]:
    times = {(row["n_before"], row["runner"]): row for row in tables["times"]}
    stored = {(row["n_before"], row["runner"]): size(row["bytes"]) for row in tables["memory"]}
    rows: list[tuple[object, ...]] = []
    for n in sorted({n for n, _ in times}):
        spans = (times[n, layer.name] for layer in (BLOCK, LSTM))
        texts = (f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})" for row in spans)
        rows.append((n, *texts, stored[n, BLOCK.name], stored[n, LSTM.name]))
    heads = ("n before", "block, ms", "LSTM, ms", "cache", "state")
    return [*table.lines(table.text_table("", heads, rows, numeric=True))]
