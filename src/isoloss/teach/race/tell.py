"""What the race's tables say."""

from collections.abc import Sequence
from itertools import product

import polars as pl
from markupsafe import Markup

from isoloss import table
from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach.race import draw
from isoloss.teach.race.counts import ALONE, BLOCK, LSTM, NAIVE, RUNNERS, Runner, depth, path
from isoloss.teach.race.ratios import factor, judge, winner
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.teach.versus import Family, Told
from isoloss.text import capital, count, interval, power


def basis(settings: RaceSettings, tables: Tables) -> Basis:
    return Basis(
        n=settings.repeats,
        units="paired repeats a runner",
        interval="times: median, smallest to largest; ratios: order statistics, 95% or more",
    )


def sentences(settings: RaceSettings, tables: Tables) -> list[Sentence]:
    first = next(iter(setups(tables)), "")
    texts = {
        "whole-training": _layers(pair(tables, first, BLOCK, LSTM, BOTH)),
        "whole-forward": _layers(pair(tables, first, BLOCK, LSTM, FORWARD)),
        "same-function": _same_function(pair(tables, first, NAIVE, LSTM, BOTH, FORWARD)),
        "opponents": _opponents(tables, first),
        **_threads(tables),
        "whole-gpu": _gpu(pair(tables, "GPU", BLOCK, LSTM, BOTH, FORWARD)),
        "not-run": _not_run(tables),
    }
    layers = pair(tables, first, BLOCK, LSTM, BOTH)
    told = {
        "whole-training": Told("", _layers_short(layers), family_at_all(layers)),
        "chain": Told(
            "", f"The LSTM waits {depth(LSTM, max(settings.lengths)):,} times in a row; attention hardly."
        ),
        "work": Told("", "Attention does more work, and waits less."),
        **_threads_told(tables),
    }
    exact = {"chain": _chain(settings), "work": _work(settings, tables)}
    return [
        *(spoken(key, f"{capital(text)}.", told.get(key)) for key, text in texts.items() if text),
        *(spoken(key, text, told[key], exact=True) for key, text in exact.items()),
    ]


def pair(tables: Tables, setup: str, a: Runner, b: Runner, *modes: str) -> list[Row]:
    """The ratios of two runners in the first of these modes that both ran."""
    for mode in modes:
        wanted = (setup, mode, a.name, b.name)
        rows = [row for row in tables["ratios"] if (row["setup"], row["mode"], row["a"], row["b"]) == wanted]
        if rows:
            return rows
    return []


def setups(tables: Tables) -> list[str]:
    """The one on a single CPU thread first, if it ran."""
    rows = sorted(tables["times"], key=lambda row: (row["device"], row["threads"]))
    return list(dict.fromkeys(row["setup"] for row in rows))


def _layers(rows: Sequence[Row]) -> str:
    """Layer against layer, as both are trained."""
    if not rows:
        return ""
    mode, setup, clock, n = (rows[0][column] for column in ("mode", "setup", "clock", "n"))
    verdict = judge(rows, BLOCK.name, LSTM.name, "length")
    return f"{mode}, {setup}: {verdict}; {clock} of whole layers, n = {n} repeats"


def _layers_short(rows: Sequence[Row]) -> str:
    """The verdict at every length, or that there is not one."""
    faster = {winner(row, BLOCK.name, LSTM.name) for row in rows}
    if len(faster) != 1:
        return "Who is faster depends on the length." if faster else ""
    name = faster.pop()
    spoken = {LSTM.name: "LSTM", BLOCK.name: "Transformer"}
    where = "On one core" if rows[0]["setup"] == "1 CPU thread" else "Here"
    return f"{where} the {spoken[name]} layer is faster." if name else "No clear difference."


def family_at_all(rows: Sequence[Row]) -> Family:
    """The family that is faster at every length."""
    faster = {winner(row, BLOCK.name, LSTM.name) for row in rows}
    name = faster.pop() if len(faster) == 1 else None
    return "LSTM" if name == LSTM.name else "Transformer" if name == BLOCK.name else ""


def _threads_told(tables: Tables) -> dict[str, Told]:
    """The first set-up with more than one thread."""
    for setup in setups(tables)[1:]:
        if gains := _longest(tables["gains"], setup):
            block, lstm = gains
            told = Told("", "No clear difference in what more cores bring.")
            if block["low"] > lstm["high"]:
                told = Told("", "Parallel hardware helps the Transformer more than the LSTM.", "Transformer")
            elif lstm["low"] > block["high"]:
                told = Told("", "Parallel hardware helps the LSTM more than the Transformer.", "LSTM")
            return {f"parallel-{setup}".replace(" ", "-"): told}
    return {}


def spoken(key: str, text: str, told: Told | None, *, exact: bool = False) -> Sentence:
    """``text`` with what is said of it in the room, if anything."""
    short, ahead = (told.short, told.ahead) if told else ("", "")
    return Sentence(key=key, text=text, short=short, ahead=ahead, exact=exact)


def _same_function(rows: Sequence[Row]) -> str:
    """The cost of the loop itself: the LSTM layer computes the same from the same weights."""
    if not rows:
        return ""
    return (
        f"the naive loop and the LSTM layer compute the same function from the same weights; "
        f"{rows[0]['mode']}, n = {rows[0]['n']} repeats: {judge(rows, NAIVE.name, LSTM.name, 'length')}"
    )


def _opponents(tables: Tables, setup: str) -> str:
    """The same contestant against two opponents: the verdict is about whom one races."""
    loop, layer = (pair(tables, setup, *two, FORWARD) for two in ((NAIVE, ALONE), (ALONE, LSTM)))
    if not loop or not layer:
        return ""
    return (
        f"attention alone, forward, n = {layer[0]['n']} repeats: against the Python loop, "
        f"{judge(loop, NAIVE.name, ALONE.name, 'length')}; against the library, "
        f"{judge(layer, ALONE.name, LSTM.name, 'length')}"
    )


def _threads(tables: Tables) -> dict[str, str]:
    """What parallel hardware added to either side, at the longest length that both ran."""
    texts = {}
    for setup in setups(tables)[1:]:
        if gains := _longest(tables["gains"], setup):
            texts[f"parallel-{setup}".replace(" ", "-")] = _gains_verdict(*gains)
    return texts or {
        "parallel": "Block and LSTM layer were not both timed on one CPU thread and on more, so nothing is "
        "said here of what parallel hardware adds"
    }


def _longest(gains: Sequence[Row], setup: str) -> tuple[Row, Row] | None:
    """Block's and LSTM layer's gain at the longest length that both ran, with backward if they did."""
    for mode in (BOTH, FORWARD):
        rows = [row for row in gains if (row["setup"], row["mode"]) == (setup, mode)]
        block, lstm = ({row["length"]: row for row in rows if row["runner"] == o.name} for o in (BLOCK, LSTM))
        if common := set(block) & set(lstm):
            return block[max(common)], lstm[max(common)]
    return None


def _gains_verdict(block: Row, lstm: Row) -> str:
    if block["low"] > lstm["high"]:
        more = "the block, with the shorter chain of matmuls, gained more"
    elif lstm["low"] > block["high"]:
        more = "the LSTM layer gained more, for all its longer chain of matmuls"
    else:
        more = "no clear difference between the two gains"
    words = {"now": "faster", "before": "slower", None: "no clear difference"}
    sides = "; ".join(
        f"the {row['runner']}: {words[winner(row, 'before', 'now')]} ({factor(row)})" for row in (block, lstm)
    )
    where = f"{block['setup']} instead of 1 CPU thread, {block['mode']}, T = {block['length']:,}"
    return f"{where} (wall time, n = {block['n']} repeats): {sides}; {more}"


def _gpu(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    verdict = judge(rows, BLOCK.name, LSTM.name, "length")
    return f"on the GPU, {rows[0]['mode']} (wall time, n = {rows[0]['n']} repeats): {verdict}"


def _not_run(tables: Tables) -> str:
    """What the budget left out, with its price."""
    by_job: dict[str, list[Row]] = {}
    for row in sorted(tables["not_run"], key=lambda row: row["length"]):
        by_job.setdefault(f"{row['runner']}, {row['mode']}, {row['setup']}", []).append(row)
    parts = []
    for job, rows in by_job.items():
        lengths = ", ".join(f"{row['length']:,}" for row in rows)
        seconds = ", ".join(f"{row['predicted_seconds']:.1f}" for row in rows)
        parts.append(f"{job}, T = {lengths} (about {seconds} s)")
    return f"Not run, for want of time: {'; '.join(parts)}" if parts else ""


def _chain(settings: RaceSettings) -> str:
    T = max(settings.lengths)
    return (
        f"Longest chain of matmuls that wait for each other at T = {T:,}: {depth(LSTM, T):,} in an LSTM "
        f"layer, {depth(BLOCK, T)} in a causal block whatever T is. Path from the first token to the last "
        f"output: {path(LSTM, T):,} steps against {path(BLOCK, T)}. A short chain saves time only where "
        f"hardware does several things at once."
    )


def _work(settings: RaceSettings, tables: Tables) -> str:
    flops = {(row["length"], row["runner"]): row["flops"] for row in tables["exact"]}
    ratios = ", ".join(
        f"{flops[T, BLOCK.name] / flops[T, LSTM.name]:.2f} times at T = {T:,}"
        for T in sorted(set(settings.lengths))
    )
    return (
        f"Work is not what attention saves: at equal width {settings.d_model} a causal block's matmuls take "
        f"more FLOPs than an LSTM layer's, {ratios}, since scores grow with T squared."
    )


def figures(settings: RaceSettings, tables: Tables) -> list[Figure]:
    names = setups(tables)
    if not names:
        return []
    layers = pair(tables, names[0], BLOCK, LSTM, BOTH, FORWARD)
    times = draw.times(tables, names[0], layers[0]["mode"] if layers else FORWARD, layers)
    rows = [row for row in tables["ratios"] if (row["a"], row["b"]) == (BLOCK.name, LSTM.name)]
    return [times, draw.referee(rows, len(names))] if rows else [times]


def lines(settings: RaceSettings, tables: Tables) -> list[str]:
    lengths, out = sorted(set(settings.lengths)), list[str]()
    for setup, mode in product(setups(tables), MODES):
        rows = [row for row in tables["times"] if (row["setup"], row["mode"]) == (setup, mode)]
        if rows:
            caption = f"{mode}, {setup}, {rows[0]['clock']} in ms: median (smallest to largest)"
            cells = {(row["runner"], row["length"]): _cell(row) for row in rows}
            grid = [(o.name, *(cells.get((o.name, T), "not run") for T in lengths)) for o in RUNNERS]
            heads = ("Runner", *(f"T = {T:,}" for T in lengths))
            out += [*table.lines(table.text_table(caption, heads, grid, numeric=True)), ""]
    return [*out, *table.lines(exact(settings, tables))]


def _cell(row: Row) -> str:
    return f"{power(row['value'])} ({interval((row['low'], row['high']), power)})"


def exact(settings: RaceSettings, tables: Tables) -> table.Table:
    """What holds on every machine, at the longest T."""
    T = max(settings.lengths)
    caption = f"EXACT, T = {T:,}, width {settings.d_model}, batch {settings.batch}"
    rows = [row | {"flops": count(row["flops"])} for row in tables["exact"] if row["length"] == T]
    frame = pl.DataFrame(rows).select("runner", "what", "weights", "depth", "path", "flops")
    heads = ("Runner", "What it is", "Weights", "Chain of matmuls", "Path", "Forward FLOPs")
    return table.table_of(caption, frame, heads)


def html(settings: RaceSettings, tables: Tables) -> Markup:
    return fill("teach/deck/table.html", table=exact(settings, tables))
