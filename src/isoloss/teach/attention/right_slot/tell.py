"""What the trained attention carries: weight on the right slot, accuracy with and without each layer."""

from functools import partial
from statistics import fmean
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss import table
from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.stats import mean
from isoloss.teach.amnesia.contest.tell import name_of_key
from isoloss.teach.attention.right_slot.draw import ablation_figure, progress_figure
from isoloss.teach.attention.right_slot.outcomes import (
    LAYERS,
    LOOKS,
    accuracies,
    baselines,
    change_of_mass,
    effect_of,
    masses,
    shares,
    solvers,
    subjects,
    uniform_mass,
)
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.attention.trained.tell import ORDINALS, nested
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Sentence, Tables, frame, sentence
from isoloss.teach.shares import ENOUGH, span
from isoloss.teach.versus import Claim
from isoloss.text import capital, percent, plural

say = partial(say_of, "attention")


def count(settings: RightSlotSettings, tables: Tables) -> int:
    """Unseen strings a seed behind each accuracy."""
    n: int = frame(tables, "ablation")["n"][0]
    return n


def sentences(settings: RightSlotSettings, tables: Tables) -> list[Sentence]:
    return [
        *(sentence(f"ablation-{layer}", *ablation(tables, layer)) for layer in LAYERS),
        sentence("baselines", baselines_text(tables), exact=True),
        sentence("change", change_text(settings, tables)),
        sentence("mass", *mass(settings, tables)),
        sentence("control", control_text(tables)),
        sentence("verdict", *verdict(tables)),
    ]


def change_text(settings: RightSlotSettings, tables: Tables) -> str:
    """How many seeds answer nearly all within the updates, and where the others are."""
    final = accuracies(tables, "trained", "none")
    done, n = solvers(tables), next(iter(final.values())).n
    others = [share.value for seed, share in final.items() if seed not in done]
    words = {"done": len(done), "seeds": len(final), "enough": percent(ENOUGH, 1), "n": n}
    text = say("slot-change", updates=settings.updates, **words)
    late = f"; in {len(others)} not within {settings.updates} updates ({span(others)})" if others else ""
    return f"{text}{late}."


def of_seeds(tables: Tables) -> str:
    """Which seeds a sentence speaks of."""
    seeds = plural(len(subjects(tables)), "seed")
    return f"the {seeds} that learned it" if solvers(tables) else f"all {seeds}, none of which learned it"


def mass(settings: RightSlotSettings, tables: Tables) -> Claim:
    """How much weight came to the right slots; aloud of the layer that answers."""
    clauses = [mass_clause(settings, tables, layer) for layer in LAYERS]
    text, last = f"Weight on the right slot in {of_seeds(tables)}: {'; '.join(clauses)}.", LAYERS[-1]
    if change_of_mass(tables, last) != 1:
        return Claim(text, "")
    weight = fmean(masses(tables, last, "last")[seed] for seed in subjects(tables))
    return Claim(text, f"Trained, {percent(weight, 0)} of its gaze is on the right card.")


def mass_clause(settings: RightSlotSettings, tables: Tables, layer: int) -> str:
    before, after = (
        [masses(tables, layer, when)[seed] for seed in subjects(tables)] for when in ("first", "last")
    )
    over_seeds = mean(after).within(0.0, 1.0)
    known = over_seeds.interval is not None
    moved = {1: "rose", -1: "fell", 0: "shows no clear difference,", None: "went"}
    return say(
        "slot-mass",
        layer=layer,
        looks=LOOKS[layer],
        moved=moved[change_of_mass(tables, layer)],
        before=fmean(before),
        after=fmean(after),
        within=f" (interval {over_seeds.low:.2f} to {over_seeds.high:.2f})" if known else "",
        even=uniform_mass(layer, settings.pairs),
    )


def ablation(tables: Tables, layer: int) -> Claim:
    """What is left of the answers with this layer forced even: told of each layer, not of one picked."""
    clause, n = ablation_clause(tables, layer), frame(tables, "ablation")["n"][0]
    text, effect = say("slot-ablation", clause=clause, n=n, seeds=of_seeds(tables)), effect_of(tables, layer)
    blurred = f"{capital(ORDINALS[layer])} layer blurred"
    if effect is None:
        return Claim(text, "")
    if effect == 0:
        return Claim(text, f"{blurred}: no clear difference.")
    after = fmean(share.value for share in shares(tables, f"layer {layer}"))
    return Claim(text, f"{blurred}: {percent(after, 0)} of its answers are right.")


def baselines_text(tables: Tables) -> str:
    """What is had without binding."""
    levels, n = baselines(tables), frame(tables, "ablation")["n"][0]
    shares = {key.split()[0]: percent(level, 1) for key, level in levels.items()}
    return say("slot-baselines", n=n, **shares)


EFFECTS = {
    1: "raises accuracy from {} to {}",
    -1: "lowers accuracy from {} to {}",
    0: "makes no clear difference to accuracy, from {} to {}",
    None: "takes accuracy from {} to {}, one seed and so no interval",
}


def ablation_clause(tables: Tables, layer: int) -> str:
    means = (fmean(share.value for share in shares(tables, forced)) for forced in ("none", f"layer {layer}"))
    ends = [percent(mean, 1) for mean in means]
    return f"layer {layer} {EFFECTS[effect_of(tables, layer)].format(*ends)}"


def control_text(tables: Tables) -> str:
    """The same networks before training, forced or not."""
    untrained = frame(tables, "ablation", state="untrained")
    words = {"networks": untrained["seed"].n_unique(), "n": untrained["n"][0]}
    return say("slot-control", span=span(untrained["value"].to_list()), **words)


AGREE = "map and ablation agree, the weight moved to the right slot and the answers depend on it"
DOUBTS = {
    (True, False): "the weight moved to the right slot, yet the ablation does not show that the answers "
    "depend on it",
    (False, True): "the answers depend on the layer's map, yet the weight did not clearly move to the right "
    "slot",
    (False, False): "neither map nor ablation shows that the right slot matters",
    (True, True): AGREE,
}
"""Did the weight move, and do the answers need the layer?"""


def verdict(tables: Tables) -> Claim:
    """Does the map deserve to be believed? Per layer: did the weight move, and does the answer need it?"""
    first, second = verdicts = [layer_verdict(tables, layer) for layer in LAYERS]
    text = f"In both layers: {first}." if first == second else f"Layer 1: {first}. Layer 2: {second}."
    if ONE_SEED in verdicts:
        return Claim(text, "One seed is too few to tell.")
    if verdicts == [AGREE, AGREE]:
        return Claim(text, "Blur either layer and answers are lost: the gaze matters.")
    return Claim(text, "Map and answers do not agree everywhere: look closer.")


ONE_SEED = "one seed, no verdict"


def layer_verdict(tables: Tables, layer: int) -> str:
    moved, effect = change_of_mass(tables, layer), effect_of(tables, layer)
    return ONE_SEED if moved is None or effect is None else DOUBTS[moved == 1, effect == -1]


def figures(settings: RightSlotSettings, tables: Tables) -> list[Figure]:
    figures: list[Figure] = []
    if len({row["update"] for row in tables.get("accuracy", [])}) > 1:
        figures.append(progress_figure(settings, tables))
    if any(row["state"] == "trained" for row in tables.get("ablation", [])):
        figures.append(ablation_figure(tables))
    return figures


def lines(settings: RightSlotSettings, tables: Tables) -> list[str]:
    """Accuracy by what is forced."""
    ablation = frame(tables, "ablation").select("state", "forced", "seed", "value", "low", "high", "n")
    caption = "accuracy on unseen strings, 95% Wilson; a layer forced to look evenly at the past"
    return [*table.lines(table.table_of(caption, ablation))]


def arrays(tables: Tables) -> dict[str, Any]:
    """What the drawing of attention takes: one string as cards and questions, weights[kind][layer][head]."""
    rows = frame(tables, "map").sort("state", "layer", "place", "looks_at")
    rows = rows.with_columns(pl.col("value").round(3), head=pl.lit(1))
    states, apart = {"trained": "trained", "random": "untrained"}, 360 * baselines(tables)["guessing"]
    read = [(row["role"], int(row["token"].strip("kv?"))) for row in tables["string"]]
    return {
        "tokens": [
            str(number + 1) if role == "value" else name_of_key(number) + "?" * (role == "query")
            for role, number in read
        ],
        "hues": [round(apart * number) if role == "value" else None for role, number in read],
        "begin": {"layer": LAYERS[-1], "head": 1},
        "weights": {
            kind: nested(rows.filter(state=state), "layer", "head", "place") for kind, state in states.items()
        },
    }


def html(settings: RightSlotSettings, tables: Tables) -> Markup:
    """The drawing once more, among what stands behind; from here a live run feeds the slides."""
    if not any(row["state"] == "trained" for row in tables.get("map", [])):
        return Markup("")
    values = {"kind": "web", "of": "right-slot", "options": {"rows": "trained random"}}
    otherwise = "Each question looks back at the cards read before it."
    return fill("teach/deck/machine.html", arrays=arrays(tables), otherwise=otherwise, **values)
