"""What trained weights make of a sentence, beside random ones: who looks at whom, what the answer needs."""

from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach.attention.matrices import Matrix, lines_of
from isoloss.teach.attention.trained.settings import TrainedSettings
from isoloss.teach.result import Basis, Row, Sentence, Tables

HERO = True
LOOK_AT_LEAST = 0.5
"""A head that puts so much on one earlier token has one favourite."""


def basis(settings: TrainedSettings, tables: Tables) -> Basis:
    return Basis(
        n=len(tables["tokens"]), units="tokens of one sentence", seeds=1, interval="computed, no interval"
    )


def sentences(settings: TrainedSettings, tables: Tables) -> list[Sentence]:
    look = strongest_look(tables)
    return [
        Sentence(key="look", text=look_text(tables, look), short=look_short(look)),
        *(
            Sentence(key=f"flat-{layer}", text=flat_text(tables, layer), short=flat_short(tables, layer))
            for layer in layers(tables)
        ),
        Sentence(key="ink", text=ink_text(tables), short=ink_short(tables)),
    ]


def layers(tables: Tables) -> list[int]:
    return sorted({row["layer"] for row in tables["map"]})


def strongest_look(tables: Tables) -> Row:
    """Of the last token at another one, over the trained layers and heads."""
    last = len(tables["tokens"])
    rows = [r for r in tables["map"] if r["weights"] == "trained" and r["place"] == last != r["looks_at"]]
    return max(rows, key=lambda row: row["value"], default=tables["map"][0])


def look_text(tables: Tables, look: Row) -> str:
    same = ("layer", "head", "place", "looks_at")
    random = next(
        row["value"]
        for row in tables["map"]
        if row["weights"] == "random" and all(row[key] == look[key] for key in same)
    )
    return (
        f"The last of {look['place']} tokens puts {look['value']:.2f} of the weight of layer "
        f"{look['layer']}, head {look['head']} on token {look['looks_at']}; a random network of the same "
        f"shape puts {random:.2f} there, and looking evenly would put {1 / look['place']:.2f}."
    )


def look_short(look: Row) -> str:
    if look["value"] < LOOK_AT_LEAST:
        return "No head has one favourite here."
    back = look["place"] - look["looks_at"]
    return f"One head looks almost only {'at the token before' if back == 1 else f'{back} tokens back'}."


def likeliest(tables: Tables, model: str, flattened: int) -> list[str]:
    rows = [row for row in tables["next"] if (row["model"], row["flattened"]) == (model, flattened)]
    return [row["token"] for row in sorted(rows, key=lambda row: row["rank"])]


def kept(tables: Tables, layer: int) -> int:
    """How many of the likeliest next tokens are still among them with this layer looking evenly."""
    whole, flat = (likeliest(tables, "transformer", number) for number in (0, layer))
    return len(set(whole) & set(flat))


def flat_text(tables: Tables, layer: int) -> str:
    n = len(likeliest(tables, "transformer", 0))
    return (
        f"With layer {layer} made to look at the whole past evenly, {kept(tables, layer)} of the {n} "
        "likeliest next tokens are still among the likeliest."
    )


def flat_short(tables: Tables, layer: int) -> str:
    left = kept(tables, layer)
    words = {1: "first", 2: "second"}.get(layer, "last")
    if left == len(likeliest(tables, "transformer", 0)):
        return f"Blur the {words} layer: the same next words."
    return f"Blur the {words} layer: {left} of its favourites stay."


def ink_left(tables: Tables, layer: int) -> float:
    """Of the first token's, at the last."""
    last = len(tables["tokens"])
    return next(
        row["value"]
        for row in tables["ink"]
        if (row["layer"], row["token"], row["place"]) == (layer, 1, last)
    )


def ink_text(tables: Tables) -> str:
    parts = [f"layer {layer} {ink_left(tables, layer):.2f}" for layer in ink_layers(tables)]
    return (
        f"Of what the first token wrote into the LSTM's cells, this share is left at token "
        f"{len(tables['tokens'])}: {', '.join(parts)} (mean over units, the direct way along the cell alone)."
    )


def ink_layers(tables: Tables) -> list[int]:
    return sorted({row["layer"] for row in tables["ink"]})


def ink_short(tables: Tables) -> str:
    share = ink_left(tables, ink_layers(tables)[0])
    return f"Of the first word, {round(100 * share)} hundredths of the ink are left."


def arrays(tables: Tables) -> dict[str, Any]:
    """What the drawings of the machines take: weights[kind][layer][head][place], gates, ink, next tokens."""
    maps = pl.DataFrame(tables["map"]).sort("weights", "layer", "head", "place", "looks_at")
    nested: dict[str, list[list[list[list[float]]]]] = {}
    for (kind, layer, head, _), rows in maps.group_by(
        "weights", "layer", "head", "place", maintain_order=True
    ):
        by_layer = nested.setdefault(str(kind), [])
        if len(by_layer) < int(str(layer)):
            by_layer.append([])
        if len(by_layer[-1]) < int(str(head)):
            by_layer[-1].append([])
        by_layer[-1][-1].append([round(value, 3) for value in rows["value"].to_list()])
    gates = [[row for row in tables["gates"] if row["layer"] == layer] for layer in ink_layers(tables)]
    return {
        "tokens": [str(row["token"]).strip() or "\u2423" for row in tables["tokens"]],
        "weights": nested,
        "gates": [
            {name: [round(row[name], 3) for row in rows] for name in ("input", "forget", "output")}
            for rows in gates
        ],
        "ink": [
            [
                [
                    round(row["value"], 3)
                    for row in tables["ink"]
                    if (row["layer"], row["token"]) == (layer, token)
                ]
                for token in range(1, len(tables["tokens"]) + 1)
            ]
            for layer in ink_layers(tables)
        ],
        "next": [
            {
                "model": model,
                "flattened": flattened,
                "likeliest": [
                    [str(row["token"]).strip() or "\u2423", round(row["chance"], 3)]
                    for row in tables["next"]
                    if (row["model"], row["flattened"]) == (model, flattened)
                ],
            }
            for model, flattened in dict.fromkeys((row["model"], row["flattened"]) for row in tables["next"])
        ],
    }


def figures(settings: TrainedSettings, tables: Tables) -> list[Figure]:
    return []


def html(settings: TrainedSettings, tables: Tables) -> Markup:
    """The drawing, which a script makes of the arrays; without one, the last token's weights as a table."""
    if not tables.get("next"):
        return Markup("")
    last = strongest_look(tables)
    rows = [
        row
        for row in tables["map"]
        if row["weights"] == "trained" and all(row[key] == last[key] for key in ("layer", "head", "place"))
    ]
    tokens = arrays(tables)["tokens"]
    return fill(
        "teach/attention/trained/web.html", arrays=arrays(tables), look=last, rows=rows, tokens=tokens
    )


def lines(settings: TrainedSettings, tables: Tables) -> list[str]:
    """The last token's row of every trained head, then the likeliest next tokens."""
    labels = [str(row["token"]).strip() for row in tables["tokens"]]
    rows = pl.DataFrame(tables["map"]).filter(pl.col("weights") == "trained", pl.col("place") == len(labels))
    heads = rows.group_by("layer", "head", maintain_order=True).agg("value")
    names = [f"layer {layer}, head {head}" for layer, head, _ in heads.iter_rows()]
    caption = "Weights of the last token, a row a trained head"
    out = lines_of(Matrix(caption, names, labels, heads["value"].to_list()))
    for row in arrays(tables)["next"]:
        likeliest = ", ".join(f"{token} {chance:.2f}" for token, chance in row["likeliest"])
        flat = f", layer {row['flattened']} even" if row["flattened"] else ""
        out.append(f"{row['model']}{flat} goes on with: {likeliest}")
    return out
