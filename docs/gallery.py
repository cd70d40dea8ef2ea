"""Make a page with an example of every figure: `python docs/gallery.py OUT`.

Studies' figures are of the reference that comes with the package, a fit's of made-up runs of a Chinchilla law
with 0.5 % noise. A figure that the reference cannot give is named with the reason.
"""

import sys
from html import escape
from pathlib import Path

import numpy as np

import isoloss
from isoloss import files
from isoloss.errors import Refusal, attempt
from isoloss.figures import gallery, render
from isoloss.figures.figure import Figure
from isoloss.laws import Fit
from isoloss.laws import fit as fit_arrays
from isoloss.records import reference

BESIDE = ("chinchilla", "chinchilla-epoch")


def example() -> Fit:
    """Thirty runs at six budgets."""
    flops = np.repeat(np.geomspace(1e18, 1e21, 6), 5)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, 5), 6)
    tokens = flops / (6 * params)
    noise = np.random.default_rng(0).normal(0, 0.005, 30)
    loss = (1.8172 + 482 * params**-0.3478 + 2085 * tokens**-0.3658) * np.exp(noise)
    return fit_arrays("chinchilla", {"params": params, "tokens": tokens}, loss)


def examples() -> dict[str, tuple[str, Figure | Refusal]]:
    """Of every kind its source's name, and a figure or why there is none."""
    law, beside = example(), [isoloss.published(name) for name in BESIDE]
    studies = {name: isoloss.load(reference.folder(name)) for name in reference.names()[1:]}
    out: dict[str, tuple[str, Figure | Refusal]] = {}
    for kind in gallery.FIT:
        others = beside if kind == "tokens-per-param" else []
        made = attempt(lambda kind, others: gallery.fit_figures_of(law, kind, others)[0], kind, others)
        out[kind] = " ".join(["fit.json", *BESIDE]) if others else "fit.json", made
    for kind in gallery.STUDY:
        tries = {
            name: attempt(lambda study, kind: gallery.study_figures(study, kind)[0], study, kind)
            for name, study in studies.items()
        }
        drawn = {name: each for name, each in tries.items() if isinstance(each, Figure)}
        out[kind] = next(iter((drawn or tries).items()))
    return out


def page(figures: dict[str, tuple[str, Figure | Refusal]]) -> str:
    kinds = gallery.STUDY | gallery.FIT
    parts = []
    for kind, (source, figure) in figures.items():
        head = f"<h2>{kind}</h2><p>{escape(kinds[kind].shows)}</p>"
        line = f"<pre>isoloss plot {kind} {source}</pre>"
        shown = f"<p>{escape(figure.what)}</p>" if isinstance(figure, Refusal) else render.svg(figure)
        parts.append(f"{head}{line}{shown}")
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Figures</title>'
    return f"{head}{''.join(parts)}</html>\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    files.write_text(Path(sys.argv[1]) / "index.html", page(examples()))
