"""What the race's tables say."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from isoloss.figures.figure import Figure
from isoloss.teach.race import race_figures
from isoloss.teach.race.counts import ALONE, BLOCK, LSTM, NAIVE, RUNNERS, Runner, depth, path
from isoloss.teach.race.settings import RaceSettings
from isoloss.teach.race.timing import BOTH, FORWARD, MODES
from isoloss.teach.race.verdict import by, compared, sentence, winner
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.text import count, interval, power


def basis(settings: RaceSettings, tables: Tables) -> Basis:
    return Basis(
        n=settings.repeats,
        units="paired repeats a runner",
        interval="times: median, smallest to largest; ratios: order statistics, 95% or more",
    )


def sentences(settings: RaceSettings, tables: Tables) -> list[Sentence]:
    found = [
        _fair(tables, BOTH),
        _fair(tables, FORWARD),
        _same_function(tables),
        _opponents(tables),
        *_threads(tables),
        _gpu(tables),
        _left_out(tables),
        _chain(settings),
        _work(settings, tables),
    ]
    return [one for one in found if one is not None]


def pair(tables: Tables, setup: str, mode: str, a: Runner, b: Runner) -> list[Row]:
    wanted = (setup, mode, a.name, b.name)
    return [row for row in tables["ratios"] if (row["setup"], row["mode"], row["a"], row["b"]) == wanted]


def setups(tables: Tables) -> list[str]:
    """The one on a single CPU thread first, if it ran."""
    rows = sorted(tables["times"], key=lambda row: (row["device"], row["threads"]))
    return list(dict.fromkeys(row["setup"] for row in rows))


def _fair(tables: Tables, mode: str) -> Sentence | None:
    """Layer against layer, as both are trained."""
    first = next(iter(setups(tables)), "")
    rows = pair(tables, first, mode, BLOCK, LSTM)
    if not rows:
        return None
    said = compared(rows, BLOCK.name, LSTM.name, "length")
    key = "whole-training" if mode == BOTH else "whole-forward"
    text = f"{mode}, {first}: {said}; {rows[0]['clock']} of whole layers, n = {rows[0]['n']} repeats"
    return Sentence(key=key, text=sentence(text))


def _same_function(tables: Tables) -> Sentence | None:
    """The cost of the loop itself: the LSTM layer computes the same from the same weights."""
    for mode in (BOTH, FORWARD):
        rows = pair(tables, next(iter(setups(tables)), ""), mode, NAIVE, LSTM)
        if not rows:
            continue
        said = compared(rows, NAIVE.name, LSTM.name, "length")
        text = (
            f"the naive loop and the LSTM layer compute the same function from the same weights; "
            f"{mode}, n = {rows[0]['n']} repeats: {said}"
        )
        return Sentence(key="same-function", text=sentence(text))
    return None


def _opponents(tables: Tables) -> Sentence | None:
    """The same contestant against two opponents: the verdict is about whom one races."""
    first = next(iter(setups(tables)), "")
    loop, layer = (pair(tables, first, FORWARD, *two) for two in ((NAIVE, ALONE), (ALONE, LSTM)))
    if not loop or not layer:
        return None
    text = (
        f"attention alone, forward, n = {layer[0]['n']} repeats: against the Python loop, "
        f"{compared(loop, NAIVE.name, ALONE.name, 'length')}; against the library, "
        f"{compared(layer, ALONE.name, LSTM.name, 'length')}"
    )
    return Sentence(key="opponents", text=sentence(text))


def _threads(tables: Tables) -> list[Sentence]:
    """What parallel hardware added to either side, at the longest length that both ran."""
    found = []
    for setup in setups(tables)[1:]:
        block, lstm = _longest(tables["gains"], setup)
        if block and lstm:
            found.append(Sentence(key=f"parallel-{setup}".replace(" ", "-"), text=_gained(block, lstm)))
    if not found:
        text = (
            "Block and LSTM layer were not both timed on one CPU thread and on more, so nothing is said here "
            "of what parallel hardware adds."
        )
        found.append(Sentence(key="parallel", text=text))
    return found


def _longest(gains: Sequence[Row], setup: str) -> tuple[Row, Row] | tuple[None, None]:
    """Block's and LSTM layer's gain at the longest length that both ran, with backward if they did."""
    for mode in (BOTH, FORWARD):
        rows = [row for row in gains if (row["setup"], row["mode"]) == (setup, mode)]
        block, lstm = ({row["length"]: row for row in rows if row["runner"] == o.name} for o in (BLOCK, LSTM))
        if common := set(block) & set(lstm):
            return block[max(common)], lstm[max(common)]
    return None, None


def _gained(block: Row, lstm: Row) -> str:
    if block["low"] > lstm["high"]:
        more = "the block, with the shorter chain of matmuls, gained more"
    elif lstm["low"] > block["high"]:
        more = "the LSTM layer gained more, for all its longer chain of matmuls"
    else:
        more = "no clear difference between the two gains"
    place = f"{block['setup']} instead of 1 CPU thread, {block['mode']}, T = {block['length']:,}"
    sides = "; ".join(f"the {row['runner']}: {_gain(row)}" for row in (block, lstm))
    return sentence(f"{place} (wall time, n = {block['n']} repeats): {sides}; {more}")


def _gain(row: Row) -> str:
    fast = winner(row, "before", "now")
    if fast is None:
        return f"no clear difference ({by(row)})"
    return f"{'faster' if fast == 'now' else 'slower'} ({by(row)})"


def _gpu(tables: Tables) -> Sentence | None:
    rows = pair(tables, "GPU", BOTH, BLOCK, LSTM) or pair(tables, "GPU", FORWARD, BLOCK, LSTM)
    if not rows:
        return None
    said = compared(rows, BLOCK.name, LSTM.name, "length")
    text = f"on the GPU, {rows[0]['mode']} (wall time, n = {rows[0]['n']} repeats): {said}"
    return Sentence(key="whole-gpu", text=sentence(text))


def _left_out(tables: Tables) -> Sentence | None:
    if not tables["not_run"]:
        return None
    places: dict[str, list[Row]] = {}
    for row in sorted(tables["not_run"], key=lambda row: row["length"]):
        places.setdefault(f"{row['runner']}, {row['mode']}, {row['setup']}", []).append(row)
    parts = []
    for what, rows in places.items():
        lengths = ", ".join(f"{row['length']:,}" for row in rows)
        seconds = ", ".join(f"{row['predicted_seconds']:.1f}" for row in rows)
        parts.append(f"{what}, T = {lengths} (about {seconds} s)")
    return Sentence(key="not-run", text=f"Not run, for want of time: {'; '.join(parts)}.")


def _chain(settings: RaceSettings) -> Sentence:
    T = max(settings.lengths)
    text = (
        f"Longest chain of matmuls that wait for each other at T = {T:,}: {depth(LSTM, T):,} in an LSTM "
        f"layer, {depth(BLOCK, T)} in a causal block whatever T is. Path from the first token to the last "
        f"output: {path(LSTM, T):,} steps against {path(BLOCK, T)}. A short chain saves time only where "
        f"hardware does several things at once."
    )
    return Sentence(key="chain", text=text, exact=True)


def _work(settings: RaceSettings, tables: Tables) -> Sentence:
    found = {(row["length"], row["runner"]): row for row in tables["exact"]}
    said = ", ".join(
        f"{found[T, BLOCK.name]['flops'] / found[T, LSTM.name]['flops']:.2f} times at T = {T:,}"
        for T in sorted(set(settings.lengths))
    )
    text = (
        f"Work is not what attention saves: at equal width {settings.d_model} a causal block's matmuls take "
        f"more FLOPs than an LSTM layer's, {said}, since scores grow with T squared."
    )
    return Sentence(key="work", text=text, exact=True)


def figures(settings: RaceSettings, tables: Tables) -> list[Figure]:
    first = setups(tables)[:1]
    if not first:
        return []
    fair = {mode: pair(tables, first[0], mode, BLOCK, LSTM) for mode in MODES}
    drawn = [race_figures.times(tables, first[0], fair)]
    rows = [row for row in tables["ratios"] if (row["a"], row["b"]) == (BLOCK.name, LSTM.name)]
    return [*drawn, race_figures.referee(rows, len(setups(tables)))] if rows else drawn


def lines(settings: RaceSettings, tables: Tables) -> list[str]:
    out = []
    for setup in setups(tables):
        for mode in MODES:
            own = [row for row in tables["times"] if (row["setup"], row["mode"]) == (setup, mode)]
            if own:
                out += ["", f"{mode}, {setup}, {own[0]['clock']} in ms: median (smallest to largest)"]
                out += _grid(own, sorted(set(settings.lengths)))
    out += ["", "exact               weights  chain  path  forward FLOPs   (at the longest T)"]
    for row in tables["exact"]:
        if row["length"] == max(settings.lengths):
            out.append(
                f"{row['runner']:<18} {row['weights']:>8,} {row['depth']:>6,} {row['path']:>5,} "
                f"{count(row['flops']):>14}"
            )
    return out[1:]


def _grid(rows: Sequence[Row], lengths: Sequence[int]) -> list[str]:
    cells = {(row["runner"], row["length"]): row for row in rows}
    out = [f"{'':<16}" + "".join(f"{f'T = {T:,}':>24}" for T in lengths)]
    for one in RUNNERS:
        texts = [_cell(cells.get((one.name, T))) for T in lengths]
        out.append(f"{one.name:<16}" + "".join(f"{text:>24}" for text in texts))
    return out


def _cell(row: Row | None) -> str:
    if row is None:
        return "not run"
    return f"{power(row['value'])} ({interval((row['low'], row['high']), power)})"


def html(settings: RaceSettings, tables: Tables) -> Markup:
    """The referee's sheet: what is exact."""
    heads = ("T", "Runner", "What it is", "Weights", "Chain of matmuls", "Path", "Forward FLOPs")
    rows = [
        (
            f"{row['length']:,}",
            row["runner"],
            row["what"],
            f"{row['weights']:,}",
            f"{row['depth']:,}",
            f"{row['path']:,}",
            count(row["flops"]),
        )
        for row in tables["exact"]
        if row["length"] == max(settings.lengths)
    ]
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(text) for text in heads)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(text) for text in row))
        for row in rows
    )
    caption = escape(f"EXACT, width {settings.d_model}, batch {settings.batch}")
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        caption, head, body
    )
