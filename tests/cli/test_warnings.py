"""Warnings, as a reader meets them: a short sentence, and its detail a line below."""

import numpy as np
import polars as pl
import pytest
from brevity import wordy

from isoloss.cli.app import respond
from isoloss.sources.published import names

WIDE = ("--params", "7e11", "--tokens", "1.4e13")


def grid(noise=1e-3, **columns):
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(2e7, 2e9, 6), np.geomspace(5e8, 5e10, 6)))
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(noise * np.random.default_rng(0).normal(size=36))
    return pl.DataFrame({"params": N, "tokens": D, "loss": loss}).with_columns(**columns)


row = pl.int_range(pl.len())
TABLES = {
    "so far outside the runs expect": grid(),
    "earlier rows in every column. Equal are": pl.concat([grid(), grid()[:14], grid()[:14]]),
    "look diverged: are there losses": grid(loss=pl.when(row % 6 == 5).then(9.0).otherwise("loss")),
    "differ in family, dataset, context, n_layer and 3 more": pl.concat(
        grid(noise=1e-3 * k).with_columns(
            n_layer=float(k),
            n_head=float(k),
            d_ff=float(k),
            d_model=float(k),
            context=64.0 * k,
            family=pl.lit(f"f{k}"),
            dataset=pl.lit(f"d{k}"),
        )
        for k in (1, 2)
    ),
    "in recurrence too, which chinchilla does not read. Fit": grid(recurrence=1.0 + row % 4),
    "passed more than once over their data": grid(unique_tokens=pl.col("tokens") / (1 + row % 3)),
    "without embeddings: C = 6 N D leaves": grid().rename({"params": "params_non_embedding"}),
    "FLOPs mean 6 N D here, but the table": grid(
        flops=6 * pl.col("params") * pl.col("tokens") * (1 + row % 5)
    ),
    "lie far from the rest: without them": grid(
        loss=pl.col("loss") * pl.when(row.is_in([8, 21])).then(1.2).otherwise(1)
    ),
    "agree better than the law fits (p = ": pl.concat(
        grid(0.02).with_columns(loss=pl.col("loss") * (1 + 1e-5 * k), seed=k) for k in range(3)
    ),
}


@pytest.mark.parametrize("words", TABLES)
def test_each_warning_is_short_and_its_detail_stands_below(isoloss, here, words):
    """The fixture counts the words of all that is said; this sees to it that the longest are."""
    TABLES[words].write_csv("runs.csv")
    column = ("--column", "params=params_non_embedding") if "embeddings" in words else ()
    out = []
    code, said, err = isoloss(
        "fit", "runs.csv", "--law", "chinchilla", "-o", "fit.json", "--accept", "many-diverged", *column
    )
    assert code == 0, err
    out.append(said)
    for command in (
        ("predict", *WIDE),
        ("plan", "--flops", "1e25"),
        ("plan", "--flops", "1e24", "--unique-tokens", "1e9"),
    ):
        out.append(isoloss(command[0], "fit.json", *command[1:])[1])
    if "recurrence" not in words:
        out.append(isoloss("forecast", "runs.csv", *WIDE, "--accept", "many-diverged", *column)[1])
    assert words in "".join(out).replace("\n    ", " ")


@pytest.mark.parametrize("name", names())
def test_warnings_about_published_laws_are_short(isoloss, name):
    isoloss("plan", name, "--flops", "1e24", "--unique-tokens", "1e9")
    isoloss("plan", name, "--flops", "1e24")


def test_the_detail_is_a_line_of_its_own(capsys):
    respond(False, {}, [], ["short of runs: few. Of 8 rows 3 are left", "plain"])
    assert (
        capsys.readouterr().out == "warning: short of runs: few.\n    Of 8 rows 3 are left\nwarning: plain\n"
    )


def test_a_wordy_warning_is_found():
    long = (
        "flops 23.8 times outside the runs: this table's error rate adds 0.32% (0.1% for each factor e, from "
        "hiding runs of this table 6 times), and the law's interval is 1.2 times the forecast's"
    )
    assert wordy(long)
    assert wordy("word " * 21)
    assert not wordy("word " * 20)
    assert wordy("it is 1 at 2, 3 at 4")
    assert not wordy("it is 1 at 2. There are 3 of 4, and 5 of 6")
    assert not wordy("rows 1, 2, 3, 4, 5 and 9 more lie far out (params 7B, tokens 140B) at 2.1 (2.0 to 2.2)")


def test_the_fixture_refuses_a_wordy_warning(isoloss, here, monkeypatch):
    grid().write_csv("runs.csv")
    monkeypatch.setattr("isoloss.text.headline", lambda said: ("word " * 26, ""))
    with pytest.raises(AssertionError, match="word word"):
        isoloss("forecast", "runs.csv", *WIDE)
