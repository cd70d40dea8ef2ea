"""What the trained attention carries: weight on the right slot, accuracy with and without each layer."""

from statistics import fmean

import polars as pl

from isoloss.figures.figure import Figure
from isoloss.stats import mean
from isoloss.teach.attention.matrices import Cells, Matrix, lines_of
from isoloss.teach.attention.right_slot.draw import maps_figure, progress_figure
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
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.result import Basis, Sentence, Tables
from isoloss.teach.shares import ENOUGH, span
from isoloss.text import percent, plural


def basis(settings: RightSlotSettings, tables: Tables) -> Basis:
    return Basis(
        n=strings(tables),
        units="unseen strings a seed, one answer each",
        seeds=settings.seeds,
        interval="95%: Wilson a seed, t over strings and over seeds",
    )


def strings(tables: Tables) -> int:
    """Unseen strings a seed behind each accuracy."""
    n: int = pl.DataFrame(tables["ablation"])["n"][0]
    return n


def sentences(settings: RightSlotSettings, tables: Tables) -> list[Sentence]:
    return [
        Sentence(key="change", text=change_text(settings, tables)),
        Sentence(key="mass", text=mass_text(settings, tables), short=mass_short(tables)),
        Sentence(key="ablation", text=ablation_text(tables), short=ablation_short(tables)),
        Sentence(key="control", text=control_text(tables)),
        Sentence(key="verdict", text=verdict_text(tables), short=verdict_short(tables)),
    ]


def change_text(settings: RightSlotSettings, tables: Tables) -> str:
    """How many seeds answer nearly all within the updates, and where the others are."""
    final = accuracies(tables, "trained", "none")
    done, n = solvers(tables), next(iter(final.values())).n
    others = [share.value for seed, share in final.items() if seed not in done]
    text = (
        f"In {len(done)} of {len(final)} seeds the network answers at least {percent(ENOUGH, 1)} of {n:,} "
        f"unseen strings within {settings.updates} updates"
    )
    if not others:
        return f"{text}."
    return f"{text}; in {len(others)} not within {settings.updates} updates ({span(others)})."


def of_seeds(tables: Tables) -> str:
    """Which seeds a sentence speaks of."""
    count = len(subjects(tables))
    seeds = plural(count, "seed")
    return f"the {seeds} that learned it" if solvers(tables) else f"all {seeds}, none of which learned it"


def mass_text(settings: RightSlotSettings, tables: Tables) -> str:
    clauses = [mass_clause(settings, tables, layer) for layer in LAYERS]
    return f"Weight on the right slot in {of_seeds(tables)}: {'; '.join(clauses)}."


def mass_clause(settings: RightSlotSettings, tables: Tables, layer: int) -> str:
    before, after = (
        [masses(tables, layer, when)[seed] for seed in subjects(tables)] for when in ("first", "last")
    )
    over_seeds = mean(after).within(0.0, 1.0)
    known = over_seeds.interval is not None
    within = f" (interval {over_seeds.low:.2f} to {over_seeds.high:.2f})" if known else ""
    moved = {1: "rose", -1: "fell", 0: "shows no clear difference,", None: "went"}[
        change_of_mass(tables, layer)
    ]
    return (
        f"layer {layer}, {LOOKS[layer]}, it {moved} from {fmean(before):.2f} untrained to {fmean(after):.2f}"
        f"{within}, where even attention gives {uniform_mass(layer, settings.pairs):.2f}"
    )


def ablation_text(tables: Tables) -> str:
    clauses, levels = [ablation_clause(tables, layer) for layer in LAYERS], baselines(tables)
    return (
        f"Forced to look at the whole past evenly, {'; '.join(clauses)} ({strings(tables):,} unseen strings "
        f"a seed, {of_seeds(tables)}). Always giving the string's most frequent value would score "
        f"{percent(levels['value set'], 1)}, guessing {percent(levels['guessing'], 1)}."
    )


def ablation_clause(tables: Tables, layer: int) -> str:
    old, new = (
        percent(fmean(share.value for share in shares(tables, forced)), 1)
        for forced in ("none", f"layer {layer}")
    )
    effect = {
        1: "raises accuracy",
        -1: "lowers accuracy",
        0: "makes no clear difference to accuracy,",
        None: "takes accuracy",
    }[effect_of(tables, layer)]
    alone = ", one seed and so no interval" if effect_of(tables, layer) is None else ""
    return f"layer {layer} {effect} from {old} to {new}{alone}"


def mass_short(tables: Tables) -> str:
    """Of the layer that answers."""
    last = LAYERS[-1]
    if change_of_mass(tables, last) != 1:
        return ""
    weight = fmean(masses(tables, last, "last")[seed] for seed in subjects(tables))
    return f"Trained, {percent(weight, 0)} of its gaze is on the right card."


def ablation_short(tables: Tables) -> str:
    if effect_of(tables, LAYERS[-1]) != -1:
        return ""
    after = fmean(share.value for share in shares(tables, f"layer {LAYERS[-1]}"))
    return f"Blur its gaze, and {percent(after, 0)} of its answers are right."


def verdict_short(tables: Tables) -> str:
    verdicts = {layer_verdict(tables, layer) for layer in LAYERS}
    if any("one seed" in verdict for verdict in verdicts):
        return "One seed is too few to tell."
    if all("map and ablation agree" in verdict for verdict in verdicts):
        return "Blur its gaze and it fails: the gaze matters."
    return "Map and answers do not agree everywhere: look closer."


def control_text(tables: Tables) -> str:
    """The same networks before training, forced or not."""
    forced = ("none", *(f"layer {layer}" for layer in LAYERS))
    values = [s.value for kind in forced for s in accuracies(tables, "untrained", kind).values()]
    return (
        f"Control: before training the same {len(values) // len(forced)} networks answer {span(values)} of "
        f"{strings(tables):,} unseen strings, with either layer forced even or none."
    )


def verdict_text(tables: Tables) -> str:
    """Does the map deserve to be believed? Per layer: did the weight move, and does the answer need it?"""
    first, second = (layer_verdict(tables, layer) for layer in LAYERS)
    if first == second:
        return f"In both layers: {first}."
    return f"Layer 1: {first}. Layer 2: {second}."


def layer_verdict(tables: Tables, layer: int) -> str:
    moved, effect = change_of_mass(tables, layer), effect_of(tables, layer)
    if moved is None or effect is None:
        return "one seed, no verdict"
    if moved == 1 and effect == -1:
        return "map and ablation agree, the weight moved to the right slot and the answers depend on it"
    if moved == 1:
        return (
            "the weight moved to the right slot, yet the ablation does not show that the answers depend on it"
        )
    if effect == -1:
        return "the answers depend on the layer's map, yet the weight did not clearly move to the right slot"
    return "neither map nor ablation shows that the right slot matters"


def figures(settings: RightSlotSettings, tables: Tables) -> list[Figure]:
    figures: list[Figure] = []
    if len({row["update"] for row in tables.get("accuracy", [])}) > 1:
        figures.append(progress_figure(settings, tables))
    if any(row["state"] == "trained" for row in tables.get("ablation", [])):
        figures.append(maps_figure(tables))
    return figures


def lines(settings: RightSlotSettings, tables: Tables) -> list[str]:
    """Accuracy and weight by update; accuracy by what is forced; the first seed's maps of one string."""
    return [*progress_lines(tables), "", *ablation_lines(tables), "", *map_lines(tables)]


def progress_lines(tables: Tables) -> list[str]:
    """Means over all seeds, with the lowest and highest seed."""
    accuracy, mass = pl.DataFrame(tables["accuracy"]), pl.DataFrame(tables["mass"])
    columns = {"accuracy": accuracy} | {
        f"layer {layer} on right slot": mass.filter(layer=layer) for layer in LAYERS
    }
    lines = ["update  " + "  ".join(f"{name:>21}" for name in columns) + "   (mean, lowest to highest seed)"]
    for update in accuracy["update"].unique().sort().to_list():
        cells: list[str] = []
        for rows in columns.values():
            values = rows.filter(update=update)["value"].to_list()
            cells.append(f"{fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        lines.append(f"{update:>6}  " + "  ".join(f"{cell:>21}" for cell in cells))
    return lines


def ablation_lines(tables: Tables) -> list[str]:
    lines = [
        "accuracy on unseen strings, with 95% Wilson intervals; a layer forced to look evenly at the past"
    ]
    lines += [
        f"{row['state']:>9}  seed {row['seed']}  forced even: {row['forced']:<8} {row['value']:.3f} "
        f"({row['low']:.3f} to {row['high']:.3f}) n = {row['n']:,}"
        for row in pl.DataFrame(tables["ablation"]).iter_rows(named=True)
    ]
    return lines


def map_lines(tables: Tables) -> list[str]:
    labels, maps = labels_of(tables["string"], "token"), pl.DataFrame(tables["map"])
    lines: list[str] = []
    for state in ("untrained", "trained"):
        for layer in LAYERS:
            rows = maps.filter(state=state, layer=layer)
            cells: Cells = [[0.0] * len(labels) for _ in labels]
            for place, looks_at, value in rows.select("place", "looks_at", "value").iter_rows():
                cells[place][looks_at] = value
            caption = f"{state}, layer {layer}, seed {rows['seed'][0]}: weights of one unseen string"
            lines += lines_of(Matrix(caption, labels, labels, cells))
    return lines
