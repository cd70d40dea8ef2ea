"""What the tasting says: the texts without names first, everything else for after the vote."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import floor
from typing import Any, Literal

import polars as pl
from markupsafe import Markup

from isoloss import table
from isoloss.figures.figure import Figure
from isoloss.figures.style import wrap
from isoloss.report.templates import fill
from isoloss.stats import difference, mean, pooled_noise
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Family, Row, Sentence, Tables, frame, sentence
from isoloss.teach.showdown import draw
from isoloss.teach.showdown.settings import EARLY, MODEL_SEEDS, ShowdownSettings
from isoloss.teach.versus import Versus, family_of
from isoloss.text import count as count_of
from isoloss.text import interval, listed, percent, signed

HERO, BADGES, say = True, {"loss-by-position": "RECORDED"}, partial(say_of, "showdown")
"""The texts are what a slide shows; the losses were measured when the models were trained."""
SMALL = "Other models:"
"""Whose losses are compared; the two that write are a pair of their own, of one seed."""
NAMES = {"transformer": "Transformer", "lstm": "LSTM"}
SIDES = {**NAMES, "held-out text": "held-out text"}
Better = Literal["more", "less"]
LOSS: tuple[str, str, str, Better] = ("held_out", "family", "loss", "less")
GAIN: tuple[str, str, str, Better] = ("held_out", "family", "gain", "more")
COPIED = ("samples", "side", "copied_4")
"""A table, the column that names the side, what is compared, and which is better."""
MEASURES = {
    "copied_4": "4-word runs also in training",
    "copied_8": "8-word runs also in training",
    "longest": "longest such run, words",
    "distinct_1": "distinct words",
    "distinct_2": "distinct word pairs",
}


def count(settings: ShowdownSettings, tables: Tables) -> int:
    return MODEL_SEEDS * settings.samples


def sentences(settings: ShowdownSettings, tables: Tables) -> list[Sentence]:
    """All of them name the families, so all are for after the vote."""
    losses, gains = (versus_of(tables, *what) for what in (LOSS, GAIN))
    lower = losses.short(f"{SMALL} the {{winner}} predicts unseen text better.", f"{SMALL} no clear lead.")
    more = gains.short(f"{SMALL} the {{winner}} gains more from context.", f"{SMALL} both gain alike.")
    return [
        sentence("reveal-identities", identities(settings, tables), exact=True),
        sentence("reveal-pair", pair(tables), pair_short(tables), recorded=True),
        sentence("reveal-loss", loss(tables), lower, *ahead_by(losses, "lower"), recorded=True),
        sentence("reveal-words", real_words(tables), real_words_short(tables)),
        sentence("reveal-rates", tuning(tables), recorded=True),
        sentence("reveal-positions", context(tables), more, *ahead_by(gains, "more"), recorded=True),
        sentence("reveal-copied", copies(tables), copies_short(tables)),
    ]


def ahead_by(versus: Versus, how: str) -> tuple[Family, str]:
    """Which family leads, and by how many nats."""
    gap = abs(versus.difference.value) if versus.difference else 0.0
    return family_of(versus.winner), f"{gap:.2f} nats {how}"


def identities(settings: ShowdownSettings, tables: Tables) -> str:
    who = " and ".join(f"{row['label']} by the {NAMES[row['family']]}" for row in tables["order"])
    return say("identities", who=who, **settings.model_dump())


def pair(tables: Tables) -> str:
    """Size, budget and recorded loss of the two that wrote, and the rates that they were tried at before."""
    rows = {name: frame(tables, "shown", family=name).to_dicts() for name in NAMES}
    first = {name: row for name, (row, *_) in rows.items()}
    tried = "; ".join(
        f"{NAMES[name]} " + ", ".join(f"{row['learning_rate']:g}: {row['loss']:.3f}" for row in others)
        for name, (_, *others) in rows.items()
    )
    return say(
        "pair",
        params=listed([f"{NAMES[name]} {count_of(row['params_total'])}" for name, row in first.items()]),
        tokens=count_of(first["lstm"]["tokens"]),
        losses=", ".join(f"{NAMES[name]} {row['loss']:.3f}" for name, row in first.items()),
        before=count_of(rows["lstm"][1]["tokens"]),
        tried=tried,
    )


def writers(tables: Tables) -> dict[str, float]:
    """Recorded held-out loss of the two that write, by family."""
    return {name: frame(tables, "shown", family=name)["loss"][0] for name in NAMES if tables.get("shown")}


def pair_short(tables: Tables) -> str:
    """Which of the two that wrote has the lower loss, and that one seed each says nothing about families."""
    (lower, least), (_, most) = sorted(writers(tables).items(), key=lambda one: one[1])
    return f"The writers: {NAMES[lower]}'s loss {most - least:.2f} lower; one seed, no verdict."


def both(rows: Iterable[Row]) -> dict[str, Row]:
    """By side; none unless both families wrote enough for one."""
    by_name = {str(row["side"]): row for row in rows}
    return by_name if NAMES.keys() <= by_name.keys() else {}


def real_words(tables: Tables) -> str:
    rows = both(tables["real"])
    return say("words", shares=mean_shares(rows)) if rows else TOO_SHORT


def real_words_short(tables: Tables) -> str:
    rows = both(tables["real"])
    if not rows:
        return ""
    least = min(rows[name]["value"] for name in NAMES)
    return f"At least {floor(100 * least)}% of their words are real words."


def copies_short(tables: Tables) -> str:
    if min(map(len, by_side(tables, *COPIED).values())) < 2:
        return ""
    return versus_of(tables, *COPIED).short("The {winner} copies more.", "Neither clearly copies more.")


def versus_of(tables: Tables, name: str, column: str, measure: str, better: Better = "more") -> Versus:
    """Transformer minus LSTM: losses paired by seed, which fixes the order of the text that both read.

    Texts are no pairs, with the noise pooled over both sides: a seed's dice fall on other words.
    """
    ours, theirs = by_side(tables, name, column, measure).values()
    a, b = NAMES.values()
    if name == "held_out":
        return Versus(a, b, mean([x - y for x, y in zip(ours, theirs, strict=True)]), better)
    return Versus(a, b, difference(ours, theirs, pooled_noise([ours, theirs])), better, of="texts")


def loss(tables: Tables) -> str:
    """Held-out loss of the trained models, over seeds."""
    verdict = means_verdict(tables, *LOSS, wins="predicts held-out text better")
    return say("loss", made=tables["recorded"][0]["made"], verdict=verdict)


def tuning(tables: Tables) -> str:
    """Is the recipe's rate the best of those tried? A side tuned worse than the other proves nothing."""
    parts = []
    for family, name in NAMES.items():
        rows = frame(tables, "rates", family=family).to_dicts()
        tried = ", ".join(f"{row['learning_rate']:g}: {row['loss']:.3f}" for row in rows)
        recipe = next(row for row in rows if row["recipe"])
        best = min(rows, key=lambda row: row["loss"])
        verdict = "the recipe's is the best of these"
        if not best["recipe"]:
            better = recipe["loss"] - best["loss"]
            verdict = f"{best['learning_rate']:g} is {better:.3f} better than the recipe's"
        parts.append(f"{name} {tried} ({verdict})")
    return f"Held-out loss by learning rate, seed 0 alone: {'; '.join(parts)}."


def context(tables: Tables) -> str:
    """How much each side gains from context: late minus early positions."""
    half = tables["recorded"][0]["context"] // 2
    verdict = means_verdict(tables, *GAIN, wins="gains more from context")
    return say("context", early=EARLY, late=half + 1, last=2 * half, verdict=verdict)


def means_verdict(tables: Tables, *what: Any, wins: str) -> str:
    """Means over seeds, their difference, and who is ahead."""
    groups = by_side(tables, *what[:3])
    means = ", ".join(f"{NAMES[side]} {mean(values).value:.3f}" for side, values in groups.items())
    seeds = min(map(len, groups.values()))
    return f"{seeds} seeds each, paired: {means}; {apart(versus_of(tables, *what), wins, signed)}"


def copies(tables: Tables) -> str:
    """Shares of 4- and 8-word runs that the training text holds, beside people's own text."""
    four, eight = means_of(tables, "copied_4"), means_of(tables, "copied_8")
    if not four or min(map(len, by_side(tables, *COPIED).values())) < 2:
        return TOO_SHORT
    verdict = apart(versus_of(tables, *COPIED), "repeats more of the training text", points, " points")
    longest = by_side(tables, "samples", "side", "longest", SIDES)
    most = ", ".join(f"{SIDES[side]} {max(longest[side])}" for side in four)
    long_runs = f" 8-word runs, {mean_shares(eight)}." if eight else ""
    return say("copies", four=mean_shares(four), verdict=verdict, eight=long_runs, longest=most)


TOO_SHORT = "The texts are too short to have runs of 4 words; let them write more tokens."


def apart(versus: Versus, wins: str, write: Callable[[float], str], unit: str = "") -> str:
    """The difference of means, and who is ahead if its interval leaves out 0."""
    gap = versus.difference
    if gap is None:
        raise ValueError("two sides of several values have a difference")
    if versus.few:
        return f"Transformer minus LSTM {write(gap.value)}{unit}; {versus.few} them apart"
    verdict = f"the {versus.winner} {wins}" if versus.winner else "no clear difference"
    numbers = f"{write(gap.value)}{unit} (95% t interval {interval(gap.interval, write)})"
    return f"Transformer minus LSTM {numbers}: {verdict}"


def by_side(
    tables: Tables, name: str, column: str, measure: str, sides: Iterable[str] = NAMES
) -> dict[str, list[float]]:
    """What was measured of each side that ``column`` names. A ``gain`` is the early loss minus the late."""
    rows = frame(tables, name)
    if measure == "gain":
        rows = rows.with_columns(gain=pl.col("early") - pl.col("late"))
    return {side: rows.filter(pl.col(column) == side)[measure].drop_nulls().to_list() for side in sides}


def points(share: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{100 * share:+.1f}".replace("-", "−")


def means_of(tables: Tables, measure: str) -> dict[str, Row]:
    return both(row for row in tables["novelty"] if row["measure"] == measure)


def mean_shares(rows: Mapping[str, Row]) -> str:
    shares = ", ".join(f"{SIDES[side]} {percent(row['value'], 1)}" for side, row in rows.items())
    return f"mean of {min(row['n'] for row in rows.values())} texts a side: {shares}"


def figures(settings: ShowdownSettings, tables: Tables) -> list[Figure]:
    return [draw.by_position(tables, judgement=context(tables))] if "positions" in tables else []


def blind_lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    """Both texts, and what each was about to say first: nothing that names a family."""
    out = [f"Prompt: {visible(tables['texts'][0]['prompt'])}"]
    for text in tables["texts"]:
        first = ", ".join(f"{spell(row['token'])} {row['chance']:.2f}" for row in steps(tables, text, 1))
        out += ["", f"{text['label']}:"]
        for line in visible(text["text"]).split("\n"):
            out += [f"    {part}".rstrip() for part in wrap(line, 74)]
        out.append(f"    (first token, by chance: {first})")
    return out


def reveal_lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    """Who was who, and the numbers behind the sentences."""
    about = tables["recorded"][0]
    rows = [
        (words, *(cell(means_of(tables, key).get(side)) for side in SIDES)) for key, words in MEASURES.items()
    ]
    losses = by_side(tables, *LOSS[:3])
    noise = pooled_noise(losses.values())
    means = (cell(mean(values, noise=noise).row()) for values in losses.values())
    rows.append(("held-out loss (recorded)", *means, ""))
    return [
        *("", " · ".join(f"{row['label']} = {NAMES[row['family']]}" for row in tables["order"]), ""),
        *table.lines(table.text_table("", ("mean over texts", *SIDES.values()), rows, numeric=True)),
        f"Counted: trained on {about['tokens'] / 1e6:.2f} M tokens, "
        f"{about['epochs']:.2f} of the training text, {about['made']}, {about['machine']}; "
        "held-out text: as many passages by people.",
    ]


def cell(row: Row | None) -> str:
    return "–" if row is None else f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def html(settings: ShowdownSettings, tables: Tables) -> Markup:
    """Both texts as they grow; with the order drawn, the vote, and who was who to be hidden until then."""
    last = max((row["step"] for row in tables.get("steps", [])), default=0)
    families, losses = {row["label"]: row["family"] for row in tables.get("order", [])}, writers(tables)
    texts = [
        {
            "label": text["label"],
            "who": NAMES.get(families.get(text["label"], "")),
            "loss": losses.get(families.get(text["label"], "")),
            "prompt": visible(text["prompt"]).split("\n"),
            "lines": [line for line in visible(text["text"]).split("\n") if line.strip()],
            "candidates": [{**row, "token": spell(row["token"])} for row in steps(tables, text, last)],
        }
        for text in tables.get("texts", [])
    ]
    return fill("teach/showdown/tasting.html", texts=texts, vote="order" in tables)


def steps(tables: Tables, text: Row, step: int) -> list[Row]:
    """What a text was about to say at a token."""
    return [row for row in tables["steps"] if (row["label"], row["step"]) == (text["label"], step)]


def visible(text: str) -> str:
    """Control and format characters, which a terminal or a page might obey, as U+FFFD; line breaks stay."""
    odd = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return "".join("\ufffd" if c != "\n" and unicodedata.category(c) in odd else c for c in text)


def spell(token: str) -> str:
    """A token with its spaces and line breaks to be seen."""
    return visible(token).replace(" ", "␣").replace("\n", "⏎")
