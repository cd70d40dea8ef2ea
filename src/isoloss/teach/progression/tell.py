"""Tell the training demo: sentences, samples and curves from its tables. No torch.

The user's own words, prompt included, stay out of the sentences, whose claims are checked.
"""

from statistics import median

from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.teach.progression import draw
from isoloss.teach.progression.curves import (
    HELD_OUT,
    NEAR,
    SIDES,
    TRAINING,
    Curves,
    best_difference,
    copied,
    curves,
    finished,
    kept,
    level,
)
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.teach.shares import Share, gap
from isoloss.text import percent, plural

BAR = 30


def basis(settings: TrainingSettings, tables: Tables) -> Basis:
    return Basis(
        n=tables["corpus"][0]["held_out"],
        units="held-out sentences",
        seeds=settings.seeds,
        interval="t at 95% over seeds, Wilson at 95% for shares",
    )


def sentences(settings: TrainingSettings, tables: Tables) -> list[Sentence]:
    corpus = tables["corpus"][0]
    floor = Sentence(key="floor", text=floor_sentence(corpus), exact=True)
    if not finished(tables):
        return [floor]
    found = {side: own for side in SIDES if (own := curves(tables, side))}
    told = [
        Sentence(key=f"memorising-{side.lower()}", text=memorising(side, own, tables), exact=False)
        for side, own in found.items()
    ]
    told += [floor, Sentence(key="best", text=best_sentence(found, corpus), exact=False)]
    told.append(Sentence(key="copied", text=copied_sentence(tables, corpus), exact=False))
    return told


def floor_sentence(corpus: Row) -> str:
    return (
        f"Given all words before it, the next word of the {corpus['training']} training sentences leaves "
        f"{corpus['floor']:.3f} nats open: no model's training loss is lower. Guessing evenly among "
        f"{corpus['vocabulary']} tokens costs {corpus['uniform']:.3f}."
    )


def memorising(side: str, own: Curves, tables: Tables) -> str:
    floor = tables["corpus"][0]["floor"]
    rate = next(row["rate"] for row in tables["rates"] if row["chosen"] and row["side"] == side)
    by_heart = own.turns_up and len(own.reached(floor)) == len(own.seeds)
    seen = ": memorising made visible" if by_heart else ""
    return f"{side}, rate {rate:g}: {held_out_clause(own)}; {fit_clause(own, floor)}{seen}."


def fit_clause(own: Curves, floor: float) -> str:
    last, n = own.updates[-1], len(own.seeds)
    end, firsts = own.at(TRAINING, last), own.reached(floor)
    if not firsts:
        return (
            f"the training loss is not within {NEAR} nats of the floor within {last} updates "
            f"(it ends at {end.say()}, n = {plural(n, 'seed')})"
        )
    where = f"at update {median(firsts):.0f} (median)" if len(firsts) > 1 else f"at update {firsts[0]}"
    some = f"{len(firsts)} of {plural(n, 'seed')}"
    return f"the training loss comes within {NEAR} nats of the floor {where} in {some}"


def held_out_clause(own: Curves) -> str:
    turn, last = own.turn, own.updates[-1]
    here, end = own.at(HELD_OUT, turn).say(), own.at(HELD_OUT, last).say()
    if turn == last:
        return f"the held-out loss is lowest at the last of {last} updates, {end}"
    if own.turns_up is None:
        return f"the held-out loss goes from {here} at update {turn} to {end}; one seed gives no interval"
    if own.turns_up:
        return f"the held-out loss turns up after update {turn}, from {here} to {end}"
    return f"the held-out loss does not clearly rise within {last} updates: {here} at {turn}, then {end}"


def best_sentence(found: dict[str, Curves], corpus: Row) -> str:
    first, second = SIDES
    a, b = (level([loss for loss, _ in found[side].best.values()]) for side in SIDES)
    points = f"{first} {a.say()}, {second} {b.say()} nats a word"
    apart = best_difference(found[first], found[second])
    where = f"on the {corpus['held_out']} held-out sentences"
    if apart is None:
        return f"Stopped at its best {where}: {points}. One seed a side gives no interval and no verdict."
    low, high = apart.interval
    numbers = f"difference {apart.value:+.2f} ({low:+.2f} to {high:+.2f}, n = {plural(a.n, 'seed')} a side)"
    if not apart.decided:
        return f"Stopped at its best, no clear difference {where}: {points}; {numbers}."
    lower = first if apart.value < 0 else second
    return f"Stopped at its best, the {lower} is lower {where}: {points}; {numbers}."


def copied_sentence(tables: Tables, corpus: Row) -> str:
    if corpus["begin_with_prompt"] == 0:
        return "No training sentence begins with the prompt, so no sample from it copies one as a whole."
    shares = {side: copied(tables, side) for side in SIDES}
    last = max(shares[SIDES[0]])
    before = max(update for update in shares[SIDES[0]] if update <= 3 * last // 8)
    parts = [f"{side} {interval(shares[side][last])}" for side in SIDES]
    earlier = " and ".join(percent(shares[side][before].value, 1) for side in SIDES)
    n = f"n = {shares[SIDES[0]][last].n:,}"
    return (
        f"After {last} updates this share of {n} samples a side is a training sentence word for word: "
        f"{', '.join(parts)}; {copying_verdict(tables, last)}. After {before} updates it was {earlier}."
    )


def copying_verdict(tables: Tables, update: int) -> str:
    rows = [row for row in kept(tables, "copies") if row["update"] == update]
    by_side = [[Share(row["hits"], row["n"]) for row in rows if row["side"] == side] for side in SIDES]
    apart = gap(*by_side)
    if apart is None:
        return "one seed gives no verdict between them"
    if not apart.decided:
        return f"no clear difference over {plural(apart.n, 'seed')}"
    more = SIDES[0] if apart.value > 0 else SIDES[1]
    return f"the {more} copies more, clearly over {plural(apart.n, 'seed')}"


def interval(share: Share) -> str:
    low, high = share.interval
    return f"{percent(share.value, 1)} ({percent(low, 1)} to {percent(high, 1)})"


def figures(settings: TrainingSettings, tables: Tables) -> list[Figure]:
    return draw.figures(tables)


def lines(settings: TrainingSettings, tables: Tables) -> list[str]:
    """Losses as bars at the updates where samples were written, the samples under them."""
    corpus = tables["corpus"][0]
    told = [
        f"floor {corpus['floor']:.3f}, uniform {corpus['uniform']:.3f} nats a word; "
        f"prompt: {settings.prompt!r}; seed {settings.first_seed} is shown"
    ]
    for side in SIDES:
        own, shares = curves(tables, side), copied(tables, side)
        if own is None:
            continue
        told += ["", f"{side}  (mean of {plural(len(own.seeds), 'seed')})"]
        for update in [update for update in own.updates if update in shares]:
            told += _moment(own, shares[update], update, corpus["uniform"])
            told += [
                f"    {row['decoding']}: {_shown(row)}" for row in _samples(settings, tables, side, update)
            ]
    return told


def _moment(own: Curves, share: Share, update: int, most: float) -> list[str]:
    told = [f"  update {update}: copied {interval(share)}, n = {share.n:,} samples"]
    for which in (TRAINING, HELD_OUT):
        loss = own.at(which, update)
        bar = "#" * min(BAR + 10, round(BAR * loss.value / most))
        told.append(f"    {which:9}{bar} {loss.say()}")
    return told


def _samples(settings: TrainingSettings, tables: Tables, side: str, update: int) -> list[Row]:
    wanted = (side, settings.first_seed, update)
    rows = kept(tables, "samples")
    return [row for row in rows if (row["side"], row["seed"], row["update"]) == wanted]


def _shown(row: Row) -> str:
    return f"{row['text']}  [{_novelty(row)}]"


def _novelty(row: Row) -> str:
    if row["copied"]:
        return "a training sentence word for word"
    return f"longest run copied: {row['longest']} of {row['words']} words"


def html(settings: TrainingSettings, tables: Tables) -> Markup:
    """The first seed's samples: a table a way of writing, a row an update, a column a side; one is shown."""
    ways = list(dict.fromkeys(str(sample["decoding"]) for sample in kept(tables, "samples")))
    if not ways:
        return Markup("")
    folded = Markup("").join(
        Markup('<details class="more {}"><summary>The same, {}</summary>{}</details>').format(
            f"way-{number}", way, _written(settings, tables, way)
        )
        for number, way in enumerate(ways[1:], 1)
    )
    return _written(settings, tables, ways[0]) + folded


def _written(settings: TrainingSettings, tables: Tables, way: str) -> Markup:
    row = Markup("<tr><th scope='row'>{}</th>{}</tr>")
    body = [
        row.format(update, Markup("").join(_cell(settings, tables, side, update, way) for side in SIDES))
        for update in sorted({sample["update"] for sample in kept(tables, "samples")})
    ]
    caption = f"What both write from “{settings.prompt}”, {way}, seed {settings.first_seed}"
    head = Markup("").join(Markup("<th scope='col'>{}</th>").format(name) for name in ("Update", *SIDES))
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        caption, head, Markup("").join(body)
    )


def _cell(settings: TrainingSettings, tables: Tables, side: str, update: int, way: str) -> Markup:
    """Empty where a side has written nothing yet."""
    cell = Markup("<q>{}</q> <span class='quiet'>{}</span>")
    found = [one for one in _samples(settings, tables, side, update) if one["decoding"] == way]
    said = Markup("<br>").join(cell.format(str(one["text"]), _novelty(one)) for one in found)
    return Markup("<td>{}</td>").format(said)
