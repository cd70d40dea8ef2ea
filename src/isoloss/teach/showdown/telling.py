"""What the tasting says: the texts without names first, everything else for after the vote."""

import unicodedata
from collections.abc import Sequence
from importlib import resources
from typing import Any

from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.figures.style import wrap
from isoloss.stats import Interval
from isoloss.teach.deck.templates import filled_text
from isoloss.teach.result import Basis, Row, Sentence, Tables
from isoloss.teach.showdown import drawing
from isoloss.teach.showdown.settings import EARLY, MODEL_SEEDS, ShowdownSettings
from isoloss.teach.showdown.summary import gap, means
from isoloss.text import percent

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
        Sentence(key="reveal-identities", text=identities(settings, tables), exact=True),
        Sentence(key="reveal-loss", text=loss(tables), recorded=True),
        Sentence(key="reveal-rates", text=tuning(tables), recorded=True),
        Sentence(key="reveal-positions", text=context(tables), recorded=True),
        Sentence(key="reveal-copied", text=copies(tables)),
        Sentence(key="reveal-distinct", text=variety(tables)),
    ]


def identities(settings: ShowdownSettings, tables: Tables) -> str:
    who = " and ".join(f"{row['label']} by the {NAMES[str(row['family'])]}" for row in tables["order"])
    return (
        f"{who}: both of model seed {settings.model_seed}, with the same dice (seed {settings.seed}), "
        f"temperature {settings.temperature:g} and top-k {settings.top_k}."
    )


def loss(tables: Tables) -> str:
    """Held-out loss of the trained models, over seeds."""
    groups, about = by_family(tables["held_out"], "loss"), tables["recorded"][0]
    found, apart = means(groups), gap(groups["transformer"], groups["lstm"])
    said = ", ".join(f"{NAMES[name]} {row['value']:.3f}" for name, row in found.items())
    return (
        f"Models trained on {about['made']}: held-out loss in nats per token, mean of "
        f"{seeds(groups)}: {said}; {minus(apart)}: "
        f"{judged(apart, 'predicts held-out text better', lower_wins=True)}."
    )


def tuning(tables: Tables) -> str:
    """Is the recipe's rate the best of those tried? A side tuned worse than the other proves nothing."""
    parts = []
    for name in NAMES:
        rows = [row for row in tables["rates"] if row["family"] == name]
        own = next(number(row, "loss") for row in rows if row["recipe"])
        tried = ", ".join(f"{number(row, 'learning_rate'):g}: {number(row, 'loss'):.3f}" for row in rows)
        best = min(rows, key=lambda row: number(row, "loss"))
        better = own - number(best, "loss")
        short = "the recipe's is the best of these"
        if not best["recipe"]:
            short = f"{number(best, 'learning_rate'):g} is {better:.3f} better than the recipe's"
        parts.append(f"{NAMES[name]} {tried} ({short})")
    return f"Held-out loss by learning rate, seed 0 alone: {'; '.join(parts)}."


def context(tables: Tables) -> str:
    """How much each side gains from context: late minus early positions."""
    rows, half = tables["held_out"], int(number(tables["recorded"][0], "context")) // 2
    gains = {
        name: [number(row, "early") - number(row, "late") for row in rows if row["family"] == name]
        for name in NAMES
    }
    found, apart = means(gains), gap(gains["transformer"], gains["lstm"])
    said = ", ".join(f"{NAMES[name]} {row['value']:.3f}" for name, row in found.items())
    return (
        f"From tokens 1–{EARLY} of a window to tokens {half + 1}–{2 * half} the held-out "
        f"loss falls by, in nats, mean of {seeds(gains)}: {said}; {minus(apart)}: "
        f"{judged(apart, 'gains more from context')}."
    )


def copies(tables: Tables) -> str:
    """Shares of 4- and 8-word runs that the training text holds, beside people's own text."""
    four, eight = measured(tables, "copied_4"), measured(tables, "copied_8")
    apart = between(tables, "copied_4")
    if not four or apart is None:
        return TOO_SHORT
    parts = [
        f"4-word runs that the training text holds, mean of {texts_of(four)} texts a side: {listed(four)}; "
        f"{points(apart)}: {judged(apart, 'repeats more of the training text')}"
    ]
    if eight:
        parts.append(f"8-word runs, mean of {texts_of(eight)} texts a side: {listed(eight)}")
    most = ", ".join(f"{SIDES[side]} {max_of(tables, side)}" for side in four)
    parts.append(f"Longest such run in any text, in words: {most}")
    return ". ".join(parts) + "."


TOO_SHORT = "The texts are too short to have runs of 4 words; let them write more tokens."


def variety(tables: Tables) -> str:
    one, two = measured(tables, "distinct_1"), measured(tables, "distinct_2")
    apart = between(tables, "distinct_1")
    if not one or not two or apart is None:
        return TOO_SHORT
    return (
        f"Different words among all words of a text, mean of {texts_of(one)} texts a side: {listed(one)}; "
        f"word pairs: {listed(two)}. Words, {points(apart)}: {judged(apart, 'varies its words more')}."
    )


def judged(apart: Interval, wins: str, *, lower_wins: bool = False) -> str:
    """Who is ahead, if the interval leaves out 0. Transformer minus LSTM."""
    if not apart.decided:
        return "no clear difference"
    ahead = "transformer" if (apart.value > 0) != lower_wins else "lstm"
    return f"the {NAMES[ahead]} {wins}"


def minus(apart: Interval) -> str:
    low, high = apart.interval
    text = f"Transformer minus LSTM {apart.value:+.3f} (95% t interval {low:+.3f} to {high:+.3f})"
    return text.replace("-", "−")


def points(apart: Interval) -> str:
    """A difference of shares, in percentage points."""
    value, low, high = (100 * part for part in (apart.value, *apart.interval))
    text = f"Transformer minus LSTM {value:+.1f} points (95% t interval {low:+.1f} to {high:+.1f})"
    return text.replace("-", "−")


def listed(rows: dict[str, Row]) -> str:
    return ", ".join(f"{SIDES[side]} {percent(number(row, 'value'), 1)}" for side, row in rows.items())


def texts_of(rows: dict[str, Row]) -> int:
    return min(int(number(row, "n")) for row in rows.values())


def measured(tables: Tables, measure: str) -> dict[str, Row]:
    """Rows of a measure by side; none unless both families have one."""
    found = {str(row["side"]): row for row in tables["novelty"] if row["measure"] == measure}
    return found if set(NAMES) <= found.keys() else {}


def between(tables: Tables, measure: str) -> Interval | None:
    values = {
        name: [
            number(row, measure)
            for row in tables["samples"]
            if row["side"] == name and row[measure] is not None
        ]
        for name in NAMES
    }
    if min(map(len, values.values())) < 2:
        return None
    return gap(values["transformer"], values["lstm"])


def max_of(tables: Tables, side: str) -> int:
    return max(int(number(row, "longest")) for row in tables["samples"] if row["side"] == side)


def by_family(rows: Sequence[Row], column: str) -> dict[str, list[float]]:
    return {name: [number(row, column) for row in rows if row["family"] == name] for name in NAMES}


def seeds(groups: dict[str, list[float]]) -> str:
    return f"{min(map(len, groups.values()))} seeds each"


def number(row: Row, column: str) -> float:
    return float(row[column] or 0)


def figures(settings: ShowdownSettings, tables: Tables) -> list[Figure]:
    if "positions" not in tables:
        return []
    found = [drawing.by_position(tables, judgement=context(tables))]
    if measured(tables, "copied_4"):
        found.append(drawing.by_copies(tables, judgement=copies(tables)))
    return found


def lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    return [*blind_lines(settings, tables), *reveal_lines(settings, tables)]


def blind_lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    """Both texts, and what each was about to say first: nothing that names a family."""
    found = [f"Prompt: {visible(str(tables['texts'][0]['prompt']))}"]
    for text in tables["texts"]:
        first = [row for row in tables["steps"] if row["label"] == text["label"] and row["step"] == 1]
        said = ", ".join(f"{shown(str(row['token']))} {number(row, 'chance'):.2f}" for row in first)
        found += ["", f"{text['label']}:"]
        for line in visible(str(text["text"])).split("\n"):
            found += [f"    {part}".rstrip() for part in wrap(line, 74)]
        found.append(f"    (first token, by chance: {said})")
    return found


def reveal_lines(settings: ShowdownSettings, tables: Tables) -> list[str]:
    about = tables["recorded"][0]
    found = ["", " · ".join(f"{row['label']} = {NAMES[str(row['family'])]}" for row in tables["order"]), ""]
    found.append(f"{'mean over texts':28}" + "".join(f"{name:>18}" for name in SIDES.values()))
    for key, words in MEASURES.items():
        rows = measured(tables, key)
        found.append(f"{words:28}" + "".join(f"{cell(rows.get(side)):>18}" for side in SIDES))
    found.append(
        f"{'held-out loss (recorded)':28}" + "".join(f"{loss_cell(tables, side):>18}" for side in NAMES)
    )
    found.append(
        f"Trained on {number(about, 'tokens') / 1e6:.2f} M tokens, {number(about, 'epochs'):.2f} of the "
        f"training text, {about['made']}, {about['machine']}; held-out text: as many passages by people."
    )
    return found


def cell(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"{number(row, 'value'):.2f} ({number(row, 'low'):.2f} to {number(row, 'high'):.2f})"


def loss_cell(tables: Tables, side: str) -> str:
    return cell(means(by_family(tables["held_out"], "loss"))[side])


def html(settings: ShowdownSettings, tables: Tables) -> Markup:
    """Both texts as they grow; with the order drawn, the vote, and who was who to be hidden until then."""
    values: dict[str, Any] = {"texts": [], "identities": None, "vote": "order" in tables}
    for text in tables.get("texts", []):
        last = max((number(row, "step") for row in tables["steps"]), default=0)
        latest = [row for row in tables["steps"] if (row["label"], row["step"]) == (text["label"], last)]
        values["texts"].append(
            {
                "label": text["label"],
                "prompt": visible(str(text["prompt"])).split("\n"),
                "lines": visible(str(text["text"])).split("\n"),
                "candidates": [{**row, "token": shown(str(row["token"]))} for row in latest],
            }
        )
    if values["vote"]:
        values["identities"] = [(row["label"], NAMES[str(row["family"])]) for row in tables["order"]]
    source = resources.files("isoloss.teach.showdown").joinpath("tasting.html").read_text("utf-8")
    return filled_text(source, **values)


def visible(text: str) -> str:
    """Control and format characters, which a terminal or a page might obey, as U+FFFD; line breaks stay."""
    return "".join(
        c
        if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        else "\ufffd"
        for c in text
    )


def shown(token: str) -> str:
    """A token with its spaces and line breaks to be seen."""
    return visible(token).replace(" ", "␣").replace("\n", "⏎")
