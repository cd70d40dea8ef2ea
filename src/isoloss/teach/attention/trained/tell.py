"""What trained weights make of a sentence, beside random ones: who looks at whom, what the answer needs."""

from functools import partial
from typing import Any

import polars as pl
from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach.attention.matrices import Matrix, lines_of
from isoloss.teach.attention.settings import TrainedSettings
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Row, Sentence, Tables, frame, sentence
from isoloss.teach.versus import NUMBERS, Claim
from isoloss.text import capital, percent

HERO, LOOK_AT_LEAST, SHOWN, say = True, 0.5, 3, partial(say_of, "attention")
"""A head that puts so much on one earlier token has one favourite; so many next tokens are drawn and told."""
ORDINALS = ("", "first", "second", "third", "fourth")


def count(settings: TrainedSettings, tables: Tables) -> int:
    return len(tables["tokens"])


def sentences(settings: TrainedSettings, tables: Tables) -> list[Sentence]:
    layers = sorted({row["layer"] for row in tables["map"]})
    return [
        sentence("look", *look(tables)),
        *(sentence(f"flat-{layer}", *flat(tables, layer)) for layer in layers),
        sentence("ink", *ink(tables)),
    ]


def favourite(tables: Tables) -> Row:
    """The last token's look that is drawn and told: of heads with a favourite the farthest back."""
    last = frame(tables, "map", weights="trained", place=len(tables["tokens"]))
    value, back = pl.col("value"), pl.col("place") - pl.col("looks_at")
    others = last.filter(back > 0).sort(value >= LOOK_AT_LEAST, value * back)
    return others.row(-1, named=True) if len(others) else tables["map"][0]


def look(tables: Tables) -> Claim:
    """Of one head, which was picked: what the others put on the same token stands behind it."""
    most = favourite(tables)
    same = {key: most[key] for key in ("layer", "head", "place", "looks_at")}
    random = frame(tables, "map", weights="random", **same)["value"][0]
    text = say("trained-look", random=random, even=1 / most["place"], **others(tables), **most)
    if most["value"] < LOOK_AT_LEAST:
        return Claim(text, "No head has one favourite here.")
    layer, head = ORDINALS[most["layer"]], ORDINALS[most["head"]]
    heads = others(tables)["heads"]
    token = shown(tables["tokens"][most["looks_at"] - 1]["token"])
    return Claim(
        text, capital(f"{layer} layer, {head} head, picked from {heads}: looks mostly at “{token}”.")
    )


def others(tables: Tables) -> dict[str, Any]:
    """How many heads there are, and the weight that those not picked put where the favourite looks."""
    most = favourite(tables)
    column = frame(tables, "map", weights="trained", place=most["place"], looks_at=most["looks_at"])
    rest = column.filter((pl.col("layer") != most["layer"]) | (pl.col("head") != most["head"]))["value"]
    return {"heads": len(column), "others": len(rest), "low": rest.min() or 0.0, "high": rest.max() or 0.0}


def picked(tables: Tables) -> str:
    """How the head that is drawn was come by."""
    heads = others(tables)["heads"]
    if favourite(tables)["value"] < LOOK_AT_LEAST:
        return f"One of {heads} heads: none has one favourite here."
    return f"Picked from {heads} heads: looks back farthest."


def flat(tables: Tables, layer: int) -> Claim:
    """How many of the likeliest next tokens are still among them with this layer looking evenly."""
    whole, even = (
        set(frame(tables, "next", model="transformer", flattened=n)["token"][:SHOWN]) for n in (0, layer)
    )
    kept, words = len(whole & even), capital(ORDINALS[layer])
    some = f"{kept} of {NUMBERS[len(whole)]} next words {'stays' if kept == 1 else 'stay'}"
    left = "same next words" if kept == len(whole) else some
    return Claim(say("trained-flat", layer=layer, kept=kept, n=len(whole)), f"{words} layer blurred: {left}.")


def ink(tables: Tables) -> Claim:
    """Of the first token's, at the last; aloud of the layer that keeps most, as it is drawn."""
    left = left_at_the_end(tables, token=1)
    parts = ", ".join(f"layer {layer} {share:.2f}" for layer, share in left.items())
    text = say("trained-ink", place=len(tables["tokens"]), parts=parts)
    return Claim(text, f"LSTM: {keeps(tables, token=1)}")


def left_at_the_end(tables: Tables, **token: int) -> dict[int, float]:
    """By LSTM layer, what is left at the last token: of one token's ink, or the mean of all before."""
    last = len(tables["tokens"])
    rows = frame(tables, "ink", place=last, **token)
    before = rows.filter(pl.col("token") < last) if last > 1 else rows
    return dict(before.group_by("layer").agg(pl.col("value").mean()).sort("layer").iter_rows())


def keeper(tables: Tables) -> int:
    """The LSTM layer that keeps most of what was read: the fair one beside a head that was picked."""
    left = left_at_the_end(tables)
    return max(left, key=lambda layer: left[layer])


def keeps(tables: Tables, token: int) -> str:
    """What the best layer keeps of a token."""
    left, layer = left_at_the_end(tables, token=token), keeper(tables)
    best = "better" if len(left) == 2 else "best"
    best = f"the {best} of {NUMBERS.get(len(left), len(left))} layers"
    return f"{best} keeps {percent(left[layer], 0)} of “{shown(tables['tokens'][token - 1]['token'])}”."


def arrays(tables: Tables) -> dict[str, Any]:
    """What the drawings of the machines take: weights[kind][layer][head][place], the head shown, gates."""
    gates, steps = frame(tables, "gates"), frame(tables, "next").with_columns(pl.col("chance").round(3))
    rounded = frame(tables, "map").sort("weights", "layer", "head", "place", "looks_at")
    rounded = rounded.with_columns(pl.col("value").round(3))
    return {
        "tokens": [shown(row["token"]) for row in tables["tokens"]],
        "begin": {key: favourite(tables)[key] for key in ("layer", "head")} | {"sentence": picked(tables)},
        "carried": {
            "layer": keeper(tables),
            "sentence": capital(keeps(tables, favourite(tables)["looks_at"])),
        },
        "weights": {
            kind: nested(rounded.filter(weights=kind), "layer", "head", "place")
            for kind in ("trained", "random")
        },
        "gates": [
            {name: rows[name].round(3).to_list() for name in ("input", "forget", "output")}
            for rows in gates.partition_by("layer")
        ],
        "ink": nested(frame(tables, "ink").with_columns(pl.col("value").round(4)), "layer", "token"),
        "next": [
            {"model": model, "flattened": flattened}
            | ({"sentence": capital(flat(tables, flattened).short.split(": ")[-1])} if flattened else {})
            | {
                "likeliest": [
                    [shown(token), chance] for token, chance in rows["token", "chance"][:SHOWN].iter_rows()
                ]
            }
            for (model, flattened), rows in steps.partition_by("model", "flattened", as_dict=True).items()
        ],
    }


def nested(rows: pl.DataFrame, *columns: str) -> list[Any]:
    """The values, in lists of lists by these columns."""
    if not columns:
        return rows["value"].to_list()
    return [nested(part, *columns[1:]) for part in rows.partition_by(columns[0])]


def shown(token: str) -> str:
    """Without spaces around it; a token that is all space as its sign."""
    return token.strip() or "\u2423"


def figures(settings: TrainedSettings, tables: Tables) -> list[Figure]:
    return []


def html(settings: TrainedSettings, tables: Tables) -> Markup:
    """The drawing, which a script makes of the arrays; without one, the last token's weights as a table."""
    if not tables.get("next"):
        return Markup("")
    last, drawn = favourite(tables), arrays(tables)
    rows = frame(tables, "map", weights="trained", **{key: last[key] for key in ("layer", "head", "place")})
    values = {"look": last, "rows": rows.to_dicts(), "tokens": drawn["tokens"]}
    return fill("teach/attention/trained/web.html", arrays=drawn, **values)


def lines(settings: TrainedSettings, tables: Tables) -> list[str]:
    """The last token's row of every trained head, then the likeliest next tokens."""
    drawn = arrays(tables)
    labels = [row["token"].strip() for row in tables["tokens"]]
    rows = frame(tables, "map", weights="trained", place=len(labels))
    heads = rows.group_by("layer", "head", maintain_order=True).agg("value")
    names = [f"layer {layer}, head {head}" for layer, head, _ in heads.iter_rows()]
    caption = "Weights of the last token, a row a trained head"
    out = lines_of(Matrix(caption, names, labels, heads["value"].to_list()))
    for row in drawn["next"]:
        likeliest = ", ".join(f"{token} {chance:.2f}" for token, chance in row["likeliest"])
        flat = f", layer {row['flattened']} even" if row["flattened"] else ""
        out.append(f"{row['model']}{flat} goes on with: {likeliest}")
    return out
