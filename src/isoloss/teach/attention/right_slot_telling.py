"""What the trained attention carries: weight on the right slot, accuracy with and without each layer."""

from collections.abc import Sequence

from isoloss.figures.figure import Figure
from isoloss.stats import mean
from isoloss.teach.attention.matrices import Matrix, lines_of
from isoloss.teach.attention.right_slot_figures import maps_figure, progress_figure
from isoloss.teach.attention.right_slot_rows import (
    ENOUGH,
    LAYERS,
    LOOKS,
    accuracies,
    baseline,
    change_of_mass,
    kept,
    masses,
    solved,
    token_labels,
    uniform_mass,
)
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import RightSlotSettings
from isoloss.teach.result import Basis, Sentence, Tables
from isoloss.teach.shares import Share, gap
from isoloss.text import percent, plural


def basis(settings: RightSlotSettings, tables: Tables) -> Basis:
    return Basis(
        n=int(tables["ablation"][0]["n"]),
        units="unseen strings a seed, one answer each",
        seeds=settings.seeds,
        interval="95%: Wilson a seed, t over strings and over seeds",
    )


def sentences(settings: RightSlotSettings, tables: Tables) -> list[Sentence]:
    return [
        Sentence(key="change", text=change_text(settings, tables)),
        Sentence(key="mass", text=mass_text(settings, tables)),
        Sentence(key="ablation", text=ablation_text(tables)),
        Sentence(key="control", text=control_text(tables)),
        Sentence(key="verdict", text=verdict_text(tables)),
    ]


def change_text(settings: RightSlotSettings, tables: Tables) -> str:
    """How many seeds answer nearly all within the updates, and where the others are."""
    final = accuracies(tables, "trained", "none")
    done, n = solved(tables), next(iter(final.values())).n
    others = [share.value for seed, share in final.items() if seed not in done]
    text = (
        f"In {len(done)} of {len(final)} seeds the network answers at least {percent(ENOUGH, 1)} of {n:,} "
        f"unseen strings within {settings.updates} updates"
    )
    if not others:
        return f"{text}."
    return f"{text}; in {len(others)} not within {settings.updates} updates ({span(others)})."


def span(shares: Sequence[float]) -> str:
    low, high = percent(min(shares), 1), percent(max(shares), 1)
    return low if low == high else f"{low} to {high}"


def of_seeds(tables: Tables) -> str:
    """Which seeds a sentence speaks of."""
    count = len(kept(tables))
    seeds = plural(count, "seed")
    return f"the {seeds} that learned it" if solved(tables) else f"all {seeds}, none of which learned it"


def mass_text(settings: RightSlotSettings, tables: Tables) -> str:
    clauses = [mass_clause(settings, tables, layer) for layer in LAYERS]
    return f"Weight on the right slot in {of_seeds(tables)}: {'; '.join(clauses)}."


def mass_clause(settings: RightSlotSettings, tables: Tables, layer: int) -> str:
    seeds = kept(tables)
    before, after = (masses(tables, layer, when) for when in ("first", "last"))
    old, new = (sum(m[s] for s in seeds) / len(seeds) for m in (before, after))
    over_seeds = mean([after[s] for s in seeds]).within(0.0, 1.0)
    known = over_seeds.interval is not None
    within = f" (interval {over_seeds.low:.2f} to {over_seeds.high:.2f})" if known else ""
    moved = {1: "rose", -1: "fell", 0: "shows no clear difference,", None: "went"}[
        change_of_mass(tables, layer)
    ]
    return (
        f"layer {layer}, {LOOKS[layer]}, it {moved} from {old:.2f} untrained to {new:.2f}{within}, where "
        f"even attention gives {uniform_mass(layer, settings.pairs):.2f}"
    )


def ablation_text(tables: Tables) -> str:
    clauses = [ablation_clause(tables, layer) for layer in LAYERS]
    n = int(tables["ablation"][0]["n"])
    return (
        f"Forced to look at the whole past evenly, {'; '.join(clauses)} ({n:,} unseen strings a seed, "
        f"{of_seeds(tables)}). Always giving the string's most frequent value would score "
        f"{percent(baseline(tables, 'value set'), 1)}, guessing {percent(baseline(tables, 'uniform'), 1)}."
    )


def ablation_clause(tables: Tables, layer: int) -> str:
    whole, flat = shares(tables, "none"), shares(tables, f"layer {layer}")
    old, new = (percent(sum(s.value for s in side) / len(side), 1) for side in (whole, flat))
    effect = {
        1: "raises accuracy",
        -1: "lowers accuracy",
        0: "makes no clear difference to accuracy,",
        None: "takes accuracy",
    }[effect_of(tables, layer)]
    alone = ", one seed and so no interval" if effect_of(tables, layer) is None else ""
    return f"layer {layer} {effect} from {old} to {new}{alone}"


def shares(tables: Tables, forced: str, state: str = "trained") -> list[Share]:
    found = accuracies(tables, state, forced)
    return [found[seed] for seed in kept(tables)]


def effect_of(tables: Tables, layer: int) -> int | None:
    """Sign of what flattening a layer does to accuracy; 0 if not clear, None with one seed."""
    change = gap(shares(tables, f"layer {layer}"), shares(tables, "none"))
    return None if change is None else change.sign


def control_text(tables: Tables) -> str:
    """The same networks before training, forced or not."""
    forced = ("none", *(f"layer {layer}" for layer in LAYERS))
    values = [s.value for kind in forced for s in accuracies(tables, "untrained", kind).values()]
    n = int(tables["ablation"][0]["n"])
    return (
        f"Control: before training the same {len(values) // len(forced)} networks answer {span(values)} of "
        f"{n:,} unseen strings, with either layer forced even or none."
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
    drawn = []
    if len({row["update"] for row in tables.get("accuracy", [])}) > 1:
        drawn.append(progress_figure(settings, tables))
    if any(row["state"] == "trained" for row in tables.get("ablation", [])):
        drawn.append(maps_figure(settings, tables))
    return drawn


def lines(settings: RightSlotSettings, tables: Tables) -> list[str]:
    """Accuracy and weight by update; accuracy by what is forced; the first seed's maps of one string."""
    return [*progress_lines(tables), "", *ablation_lines(tables), "", *map_lines(tables)]


def progress_lines(tables: Tables) -> list[str]:
    """Means over all seeds, with the lowest and highest seed."""
    columns = {"accuracy": tables["accuracy"]} | {
        f"layer {layer} on right slot": [r for r in tables["mass"] if r["layer"] == layer] for layer in LAYERS
    }
    updates = sorted({int(row["update"]) for row in tables["accuracy"]})
    out = ["update  " + "  ".join(f"{name:>21}" for name in columns) + "   (mean, lowest to highest seed)"]
    for update in updates:
        cells = []
        for rows in columns.values():
            values = [float(row["value"]) for row in rows if row["update"] == update]
            cells.append(f"{sum(values) / len(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        out.append(f"{update:>6}  " + "  ".join(f"{cell:>21}" for cell in cells))
    return out


def ablation_lines(tables: Tables) -> list[str]:
    out = ["accuracy on unseen strings, with 95% Wilson intervals; a layer forced to look evenly at the past"]
    for row in tables["ablation"]:
        ends = f"{float(row['low']):.3f} to {float(row['high']):.3f}"
        share = f"{float(row['value']):.3f} ({ends}) n = {row['n']:,}"
        out.append(f"{row['state']:>9}  seed {row['seed']}  forced even: {row['forced']:<8} {share}")
    return out


def map_lines(tables: Tables) -> list[str]:
    labels = labels_of(token_labels(tables))
    out: list[str] = []
    for state in ("untrained", "trained"):
        for layer in LAYERS:
            rows = [r for r in tables["map"] if r["state"] == state and r["layer"] == layer]
            cells: list[list[float | None]] = [[0.0] * len(labels) for _ in labels]
            for row in rows:
                cells[int(row["place"])][int(row["looks_at"])] = float(row["value"])
            caption = f"{state}, layer {layer}, seed {rows[0]['seed']}: weights of one unseen string"
            out += lines_of(Matrix(caption, labels, labels, cells))
    return out
