"""The steps of one head, as lines, tables, a heat map and two sentences."""

from collections.abc import Iterator

import altair as alt
import polars as pl
from markupsafe import Markup

from isoloss.figures.figure import Figure
from isoloss.teach.attention.heat import numbered_map
from isoloss.teach.attention.matrices import Matrix, cells_of, html_of, lines_of
from isoloss.teach.attention.sentence import labels_of
from isoloss.teach.attention.settings import StepsSettings
from isoloss.teach.result import Basis, Sentence, Tables


def basis(settings: StepsSettings, tables: Tables) -> Basis:
    return Basis(
        n=len(tables["words"]), units="words, one softmax row each", seeds=1, interval="computed, no interval"
    )


def sentences(settings: StepsSettings, tables: Tables) -> list[Sentence]:
    return [
        Sentence(key="sums", text=sums_text(tables), exact=True),
        Sentence(key="mask", text=mask_text(tables), exact=True),
        Sentence(key="check", text=check_text(tables)),
    ]


def sums_text(tables: Tables) -> str:
    """Says so only if each sum is 1 to rounding."""
    worst = max(abs(float(row["value"]) - 1) for row in tables["sums"])
    rows = len(tables["sums"])
    if worst > 1e-9:
        return f"The {rows} softmax rows do not all sum to 1: the worst is off by {worst:.1g}."
    return (
        f"Each of the {rows} softmax rows sums to 1. That is the definition of a softmax and says nothing "
        "about the words: the weights of this head are random."
    )


def mask_text(tables: Tables) -> str:
    ahead = [float(r["value"]) for r in tables["matrices"] if r["matrix"] == "A" and r["column"] > r["row"]]
    if any(ahead):
        return (
            f"Some words look ahead: a weight of {max(ahead):.2g} lies above the diagonal. The mask is wrong."
        )
    return (
        f"The causal mask gives the {len(ahead)} places above the diagonal weight 0: no word looks ahead, "
        "and the first word can look only at itself."
    )


def check_text(tables: Tables) -> str:
    parts = ", ".join(f"{row['what']} {row['value']:.1g}" for row in tables["check"])
    agree = all(row["value"] <= row["tolerance"] for row in tables["check"])
    n = sum(int(row["n"]) for row in tables["check"])
    if agree:
        return f"The steps reproduce the model's own attention: largest difference over {n} numbers, {parts}."
    return (
        f"The steps do not reproduce the model's own attention: largest difference over {n} numbers, {parts}."
    )


def matrices(settings: StepsSettings, tables: Tables) -> Iterator[Matrix]:
    """Every matrix of the computation, in order."""
    words = labels_of([str(row["word"]) for row in tables["words"]])
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
    for step, (name, meaning, rows, columns) in enumerate(shapes, 1):
        sums = [float(row["value"]) for row in tables["sums"]] if name == "A" else None
        yield Matrix(f"{step}. {name}: {meaning}", rows, columns, cells_of(tables["matrices"], name), sums)


def lines(settings: StepsSettings, tables: Tables) -> list[str]:
    return [line for matrix in matrices(settings, tables) for line in lines_of(matrix)]


def html(settings: StepsSettings, tables: Tables) -> Markup:
    """Every matrix as a table, folded away below the heat map; the weighted values, one a word, once more."""
    every = list(matrices(settings, tables))
    first = next(i for i, matrix in enumerate(every) if ". Z 1:" in matrix.caption)
    last = first + len(tables["words"])
    parts = (side_by_side(part) for part in (every[:first], every[first:last], every[last:]))
    return Markup(
        '<details class="more steps"><summary>All {} matrices, step by step</summary>'
        "{}<details><summary>Weighted values, one a word</summary>{}</details>{}</details>"
    ).format(len(every), *parts)


def side_by_side(parts: list[Matrix]) -> Markup:
    style = "display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start"
    return Markup('<div style="{}">{}</div>').format(
        style, Markup("").join(html_of(matrix) for matrix in parts)
    )


def figures(settings: StepsSettings, tables: Tables) -> list[Figure]:
    if not tables.get("matrices"):
        return []
    words = labels_of([str(row["word"]) for row in tables["words"]])
    rows = [
        {"looks": words[r["row"] - 1], "looks at": words[r["column"] - 1], "weight": r["value"]}
        for r in tables["matrices"]
        if r["matrix"] == "A" and r["column"] <= r["row"]
    ]
    strongest = max(row["weight"] for row in rows if row["looks"] == words[-1])
    title = (
        f"Random weights still make a pattern: the last word puts {strongest:.2f} on one of {len(words)} "
        f"words, where even attention would put {1 / len(words):.2f}"
    )
    side = 44 * len(words)
    chart: alt.LayerChart = numbered_map(rows, words).properties(width=side, height=0.7 * side)
    return [
        Figure(
            name="softmax",
            chart=chart,
            title=title,
            subtitle="Softmax of one untrained causal head; a row a word, each row sums to 1.",
            characters=64,
            description="A triangle of numbered cells: a row a word that looks, a column a word looked at.",
            shows="The network has learned nothing: another seed, another pattern.",
            would_change="Another seed gives another pattern; the panel below shows several.",
            table=pl.DataFrame(rows),
        )
    ]
