"""Tell the training demo: sentences, samples and curves from its tables. No torch.

The user's own words, prompt included, stay out of the sentences, whose claims are checked.
"""

from collections.abc import Mapping
from statistics import median

from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.stats import Interval, mean, share
from isoloss.teach.progression import draw
from isoloss.teach.progression.curves import (
    HELD_OUT,
    NEAR,
    SIDES,
    TRAINING,
    Curves,
    at_chosen_rate,
    complete,
    copy_shares,
    curves,
)
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.teach.shares import gap
from isoloss.teach.versus import Versus, family_of
from isoloss.text import percent, plural

BAR, HERO = 30, True


def basis(settings: TrainingSettings, tables: Tables) -> Basis:
    return Basis(
        n=tables["corpus"][0]["held_out"],
        units="held-out sentences",
        seeds=settings.seeds,
        interval="t at 95% over seeds, Wilson at 95% for shares",
    )


def sentences(settings: TrainingSettings, tables: Tables) -> list[Sentence]:
    corpus = tables["corpus"][0]
    short = "Even a flawless memory stays above this line."
    floor = Sentence(key="floor", text=floor_sentence(corpus), short=short, exact=True)
    if not complete(tables):
        return [floor]
    sides = curves(tables)
    return [
        *(
            Sentence(
                key=f"memorising-{side.lower()}",
                text=memorising(side, losses, tables),
                short=memorising_short(side, losses),
            )
            for side, losses in sides.items()
        ),
        floor,
        Sentence(
            key="best",
            text=best_sentence(sides, corpus),
            short=best_short(sides),
            ahead=family_of(draw.best_versus(sides).winner),
        ),
        Sentence(key="copied", text=copied_sentence(tables, corpus), short=copied_short(tables)),
    ]


def floor_sentence(corpus: Row) -> str:
    return (
        f"Given all words before it, the next word of the {corpus['training']} training sentences leaves "
        f"{corpus['floor']:.3f} nats open: no model's training loss is lower. Guessing evenly among "
        f"{corpus['vocabulary']} tokens costs {corpus['uniform']:.3f}."
    )


def memorising(side: str, losses: Curves, tables: Tables) -> str:
    floor = tables["corpus"][0]["floor"]
    rate = next(row["rate"] for row in tables["rates"] if row["chosen"] and row["side"] == side)
    by_heart = losses.turns_up and len(losses.reached(floor)) == len(losses.seeds)
    verdict = ": memorising made visible" if by_heart else ""
    return f"{side}, rate {rate:g}: {held_out_clause(losses)}; {fit_clause(losses, floor)}{verdict}."


def memorising_short(side: str, losses: Curves) -> str:
    if not losses.turns_up:
        return f"The {side} does not clearly get worse on new sentences."
    return f"After update {losses.turn} the {side} gets worse on new sentences."


def best_short(sides: Mapping[str, Curves]) -> str:
    return draw.best_versus(sides).short("Stopped in time, the {winner} is better on new sentences.")


def copied_short(tables: Tables) -> str:
    shares = copy_shares(tables, SIDES[0])
    if not shares or tables["corpus"][0]["begin_with_prompt"] == 0:
        return ""
    return f"At the end {percent(shares[max(shares)].value, 0)} of what the {SIDES[0]} writes is copied."


def fit_clause(losses: Curves, floor: float) -> str:
    last, n = losses.updates[-1], len(losses.seeds)
    end, firsts = losses.level_at(TRAINING, last), losses.reached(floor)
    if not firsts:
        return (
            f"the training loss is not within {NEAR} nats of the floor within {last} updates "
            f"(it ends at {level_words(end)}, n = {plural(n, 'seed')})"
        )
    where = f"at update {median(firsts):.0f} (median)" if len(firsts) > 1 else f"at update {firsts[0]}"
    seeds = f"{len(firsts)} of {plural(n, 'seed')}"
    return f"the training loss comes within {NEAR} nats of the floor {where} in {seeds}"


def held_out_clause(losses: Curves) -> str:
    turn, last = losses.turn, losses.updates[-1]
    least, end = (level_words(losses.level_at(HELD_OUT, update)) for update in (turn, last))
    if turn == last:
        return f"the held-out loss is lowest at the last of {last} updates, {end}"
    if losses.turns_up is None:
        return f"the held-out loss goes from {least} at update {turn} to {end}; one seed gives no interval"
    if losses.turns_up:
        return f"the held-out loss turns up after update {turn}, from {least} to {end}"
    return f"the held-out loss does not clearly rise within {last} updates: {least} at {turn}, then {end}"


def best_sentence(sides: Mapping[str, Curves], corpus: Row) -> str:
    levels = {side: level_words(mean(losses.best_losses)) for side, losses in sides.items()}
    points = ", ".join(f"{side} {words}" for side, words in levels.items()) + " nats a word"
    versus = draw.best_versus(sides)
    where = f"on the {corpus['held_out']} held-out sentences"
    if (apart := versus.difference) is None:
        return f"Stopped at its best {where}: {points}. One seed a side gives no interval and no verdict."
    n = f"n = {plural(apart.n, 'seed')} a side"
    numbers = f"difference {apart.value:+.2f} ({apart.low:+.2f} to {apart.high:+.2f}, {n})"
    verdict = f"the {versus.winner} is lower" if versus.winner else "no clear difference"
    return f"Stopped at its best, {verdict} {where}: {points}; {numbers}."


def copied_sentence(tables: Tables, corpus: Row) -> str:
    if corpus["begin_with_prompt"] == 0:
        return "No training sentence begins with the prompt, so no sample from it copies one as a whole."
    shares = {side: copy_shares(tables, side) for side in SIDES}
    first = shares[SIDES[0]]
    last = max(first)
    before = max(update for update in first if update <= 3 * last // 8)
    parts = [f"{side} {share_words(shares[side][last])}" for side in SIDES]
    earlier = " and ".join(percent(shares[side][before].value, 1) for side in SIDES)
    return (
        f"After {last} updates this share of n = {first[last].n:,} samples a side is a training sentence "
        f"word for word: {', '.join(parts)}; {copying_verdict(tables, last)}. After {before} updates it was "
        f"{earlier}."
    )


def copying_verdict(tables: Tables, update: int) -> str:
    rows = [row for row in at_chosen_rate(tables, "copies") if row["update"] == update]
    by_side = [[share(row["hits"], row["n"]) for row in rows if row["side"] == side] for side in SIDES]
    versus = Versus(*SIDES, gap(*by_side))
    if versus.difference is None:
        return "one seed gives no verdict between them"
    seeds = plural(versus.difference.n, "seed")
    if versus.winner is None:
        return f"no clear difference over {seeds}"
    return f"the {versus.winner} copies more, clearly over {seeds}"


def level_words(loss: Interval) -> str:
    return f"{loss.value:.2f}" + (f" ({loss.low:.2f} to {loss.high:.2f})" if loss.df else "")


def share_words(share: Interval) -> str:
    return f"{percent(share.value, 1)} ({percent(share.low, 1)} to {percent(share.high, 1)})"


def figures(settings: TrainingSettings, tables: Tables) -> list[Figure]:
    """What there is to draw so far."""
    runs, copies = at_chosen_rate(tables, "runs"), at_chosen_rate(tables, "copies")
    return [
        *([draw.losses(tables, runs, settings.updates)] if runs else []),
        *([draw.copying(tables, copies)] if copies else []),
    ]


def lines(settings: TrainingSettings, tables: Tables) -> list[str]:
    """Losses as bars at the updates where samples were written, the samples under them."""
    corpus = tables["corpus"][0]
    out = [
        f"floor {corpus['floor']:.3f}, uniform {corpus['uniform']:.3f} nats a word; "
        f"prompt: {settings.prompt!r}; seed {settings.first_seed} is shown"
    ]
    for side, losses in curves(tables).items():
        shares = copy_shares(tables, side)
        out += ["", f"{side}  (mean of {plural(len(losses.seeds), 'seed')})"]
        for update in [update for update in losses.updates if update in shares]:
            share = shares[update]
            out.append(f"  update {update}: copied {share_words(share)}, n = {share.n:,} samples")
            for which in (TRAINING, HELD_OUT):
                loss = losses.level_at(which, update)
                bar = "#" * min(BAR + 10, round(BAR * loss.value / corpus["uniform"]))
                out.append(f"    {which:9}{bar} {level_words(loss)}")
            out += [
                f"    {row['decoding']}: {row['text']}  [{_novelty(row)}]"
                for row in _samples(settings, tables)
                if (row["side"], row["update"]) == (side, update)
            ]
    return out


def _samples(settings: TrainingSettings, tables: Tables) -> list[Row]:
    """Those of the first seed."""
    rows = at_chosen_rate(tables, "samples")
    return [row for row in rows if row["seed"] == settings.first_seed]


def _novelty(row: Row) -> str:
    if row["copied"]:
        return "a training sentence word for word"
    return f"longest run copied: {row['longest']} of {row['words']} words"


def html(settings: TrainingSettings, tables: Tables) -> Markup:
    """The first seed's samples: a table a way of writing, a row an update, a column a side; one is shown."""
    samples = at_chosen_rate(tables, "samples")
    updates = sorted({row["update"] for row in samples})
    return fill(
        "teach/progression/samples.html",
        settings=settings,
        sides=SIDES,
        ways=list(dict.fromkeys(row["decoding"] for row in samples)),
        updates=updates,
        moments=[
            updates[n] for n in sorted({0, len(updates) // 3, 2 * len(updates) // 3, len(updates) - 1} - {-1})
        ],
        samples=_samples(settings, tables),
        novelty=_novelty,
    )
