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
from isoloss.text import capital

HERO, LOOK_AT_LEAST, say = True, 0.5, partial(say_of, "attention")
"""A head that puts so much on one earlier token has one favourite."""
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
    most = favourite(tables)
    same = {key: most[key] for key in ("layer", "head", "place", "looks_at")}
    random = frame(tables, "map", weights="random", **same)["value"][0]
    text = say("trained-look", random=random, even=1 / most["place"], **most)
    if most["value"] < LOOK_AT_LEAST:
        return Claim(text, "No head has one favourite here.")
    layer, head, back = ORDINALS[most["layer"]], ORDINALS[most["head"]], most["place"] - most["looks_at"]
    token = shown(tables["tokens"][most["looks_at"] - 1]["token"])
    where = "the token before" if back == 1 else f"{back} tokens back"
    return Claim(text, capital(f"{layer} layer, {head} head: looks mostly at “{token}”, {where}."))


def flat(tables: Tables, layer: int) -> Claim:
    """How many of the likeliest next tokens are still among them with this layer looking evenly."""
    whole, even = (set(frame(tables, "next", model="transformer", flattened=n)["token"]) for n in (0, layer))
    kept, words = len(whole & even), capital(ORDINALS[layer])
    left = "same next words" if kept == len(whole) else f"{kept} of {NUMBERS[len(whole)]} next words stay"
    return Claim(say("trained-flat", layer=layer, kept=kept, n=len(whole)), f"{words} layer blurred: {left}.")


def ink(tables: Tables) -> Claim:
    """Of the first token's, at the last."""
    rows = frame(tables, "ink", token=1, place=len(tables["tokens"])).sort("layer")
    left = dict(rows.select("layer", "value").iter_rows())
    parts = ", ".join(f"layer {layer} {share:.2f}" for layer, share in left.items())
    text = say("trained-ink", place=len(tables["tokens"]), parts=parts)
    hundredths = round(100 * left[min(left)])
    return Claim(text, f"In the LSTM's first layer {hundredths} hundredths of the first word's ink are left.")


def arrays(tables: Tables) -> dict[str, Any]:
    """What the drawings of the machines take: weights[kind][layer][head][place], the head shown, gates."""
    gates, steps = frame(tables, "gates"), frame(tables, "next").with_columns(pl.col("chance").round(3))
    rounded = frame(tables, "map").sort("weights", "layer", "head", "place", "looks_at")
    rounded = rounded.with_columns(pl.col("value").round(3))
    return {
        "tokens": [shown(row["token"]) for row in tables["tokens"]],
        "begin": {key: favourite(tables)[key] for key in ("layer", "head")},
        "weights": {
            kind: nested(rounded.filter(weights=kind), "layer", "head", "place")
            for kind in ("trained", "random")
        },
        "gates": [
            {name: rows[name].round(3).to_list() for name in ("input", "forget", "output")}
            for rows in gates.partition_by("layer")
        ],
        "ink": nested(frame(tables, "ink").with_columns(pl.col("value").round(3)), "layer", "token"),
        "next": [
            {"model": model, "flattened": flattened}
            | ({"sentence": capital(flat(tables, flattened).short.split(": ")[-1])} if flattened else {})
            | {"likeliest": [[shown(token), chance] for token, chance in rows["token", "chance"].iter_rows()]}
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
