"""The steps of one head, as lines, tables, a heat map and two sentences."""

from collections.abc import Iterator
from functools import partial

import polars as pl
from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.report.templates import fill
from isoloss.teach import prose
from isoloss.teach.attention.draw import cells_of, numbered_map
from isoloss.teach.attention.matrices import Cells, Matrix, lines_of
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import StepsSettings
from isoloss.teach.prose import say as say_of
from isoloss.teach.result import Sentence, Tables, frame, sentence

BADGES, say = {"softmax": "EXACT"}, partial(say_of, "attention")


def count(settings: StepsSettings, tables: Tables) -> int:
    return len(tables["words"])


def sentences(settings: StepsSettings, tables: Tables) -> list[Sentence]:
    short = "Rows that sum to one: softmax, not insight."
    return [
        sentence("sums", sums_text(tables), short, exact=True),
        sentence("mask", mask_text(tables), exact=True),
        sentence("check", check_text(tables)),
    ]


def sums_text(tables: Tables) -> str:
    """Says so only if each sum is 1 to rounding."""
    sums = frame(tables, "sums")["value"]
    worst = max(abs(total - 1) for total in sums)
    return say("steps-sums" if worst <= 1e-9 else "steps-sums-off", n=len(sums), worst=worst)


def mask_text(tables: Tables) -> str:
    softmax = frame(tables, "matrices", matrix="A")
    ahead = softmax.filter(pl.col("column") > pl.col("row"))["value"].to_list()
    return say("steps-ahead" if any(ahead) else "steps-mask", n=len(ahead), most=max(ahead))


def check_text(tables: Tables) -> str:
    check = frame(tables, "check")
    parts = ", ".join(f"{what} {value:.1g}" for what, value in check.select("what", "value").iter_rows())
    reproduce = "reproduce" if (check["value"] <= check["tolerance"]).all() else "do not reproduce"
    return say("steps-check", reproduce=reproduce, n=check["n"].sum(), parts=parts)


def matrices(settings: StepsSettings, tables: Tables) -> Iterator[Matrix]:
    """Every matrix of the computation, in order."""
    words = labels_of(tables["words"])
    features = [f"d{i}" for i in range(1, settings.d_model + 1)]
    channels = [f"c{i}" for i in range(1, settings.d_model + 1)]
    shapes = [
        ("X", "input of the head, a row a word: norm(E[word] + P[place])", words, features),
        ("W_q", "weights of the queries", features, channels),
        ("W_k", "weights of the keys", features, channels),
        ("W_v", "weights of the values", features, channels),
        ("Q", "queries, X W_q: what each word asks for", words, channels),
        ("K", "keys, X W_k: what each word offers", words, channels),
        ("V", "values, X W_v: what each word hands over", words, channels),
        ("S", f"scaled scores, Q Kᵀ / √{settings.d_model}: row looks at column", words, words),
        ("M", "causal mask: −∞ where the column comes after the row", words, words),
        ("S + M", "masked scores", words, words),
        ("A", "softmax of each row, with its sum", words, words),
        *(
            (f"Z {place}", f"weighted values for word {place}: each value times its weight", words, channels)
            for place in range(1, len(words) + 1)
        ),
        ("Y", "mixed values: the column sums of each word's weighted values", words, channels),
        ("W_o", "weights of the output", channels, features),
        ("O", "output, Y W_o: what the head adds to the residual stream", words, features),
    ]
    rows = frame(tables, "matrices").group_by("matrix", "row", maintain_order=True).agg("value")
    values: dict[str, Cells] = dict(rows.group_by("matrix").agg("value").iter_rows())
    totals = frame(tables, "sums")["value"].to_list()
    for step, (name, meaning, down, across) in enumerate(shapes, 1):
        caption = f"{step}. {name}: {meaning}"
        yield Matrix(caption, down, across, values[name], totals if name == "A" else None)


def lines(settings: StepsSettings, tables: Tables) -> list[str]:
    return [line for matrix in matrices(settings, tables) for line in lines_of(matrix)]


def html(settings: StepsSettings, tables: Tables) -> Markup:
    """Every matrix as a table, folded away below the heat map; the weighted values, one a word, once more."""
    every = list(matrices(settings, tables))
    first = next(i for i, matrix in enumerate(every) if ". Z 1:" in matrix.caption)
    last = first + len(tables["words"])
    parts = [every[:first], every[first:last], every[last:]]
    return fill("teach/attention/steps/matrices.html", parts=parts)


def figures(settings: StepsSettings, tables: Tables) -> list[Figure]:
    if not tables.get("matrices"):
        return []
    words, rows = labels_of(tables["words"]), frame(tables, "matrices", matrix="A")
    seen = rows.filter(pl.col("column") <= pl.col("row"))
    weights = cells_of(seen, ("row", "column"), words, 1)
    strongest = max(weights.filter(pl.col("looks") == words[-1])["weight"].to_list())
    side = 29 * len(words)
    chart = numbered_map(weights, words).properties(width=side, height=0.7 * side)
    numbers = {"strongest": strongest, "words": len(words), "even": 1 / len(words)}
    return [prose.figure("attention", "softmax", chart, weights, **numbers)]
