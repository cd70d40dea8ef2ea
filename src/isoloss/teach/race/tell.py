"""What the race's tables say."""

from collections.abc import Sequence
from functools import partial
from itertools import product

import polars as pl
from markupsafe import Markup

from isoloss import table
from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach.prose import say as say_of
from isoloss.teach.race import draw
from isoloss.teach.race.counts import ALONE, BLOCK, LSTM, NAIVE, RUNNERS, Runner, depth, path
from isoloss.teach.race.ratios import factor, judge, winner
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.result import Family, Row, Sentence, Tables, frame, sentence
from isoloss.teach.versus import Claim, family_of
from isoloss.text import capital, interval, power
from isoloss.text import count as count_of

say = partial(say_of, "race")


def count(settings: RaceSettings, tables: Tables) -> int:
    return settings.repeats


def sentences(settings: RaceSettings, tables: Tables) -> list[Sentence]:
    first = next(iter(setups(tables)), "")
    claims = {
        "whole-training": _layers(pair(tables, first, BLOCK, LSTM, BOTH)),
        "whole-forward": Claim(judged("layers", pair(tables, first, BLOCK, LSTM, FORWARD)), ""),
        "same-function": Claim(judged("same-function", pair(tables, first, NAIVE, LSTM, BOTH, FORWARD)), ""),
        "opponents": Claim(_opponents(tables, first), ""),
        **_threads(tables),
        "whole-gpu": _layers(pair(tables, "GPU", BLOCK, LSTM, BOTH, FORWARD), "gpu"),
        "not-run": Claim(_not_run(tables), ""),
    }
    T = max(settings.lengths)
    waits = f"The LSTM waits {depth(LSTM, T):,} times in a row; attention hardly."
    return [
        *(sentence(key, f"{capital(one.text)}.", *one[1:]) for key, one in claims.items() if one.text),
        sentence("chain", _chain(T), waits, exact=True),
        sentence("work", _work(settings, tables), "Attention does more work, and waits less.", exact=True),
    ]


def pair(tables: Tables, setup: str, a: Runner, b: Runner, *modes: str) -> list[Row]:
    """The ratios of two runners in the first of these modes that both ran."""
    for mode in modes:
        if rows := frame(tables, "ratios", setup=setup, mode=mode, a=a.name, b=b.name).to_dicts():
            return rows
    return []


def setups(tables: Tables) -> list[str]:
    """The one on a single CPU thread first, if it ran."""
    rows = sorted(tables["times"], key=lambda row: (row["device"], row["threads"]))
    return list(dict.fromkeys(row["setup"] for row in rows))


def _layers(rows: Sequence[Row], name: str = "layers") -> Claim:
    """Layer against layer, as both are trained: where each is faster, and whether one is everywhere."""
    text = judged(name, rows)
    if not rows:
        return Claim(text, "")
    where = {"1 CPU thread": "On one core", "GPU": "On the GPU"}.get(rows[0]["setup"], "Here")
    if family := at_all(rows):
        names = ("LSTM layer", "whole Transformer block")[:: 1 if family == "LSTM" else -1]
        return Claim(text, f"{where} the {names[0]} is faster than the {names[1]}.", family, factors(rows))
    differs = any(winner(row, BLOCK.name, LSTM.name) for row in rows)
    verdict = "who is faster depends on the length." if differs else "no clear difference."
    return Claim(text, f"{where}: {verdict}")


def at_all(rows: Sequence[Row]) -> Family:
    """The family that is faster in every row, if one is."""
    faster = {winner(row, BLOCK.name, LSTM.name) for row in rows}
    return family_of(faster.pop()) if len(faster) == 1 else ""


def factors(rows: Sequence[Row]) -> str:
    """How many times as long the loser takes, from the least of these places to the most."""
    values = sorted(max(row["value"], 1 / row["value"]) for row in rows)
    low, high = (f"{value:.1f}" if value < 10 else f"{value:,.0f}" for value in (values[0], values[-1]))
    return f"{low} times" if low == high else f"{low} to {high} times"


def judged(name: str, rows: Sequence[Row]) -> str:
    """A sentence on the two runners of these rows; empty if they did not both run."""
    return say(name, verdict=judge(rows, rows[0]["a"], rows[0]["b"], "length"), **rows[0]) if rows else ""


def _opponents(tables: Tables, setup: str) -> str:
    """The same contestant against two opponents: the verdict is about whom one races."""
    loop, layer = (pair(tables, setup, *two, FORWARD) for two in ((NAIVE, ALONE), (ALONE, LSTM)))
    if not loop or not layer:
        return ""
    against_loop = judge(loop, NAIVE.name, ALONE.name, "length")
    against_layer = judge(layer, ALONE.name, LSTM.name, "length")
    return say("opponents", loop=against_loop, layer=against_layer, n=layer[0]["n"])


def _threads(tables: Tables) -> dict[str, Claim]:
    """What parallel hardware added to either side, at the longest length that both ran; the first aloud.

    The first of more cores is ``parallel``, however many they are: the last slide asks for it by that key.
    """
    claims: dict[str, Claim] = {}
    for setup in setups(tables)[1:]:
        if gains := _longest(tables, setup):
            claim = _gains(*gains)
            key = "parallel" if not claims and setup != "GPU" else f"parallel-{setup}".replace(" ", "-")
            claims[key] = Claim(claim.text, "") if claims else claim
    return claims or {"one-thread": Claim(say("no-threads"), "")}


def _longest(tables: Tables, setup: str) -> tuple[Row, Row] | None:
    """Block's and LSTM layer's gain at the longest length that both ran, with backward if they did."""
    for mode in (BOTH, FORWARD):
        rows = frame(tables, "gains", setup=setup, mode=mode).to_dicts()
        block, lstm = ({row["length"]: row for row in rows if row["runner"] == o.name} for o in (BLOCK, LSTM))
        if common := set(block) & set(lstm):
            return block[max(common)], lstm[max(common)]
    return None


def _gains(block: Row, lstm: Row) -> Claim:
    more, ahead = "no clear difference between the two gains", ""
    what = "The GPU" if block["setup"] == "GPU" else "More cores"
    short = f"{what}: no clear difference between the two gains."
    if block["low"] > lstm["high"]:
        more, ahead = "the block, with the shorter chain of matmuls, gained more", "Transformer"
        short = f"{what} helped the Transformer more than the LSTM."
    elif lstm["low"] > block["high"]:
        more, ahead = "the LSTM layer gained more, for all its longer chain of matmuls", "LSTM"
        short = f"{what} helped the LSTM more than the Transformer."
    words = {"now": "faster", "before": "slower", None: "no clear difference"}
    sides = "; ".join(
        f"the {row['runner']}: {words[winner(row, 'before', 'now')]} ({factor(row)})" for row in (block, lstm)
    )
    text = say("gains", sides=sides, more=more, **block)
    more, less = sorted((block["value"], lstm["value"]), reverse=True)
    return Claim(text, short, ahead, f"{more:.2f}, not {less:.2f} times")


def _not_run(tables: Tables) -> str:
    """What the budget left out, with its price."""
    parts = []
    jobs = frame(tables, "not_run")
    for (runner, mode, setup), rows in (
        jobs.sort("length", maintain_order=True).partition_by("runner", "mode", "setup", as_dict=True).items()
        if len(jobs)
        else ()
    ):
        lengths = ", ".join(f"{length:,}" for length in rows["length"])
        seconds = ", ".join(f"{seconds:.1f}" for seconds in rows["predicted_seconds"])
        parts.append(f"{runner}, {mode}, {setup}, T = {lengths} (about {seconds} s)")
    return f"Not run, for want of time: {'; '.join(parts)}" if parts else ""


def _chain(T: int) -> str:
    chains = {"lstm": depth(LSTM, T), "block": depth(BLOCK, T)}
    return say("chain", T=T, steps=path(LSTM, T), hops=path(BLOCK, T), **chains)


def _work(settings: RaceSettings, tables: Tables) -> str:
    flops = {(row["length"], row["runner"]): row["flops"] for row in tables["exact"]}
    ratios = ", ".join(
        f"{flops[T, BLOCK.name] / flops[T, LSTM.name]:.2f} times at T = {T:,}"
        for T in sorted(set(settings.lengths))
    )
    return say("work", width=settings.d_model, ratios=ratios)


def figures(settings: RaceSettings, tables: Tables) -> list[Figure]:
    names = setups(tables)
    if not names:
        return []
    layers = pair(tables, names[0], BLOCK, LSTM, BOTH, FORWARD)
    mode = (layers or frame(tables, "times", setup=names[0]).to_dicts())[0]["mode"]
    times = draw.times(tables, names[0], mode, layers, settings.lengths)
    rows = frame(tables, "ratios", a=BLOCK.name, b=LSTM.name).to_dicts()
    return [times, draw.referee(rows, len(names), settings.lengths)] if rows else [times]


def lines(settings: RaceSettings, tables: Tables) -> list[str]:
    lengths, out = sorted(set(settings.lengths)), list[str]()
    for setup, mode in product(setups(tables), MODES):
        if rows := frame(tables, "times", setup=setup, mode=mode).to_dicts():
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
    rows = frame(tables, "exact", length=T).with_columns(pl.col("flops").map_elements(count_of, pl.String))
    shown = rows.select("runner", "what", "weights", "depth", "path", "flops")
    heads = ("Runner", "What it is", "Weights", "Chain of matmuls", "Path", "Forward FLOPs")
    return table.table_of(caption, shown, heads)


def html(settings: RaceSettings, tables: Tables) -> Markup:
    return fill("teach/deck/table.html", table=exact(settings, tables))
