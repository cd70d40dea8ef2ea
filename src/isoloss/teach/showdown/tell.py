"""What the tasting says: the texts without names first, everything else for after the vote."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import polars as pl
from markupsafe import Markup

from isoloss import table
from isoloss.figures.figure import Figure
from isoloss.figures.style import wrap
from isoloss.report.templates import fill
from isoloss.stats import Interval, difference, mean, pooled_noise
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.teach.showdown import draw
from isoloss.teach.showdown.settings import EARLY, MODEL_SEEDS, ShowdownSettings
from isoloss.teach.versus import Versus, family_of
from isoloss.text import interval, percent, signed

HERO, BADGES = True, {"loss-by-position": "RECORDED"}
"""The texts are what a slide shows; the losses were measured when the models were trained."""
NAMES = {"transformer": "Transformer", "lstm": "LSTM"}
SIDES = {**NAMES, "held-out text": "held-out text"}
MEASURES = {
    "copied_4": "4-word runs also in training",
    "copied_8": "8-word runs also in training",
    "longest": "longest such run, words",
    "distinct_1": "distinct words",
    "distinct_2": "distinct word pairs",
}


def basis(settings: ShowdownSettings, tables: Tables) -> Basis:
    return Basis(
        n=MODEL_SEEDS * settings.samples,
        units="texts a side",
        seeds=MODEL_SEEDS,
        interval="95% t intervals: losses over seeds, counts over texts",
    )


def sentences(settings: ShowdownSettings, tables: Tables) -> list[Sentence]:
    """All of them name the families, so all are for after the vote."""
    return [
        Sentence(
            key="reveal-identities",
            text=identities(settings, tables),
            short=f"A was the {NAMES[tables['order'][0]['family']]}.",
            exact=True,
        ),
        Sentence(
            key="reveal-loss",
            text=loss(tables),
            short=loss_short(tables),
            ahead=family_of(loss_versus(tables).winner),
            recorded=True,
        ),
        Sentence(key="reveal-rates", text=tuning(tables), recorded=True),
        Sentence(
            key="reveal-positions",
            text=context(tables),
            short=context_short(tables),
            ahead=family_of(context_versus(tables).winner),
            recorded=True,
        ),
        Sentence(key="reveal-copied", text=copies(tables), short=copies_short(tables)),
        Sentence(key="reveal-distinct", text=variety(tables)),
    ]


def identities(settings: ShowdownSettings, tables: Tables) -> str:
    who = " and ".join(f"{row['label']} by the {NAMES[row['family']]}" for row in tables["order"])
    return (
        f"{who}: both of model seed {settings.model_seed}, with the same dice (seed {settings.seed}), "
        f"temperature {settings.temperature:g} and top-k {settings.top_k}."
    )


def loss_short(tables: Tables) -> str:
    versus = loss_versus(tables)
    return versus.short("The {winner} predicts unseen text better.", "Both predict unseen text alike.")


def context_short(tables: Tables) -> str:
    versus = context_versus(tables)
    return versus.short(
        "With more text before it the {winner} improves more.", "Both gain alike from context."
    )


def loss_versus(tables: Tables) -> Versus:
    return versus_of(by_side(tables["held_out"], "family", "loss"), "less")


def context_versus(tables: Tables) -> Versus:
    return versus_of(by_side(with_gain(tables), "family", "gain"), "more")


def copies_short(tables: Tables) -> str:
    groups = by_side(tables["samples"], "side", "copied_4")
    if min(map(len, groups.values())) < 2:
        return ""
    return versus_of(groups, "more").short("The {winner} copies more.", "Neither clearly copies more.")


def versus_of(groups: Mapping[str, Sequence[float]], better: Literal["more", "less"]) -> Versus:
    return Versus(NAMES["transformer"], NAMES["lstm"], gap_of(groups), better)


def gap_of(groups: Mapping[str, Sequence[float]]) -> Interval:
    """Transformer minus LSTM, unpaired, with the noise pooled over both."""
    return difference(groups["transformer"], groups["lstm"], pooled_noise(groups.values()))


def with_gain(tables: Tables) -> list[Row]:
    return [{**row, "gain": row["early"] - row["late"]} for row in tables["held_out"]]


def loss(tables: Tables) -> str:
    """Held-out loss of the trained models, over seeds."""
    losses, about = by_side(tables["held_out"], "family", "loss"), tables["recorded"][0]
    verdict = means_verdict(losses, "predicts held-out text better", "less")
    return f"Models trained on {about['made']}: held-out loss in nats per token, mean of {verdict}."


def tuning(tables: Tables) -> str:
    """Is the recipe's rate the best of those tried? A side tuned worse than the other proves nothing."""
    parts = []
    for family, name in NAMES.items():
        rows = [row for row in tables["rates"] if row["family"] == family]
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
    verdict = means_verdict(by_side(with_gain(tables), "family", "gain"), "gains more from context", "more")
    return (
        f"From tokens 1–{EARLY} of a window to tokens {half + 1}–{2 * half} the held-out "
        f"loss falls by, in nats, mean of {verdict}."
    )


def means_verdict(groups: Mapping[str, Sequence[float]], wins: str, better: Literal["more", "less"]) -> str:
    """Means over seeds, their difference, and who is ahead."""
    means = ", ".join(f"{NAMES[side]} {mean(values).value:.3f}" for side, values in groups.items())
    seeds = min(map(len, groups.values()))
    return f"{seeds} seeds each: {means}; {apart(groups, wins, signed, better=better)}"


def copies(tables: Tables) -> str:
    """Shares of 4- and 8-word runs that the training text holds, beside people's own text."""
    four, eight = means_of(tables, "copied_4"), means_of(tables, "copied_8")
    verdict = texts_verdict(tables, "copied_4", "repeats more of the training text")
    if not four or not verdict:
        return TOO_SHORT
    words = f"4-word runs that the training text holds, {mean_shares(four)}; {verdict}."
    if eight:
        words += f" 8-word runs, {mean_shares(eight)}."
    longest = by_side(tables["samples"], "side", "longest", SIDES)
    most = ", ".join(f"{SIDES[side]} {max(longest[side])}" for side in four)
    return f"{words} Longest such run in any text, in words: {most}."


TOO_SHORT = "The texts are too short to have runs of 4 words; let them write more tokens."


def variety(tables: Tables) -> str:
    """Shares of different words and word pairs."""
    words, pairs = means_of(tables, "distinct_1"), means_of(tables, "distinct_2")
    verdict = texts_verdict(tables, "distinct_1", "varies its words more")
    if not words or not pairs or not verdict:
        return TOO_SHORT
    return (
        f"Different words among all words of a text, {mean_shares(words)}; word pairs: {shares(pairs)}. "
        f"Words, {verdict}."
    )


def texts_verdict(tables: Tables, measure: str, wins: str) -> str:
    """The difference of mean shares in percentage points, and who is ahead; empty if texts are too short."""
    groups = by_side(tables["samples"], "side", measure)
    return apart(groups, wins, points, " points") if min(map(len, groups.values())) > 1 else ""


def apart(
    groups: Mapping[str, Sequence[float]],
    wins: str,
    write: Callable[[float], str],
    unit: str = "",
    better: Literal["more", "less"] = "more",
) -> str:
    """The difference of means, unpaired, with the noise pooled over both; who is ahead if it leaves out 0."""
    gap = gap_of(groups)
    winner = Versus(NAMES["transformer"], NAMES["lstm"], gap, better).winner
    verdict = f"the {winner} {wins}" if winner else "no clear difference"
    numbers = f"{write(gap.value)}{unit} (95% t interval {interval(gap.interval, write)})"
    return f"Transformer minus LSTM {numbers}: {verdict}"


def by_side(
    rows: Sequence[Row], column: str, measure: str, sides: Iterable[str] = NAMES
) -> dict[str, list[float]]:
    """What was measured of each side that ``column`` names."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return {side: frame.filter(pl.col(column) == side)[measure].drop_nulls().to_list() for side in sides}


def points(share: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{100 * share:+.1f}".replace("-", "−")


def means_of(tables: Tables, measure: str) -> dict[str, Row]:
    """Rows of a measure by side; none unless both families have one."""
    rows = {str(row["side"]): row for row in tables["novelty"] if row["measure"] == measure}
    return rows if NAMES.keys() <= rows.keys() else {}


def mean_shares(rows: Mapping[str, Row]) -> str:
    return f"mean of {min(row['n'] for row in rows.values())} texts a side: {shares(rows)}"


def shares(rows: Mapping[str, Row]) -> str:
    return ", ".join(f"{SIDES[side]} {percent(row['value'], 1)}" for side, row in rows.items())


def figures(settings: ShowdownSettings, tables: Tables) -> list[Figure]:
    if "positions" not in tables:
        return []
    pictures = [draw.by_position(tables, judgement=context(tables))]
    if means_of(tables, "copied_4"):
        pictures.append(draw.by_copies(tables, judgement=copies(tables)))
    return pictures


def lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    return [*blind_lines(settings, tables), *reveal_lines(settings, tables)]


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
    losses = by_side(tables["held_out"], "family", "loss")
    noise = pooled_noise(losses.values())
    means = (cell(mean(values, noise=noise).row()) for values in losses.values())
    rows.append(("held-out loss (recorded)", *means, ""))
    return [
        *("", " · ".join(f"{row['label']} = {NAMES[row['family']]}" for row in tables["order"]), ""),
        *table.lines(table.text_table("", ("mean over texts", *SIDES.values()), rows, numeric=True)),
        f"Trained on {about['tokens'] / 1e6:.2f} M tokens, {about['epochs']:.2f} of the "
        f"training text, {about['made']}, {about['machine']}; held-out text: as many passages by people.",
    ]


def cell(row: Row | None) -> str:
    return "–" if row is None else f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def html(settings: ShowdownSettings, tables: Tables) -> Markup:
    """Both texts as they grow; with the order drawn, the vote, and who was who to be hidden until then."""
    last = max((row["step"] for row in tables.get("steps", [])), default=0)
    texts = [
        {
            "label": text["label"],
            "prompt": visible(text["prompt"]).split("\n"),
            "lines": visible(text["text"]).split("\n"),
            "candidates": [{**row, "token": spell(row["token"])} for row in steps(tables, text, last)],
        }
        for text in tables.get("texts", [])
    ]
    identities = [(row["label"], NAMES[row["family"]]) for row in tables.get("order", [])]
    return fill("teach/showdown/tasting.html", texts=texts, vote="order" in tables, identities=identities)


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
