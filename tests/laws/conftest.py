"""Worlds whose law is known: for each form a design that determines it, its parameters and a point beyond."""

from dataclasses import dataclass

import numpy as np
import pytest

from isoloss.laws import form

# Iso-depth grid of arXiv 2604.21106, table 6: compute budget -> widths in units of 64.
ISO_DEPTH = {
    4.64e17: (6, 8, 10, 12),
    1e18: (6, 8, 10, 12, 14),
    2.15e18: (8, 10, 12, 14, 16),
    4.64e18: (10, 12, 14, 16, 18, 20),
    1e19: (12, 16, 18, 20, 24),
    2.15e19: (18, 24, 28, 34),
}
CONTEXT, VOCABULARY = 2048, 32_064


@dataclass(frozen=True)
class World:
    law: str
    params: dict[str, float]
    inputs: dict[str, np.ndarray]
    far: dict[str, float]
    sigma: float

    def losses(self):
        return self.at(self.inputs)

    def at(self, inputs):
        law = form(self.law)
        return law.loss({**law.fixed, **self.params}, inputs)

    def noisy(self, seed, sigma=None):
        """Losses with normal noise of standard deviation ``sigma`` of each loss."""
        losses = self.losses()
        noise = np.random.default_rng(seed).standard_normal(len(losses))
        return losses * (1 + (self.sigma if sigma is None else sigma) * noise)


def iso_depth():
    """The 116 runs of the published grid: 2 + 2 layers outside the loop, 16 / r inside, r in 1, 2, 4, 8.

    A layer has 12 d^2 parameters, the injection of a looped model 2 d^2. Tokens are what the budget buys:
    D = C / (6 N_executed + 240 s d + 6 d V), attention counted as the full square over 20 layers.
    """
    rows = []
    for budget, widths in ISO_DEPTH.items():
        for width in 64 * np.array(widths):
            for r in (1, 2, 4, 8):
                once, inside = 48.0 * width**2, (192.0 / r + 2.0 * (r > 1)) * width**2
                per_token = 6 * (once + r * inside) + 240 * CONTEXT * width + 6 * width * VOCABULARY
                rows.append((once, inside, r, budget / per_token))
    names = ("params_once", "params_recurrent", "recurrence", "tokens")
    return dict(zip(names, np.array(rows).T, strict=True))


def _grid(**axes):
    columns = (column.ravel() for column in np.meshgrid(*axes.values(), indexing="ij"))
    return dict(zip(axes, columns, strict=True))


def _repeated():
    x = _grid(params=np.geomspace(1e7, 3e9, 5), unique_tokens=[1e8, 3e9], epochs=[1, 2, 4, 8, 16, 40])
    return {
        "params": x["params"],
        "tokens": x["unique_tokens"] * x["epochs"],
        "unique_tokens": x["unique_tokens"],
    }


_N, _D = np.geomspace(5e7, 2e9, 6), np.geomspace(1e9, 4e10, 6)
_LOOPS = _grid(
    params=np.geomspace(5e7, 1.4e9, 4), tokens=np.geomspace(2e8, 2e10, 5), recurrence=[1.0, 2, 4, 8]
)
_OURO = {"E": 1.6, "A": 120.0, "alpha": 0.3, "B": 900.0, "beta": 0.36, "C": 0.3, "gamma": 0.9}
_HOFFMANN = {"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37}
_FAR_ND = {"params": 2e10, "tokens": 4e11}
_FAR_LOOP = {"params": 1.4e10, "tokens": 2e11, "recurrence": 8.0}

_WORLDS = [
    World("power", {"Nc": 8.8e13, "a": 0.076}, {"params": np.geomspace(1e6, 1e8, 9)}, {"params": 1e9}, 3e-3),
    World(
        "power-floor",
        {"E": 1.8, "A": 400.0, "a": 0.35},
        {"params": np.geomspace(1e6, 1e8, 9)},
        {"params": 1e9},
        3e-3,
    ),
    World(
        "kaplan-nd",
        {"Nc": 6.4e13, "aN": 0.076, "Dc": 1.8e13, "aD": 0.103},
        _grid(params=np.geomspace(1e6, 1e9, 6), tokens=np.geomspace(2e7, 2e10, 6)),
        {"params": 1e10, "tokens": 2e11},
        3e-3,
    ),
    World(
        "kaplan-ns",
        {"Nc": 6.5e13, "aN": 0.077, "Sc": 2.1e3, "aS": 0.76, "B_star": 2.1e8, "aB": 0.21},
        _grid(
            params=np.geomspace(1e6, 1e9, 4),
            steps=np.geomspace(3e3, 2e5, 4),
            batch_tokens=np.geomspace(3e4, 3e6, 3),
        ),
        {"params": 1e10, "steps": 2e6, "batch_tokens": 1e6},
        1e-3,
    ),
    World("chinchilla", _HOFFMANN, _grid(params=_N, tokens=_D), _FAR_ND, 3e-3),
    World(
        "outer-exponent",
        {"E": 1.5, "A": 4e3, "alpha": 0.5, "B": 3e4, "beta": 0.55, "gamma": 0.6},
        _grid(params=np.geomspace(1e6, 5e9, 8), tokens=np.geomspace(1e8, 1e11, 8)),
        {"params": 5e10, "tokens": 1e12},
        1e-3,
    ),
    World(
        "data-constrained",
        {"E": 1.87, "A": 521.0, "alpha": 0.353, "B": 1488.0, "beta": 0.353, "R_D": 15.4, "R_N": 5.3},
        _repeated(),
        {"params": 3e10, "tokens": 4e12, "unique_tokens": 1e11},
        1e-3,
    ),
    World(
        "pearce-song",
        {"E": 1.8, "A": 480.0, "alpha": 0.35, "B": 2000.0, "beta": 0.37},
        _grid(params=np.geomspace(1e5, 1e9, 6), tokens=_D),
        _FAR_ND,
        3e-3,
    ),
    World(
        "optimal-params", {"G": 0.1, "a": 0.5}, {"flops": np.geomspace(1e17, 1e20, 8)}, {"flops": 1e21}, 5e-2
    ),
    World("loop-total", _OURO, _LOOPS, _FAR_LOOP, 2e-3),
    World("loop-step", _OURO, _LOOPS, _FAR_LOOP, 2e-3),
    World(
        "loop-equivalence",
        {"E": 1.57, "A": 20.0, "alpha": 0.199, "B": 1600.0, "beta": 0.369, "phi": 0.459},
        iso_depth(),
        {"params_once": 5.6e8, "params_recurrent": 5.6e8, "recurrence": 4.0, "tokens": 7.8e10},
        4e-3,
    ),
    World(
        "context",
        {"a": 3.4, "b": 4.0, "p": 0.56},
        {"position": np.unique(np.geomspace(1, 1024, 24).round())},
        {"position": 10240.0},
        3e-3,
    ),
    World(
        "context-params",
        {"E": 1.2, "A": 20.0, "alpha": 0.2, "B": 3.0, "eta": -0.03, "p": 0.55},
        _grid(params=np.geomspace(1e5, 1e8, 5), position=np.unique(np.geomspace(1, 1024, 12).round())),
        {"params": 1e9, "position": 10240.0},
        2e-3,
    ),
    World(
        "shape",
        {"least": 3.1, "best": 80.0, "curvature": 0.01},
        {"ratio": np.geomspace(5, 2000, 9)},
        {"ratio": 4000.0},
        1e-3,
    ),
    World(
        "width-depth",
        {"E": 1.5, "A": 40.0, "a": 0.6, "B": 1.2, "b": 0.7, "C": 900.0, "c": 0.36},
        _grid(
            d_model=np.geomspace(128, 4096, 5), n_layer=[2.0, 4, 8, 16, 32], tokens=np.geomspace(5e8, 5e10, 5)
        ),
        {"d_model": 8192.0, "n_layer": 64.0, "tokens": 5e11},
        2e-3,
    ),
]


@pytest.fixture(scope="session")
def worlds():
    return {world.law: world for world in _WORLDS}
