"""Tell the training demo: sentences, samples and curves from its tables. No torch.

The user's own words, prompt included, stay out of the sentences, whose claims are checked.
"""

from functools import partial
from statistics import median

import polars as pl
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
    by_rate,
    complete,
    copy_shares,
    curves,
)
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Row, Sentence, Tables, frame, sentence
from isoloss.teach.shares import gap
from isoloss.teach.versus import Claim, Versus, family_of
from isoloss.text import capital, percent, plural

HERO, say = True, partial(say_of, "progression")


def count(settings: TrainingSettings, tables: Tables) -> int:
    n: int = tables["corpus"][0]["held_out"]
    return n


def sentences(settings: TrainingSettings, tables: Tables) -> list[Sentence]:
    corpus = tables["corpus"][0]
    floor = sentence(
        "floor", say("floor", **corpus), "Even a flawless memory stays above this line.", exact=True
    )
    if not complete(tables):
        return [sentence("stopped", *stopped(settings, tables)), floor] if tables["runs"] else [floor]
    sides = curves(tables)
    each = (
        sentence(f"memorising-{side.lower()}", memorising(side, losses, tables))
        for side, losses in sides.items()
    )
    return [
        sentence("turn", *turns(tables)),
        sentence("best", *best(tables)),
        *each,
        floor,
        sentence("copied", copied_sentence(tables, corpus), copied_short(tables)),
    ]


def stopped(settings: TrainingSettings, tables: Tables) -> Claim:
    """Of the side in training when the class said stop: was its best on new sentences behind it?"""
    newest = {key: tables["runs"][-1][key] for key in ("side", "rate")}
    own, side = frame(tables, "runs", which=HELD_OUT, **newest), newest["side"]
    means = own.group_by("update").agg(pl.col("value").mean())
    losses: dict[int, float] = dict(means.sort("update").iter_rows())
    update, turn = max(losses), min(losses, key=lambda at: losses[at])
    words = {"side": side, "update": update, "turn": turn, "updates": settings.updates}
    seeds = plural(len(own.filter(update=update)), "run")
    text = say("stopped", now=losses[update], least=losses[turn], seeds=seeds, **words)
    if len(losses) == 1:
        return Claim(text, "Stopped before anything was learned.")
    if losses[update] - losses[turn] > NEAR:
        return Claim(text, f"Stopped late: on new sentences the {side} was best after {turn} updates.")
    if turn == update:
        return Claim(text, f"Stopped early: the {side} was still getting better on new sentences.")
    return Claim(text, f"Stopped in time: the {side} is about at its best on new sentences.")


def turns(tables: Tables) -> Claim:
    """When each side is best on new sentences: both at one rate, then at each of the others."""
    sides, shown = curves(tables), rate_of(tables)
    at = {rate: [both[side].turn for side in SIDES] for rate, both in by_rate(tables).items()}
    others = "".join(say("turn-other", rate=rate, turns=each) for rate, each in at.items() if rate != shown)
    seeds = plural(min(len(losses.seeds) for losses in sides.values()), "seed")
    text = say("turn", rate=shown, turns=[sides[side].turn for side in SIDES], n=seeds, others=others)
    worse = {side: losses.turn for side, losses in sides.items() if losses.turns_up}
    if any(losses.turns_up is None for losses in sides.values()):
        return Claim(text, "One seed is too few to tell.")
    if len(worse) == len(SIDES):
        return Claim(text, f"After update {max(worse.values())} both get worse on new sentences.")
    if worse:
        (side, turn), *_ = worse.items()
        return Claim(text, f"Only the {side} gets worse on new sentences, after update {turn}.")
    return Claim(text, "Neither clearly gets worse on new sentences.")


def rate_of(tables: Tables) -> float:
    """The learning rate that is shown."""
    rate: float = next(row["rate"] for row in tables["rates"] if row["chosen"])
    return rate


def memorising(side: str, losses: Curves, tables: Tables) -> str:
    floor, rate = tables["corpus"][0]["floor"], rate_of(tables)
    by_heart = losses.turns_up and len(losses.reached(floor)) == len(losses.seeds)
    verdict = ": memorising made visible" if by_heart else ""
    return f"{side}, rate {rate:g}: {held_out_clause(losses)}; {fit_clause(losses, floor)}{verdict}."


def copied_short(tables: Tables) -> str:
    shares = copy_shares(tables, SIDES[0])
    if not shares or tables["corpus"][0]["begin_with_prompt"] == 0:
        return ""
    return f"At the end {percent(shares[max(shares)].value, 0)} of what the {SIDES[0]} writes is copied."


def fit_clause(losses: Curves, floor: float) -> str:
    last, n, firsts = losses.updates[-1], len(losses.seeds), losses.reached(floor)
    if not firsts:
        end = level_words(losses.level_at(TRAINING, last))
        return say("above-floor", near=NEAR, last=last, end=end, n=plural(n, "seed"))
    where = f"{median(firsts):.0f} (median)" if len(firsts) > 1 else f"{firsts[0]}"
    return say("at-floor", near=NEAR, where=where, some=len(firsts), n=plural(n, "seed"))


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


def best(tables: Tables) -> Claim:
    """Who is lower, stopped at its best: at the rate that is shown, unless another turns it round."""
    sides, corpus, shown = curves(tables), tables["corpus"][0], rate_of(tables)
    levels = {side: level_words(mean(losses.best_losses)) for side, losses in sides.items()}
    points = ", ".join(f"{side} {words}" for side, words in levels.items()) + " nats a word"
    versus = draw.best_versus(sides)
    short = versus.short("Stopped in time, the {winner} is better on new sentences.")
    where = f"on the {corpus['held_out']} held-out sentences"
    if versus.few:
        ends = ((side, sorted(losses.best_losses)) for side, losses in sides.items())
        spans = ", ".join(f"{side} {values[0]:.2f} to {values[-1]:.2f}" for side, values in ends)
        few = f"{capital(versus.few)} who is lower {where}, stopped at its best"
        return Claim(f"{few}: {spans} nats a word.", short)
    if (apart := versus.difference) is None:
        text = f"Stopped at its best {where}: {points}. One seed a side gives no interval and no verdict."
        return Claim(text, short)
    verdict = f"the {versus.winner} is lower" if versus.winner else "no clear difference"
    others = {rate: draw.best_versus(both) for rate, both in by_rate(tables).items() if rate != shown}
    told = "".join(
        say("best-other", rate=rate, apart=other.difference)
        for rate, other in others.items()
        if other.difference
    )
    words = {"verdict": verdict, "where": where, "points": points, "apart": apart, "rate": shown}
    text = say("best", n=plural(apart.n, "seed"), others=told, **words)
    if versus.loser and versus.loser in [other.winner for other in others.values()]:
        return Claim(text, "Who is better, stopped in time, depends on the learning rate.")
    return Claim(text, short, family_of(versus.winner), f"{abs(apart.value):.2f} nats lower")


def copied_sentence(tables: Tables, corpus: Row) -> str:
    if corpus["begin_with_prompt"] == 0:
        return "No training sentence begins with the prompt, so no sample from it copies one as a whole."
    shares = {side: copy_shares(tables, side) for side in SIDES}
    last = max(shares[SIDES[0]])
    before = max(update for update in shares[SIDES[0]] if update <= 3 * last // 8)
    return say(
        "copied",
        last=last,
        n=shares[SIDES[0]][last].n,
        parts=", ".join(f"{side} {share_words(shares[side][last])}" for side in SIDES),
        verdict=copying_verdict(tables, last),
        before=before,
        earlier=" and ".join(percent(shares[side][before].value, 1) for side in SIDES),
    )


def copying_verdict(tables: Tables, update: int) -> str:
    rows = [row for row in at_chosen_rate(tables, "copies") if row["update"] == update]
    by_side = [[share(row["hits"], row["n"]) for row in rows if row["side"] == side] for side in SIDES]
    versus = Versus(*SIDES, gap(*by_side))
    if versus.difference is None:
        return "one seed gives no verdict between them"
    if versus.few:
        return f"{versus.few} which copies more"
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
        *([draw.copying(tables, copies, settings.updates)] if copies else []),
    ]


def lines(settings: TrainingSettings, tables: Tables) -> list[str]:
    """The first seed's samples, at the updates where they were written."""
    corpus = tables["corpus"][0]
    written = [
        f"{row['side']:12} {row['update']:>4} {row['decoding']}: {row['text']}  [{_novelty(row)}]"
        for row in _samples(settings, tables)
    ]
    return [say("levels", prompt=settings.prompt, seed=settings.first_seed, **corpus), "", *written]


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
