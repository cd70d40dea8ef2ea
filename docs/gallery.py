"""Make a page with an example of every figure: `python docs/gallery.py OUT`.

Studies' figures are of those that come with the package, a fit's of made-up runs of a Chinchilla law with
0.5 % noise. None that comes with it tells what a loop is worth: that figure is of made-up runs too.
"""

import sys
from collections.abc import Mapping
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

import isoloss
from isoloss import files
from isoloss.analysis.loop_worth import worth_of
from isoloss.analysis.study import StudyAnalysis, analyse
from isoloss.errors import Refusal, attempt
from isoloss.figures import gallery, loop_worth, render
from isoloss.figures.figure import Figure
from isoloss.laws import Fit
from isoloss.laws import fit as fit_arrays
from isoloss.records import reference

PUBLISHED = ("chinchilla", "chinchilla-epoch")


def example() -> Fit:
    """Thirty runs at six budgets."""
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 5)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, 5), 6)
    tokens = flops / (6 * params)
    noise = np.random.default_rng(0).normal(0, 0.005, 30)
    loss = (1.8172 + 482 * params**-0.3478 + 2085 * tokens**-0.3658) * np.exp(noise)
    return fit_arrays("chinchilla", {"params": params, "tokens": tokens}, loss)


def equal_depth() -> pl.DataFrame:
    """Made-up ends of runs that execute eight layers, four of them outside a loop worth r^0.46."""
    noise, rows = np.random.default_rng(0), []
    for width, loops, tokens in product((24, 36, 52, 80), (1, 2, 4), (1e6, 2e6, 4e6)):
        once, inside = 48 * width**2, 48 * width**2 / loops
        loss = 1.57 + 20 * (once + loops**0.46 * inside) ** -0.2 + 250 * tokens**-0.37
        sizes = {"n_layer": 4 + 4 // loops, "d_model": width, "recurrence": loops, "params": once + inside}
        executed = {"params_executed": once + loops * inside, "tokens": tokens}
        names = {"family": "looped", "curve": f"looped, T_m = {loops}", "seed": 0}
        rows.append(names | sizes | executed | {"loss": loss * np.exp(noise.normal(0, 0.002))})
    return pl.DataFrame(rows)


def examples(studies: Mapping[str, StudyAnalysis]) -> dict[str, tuple[str, Figure]]:
    """Of every kind its source's name and a figure; ``studies``: those that come with it, by name."""
    law, published = example(), [isoloss.published(name) for name in PUBLISHED]
    out: dict[str, tuple[str, Figure]] = {}
    for kind in gallery.FIT:
        others = published if kind == "tokens-per-param" else []
        source = " ".join(["fit.json", *PUBLISHED[: len(others)]])
        out[kind] = source, gallery.fit_figures_of(law, kind, others)[0]
    for kind in gallery.STUDY:
        own_first = sorted(studies.items(), key=lambda named: not kind.startswith(named[0].split("/")[-1]))
        for name, analysis in own_first:
            made = attempt(gallery.figures_of, analysis, kind)
            if not isinstance(made, Refusal):
                out[kind] = name, made[0]
                break
    return {"loop-worth": ("STUDY", loop_worth.figure(worth_of(equal_depth())))} | out


def page(figures: Mapping[str, tuple[str, Figure]]) -> str:
    kinds = gallery.STUDY | gallery.FIT
    parts = []
    for kind, (source, figure) in figures.items():
        head = f"<h2>{kind}</h2><p>{escape(kinds[kind].shows)}</p>"
        line = f"<pre>isoloss plot {kind} {source}</pre>"
        parts.append(f"{head}{line}{render.svg(figure)}")
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Figures</title>'
    return f"{head}{''.join(parts)}</html>\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    shipped = {name: analyse(isoloss.load(reference.folder(name))) for name in reference.names()[1:]}
    files.write_text(Path(sys.argv[1]) / "index.html", page(examples(shipped)))
