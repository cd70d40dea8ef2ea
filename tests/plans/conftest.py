"""Fits with given constants: what a law says to do must not depend on how it was fitted."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from simulated_runs import asked, runs_of

from isoloss.laws import fit, form

PUBLISHED = {
    "hoffmann-rounded": {"E": 1.69, "A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28},
    "hoffmann": {
        "E": np.exp(0.5267228),
        "A": np.exp(6.0073404),
        "alpha": 0.33917084,
        "B": np.exp(6.0179186),
        "beta": 0.2849083,
    },
    "besiroglu": {"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658},
}


def isoflop_grid(budgets=8, sizes=6):
    """N and D of runs at budgets from 1e18 to 1e21 FLOPs around 20 tokens a parameter."""
    flops = np.repeat(np.geomspace(1e18, 1e21, budgets), sizes)
    params = np.sqrt(flops / 120) * np.tile(np.geomspace(0.25, 4, sizes), budgets)
    return params, flops / (6 * params)


def chinchilla_loss(params, tokens, p):
    return p["E"] + p["A"] * params ** -p["alpha"] + p["B"] * tokens ** -p["beta"]


@cache
def _runs():
    params, tokens = isoflop_grid()
    noise = 0.005 * np.random.default_rng(0).standard_normal(len(params))
    return params, tokens, chinchilla_loss(params, tokens, PUBLISHED["besiroglu"]) + noise


@cache
def _template():
    params, tokens, loss = _runs()
    return fit("chinchilla", {"params": params, "tokens": tokens}, loss)


@pytest.fixture
def runs():
    """N, D and loss of 48 simulated runs of Besiroglu's constants with noise 0.005."""
    return _runs()


@pytest.fixture(scope="session")
def simulated():
    """N, D and loss of 40 runs about a law, for forecasts."""
    return runs_of()


@pytest.fixture(scope="session")
def plain(simulated):
    """Their forecast."""
    return asked(*simulated)


@pytest.fixture(scope="session")
def fitted():
    """Chinchilla's law fitted to ``runs``."""
    return _template()


@pytest.fixture
def known():
    """``known(constants or name, law)``: a fit of those constants without data or covariance."""

    def make(params, law="chinchilla"):
        params = PUBLISHED.get(params, params) if isinstance(params, str) else params
        base, named = _template(), form(law)
        params = named.fixed | params
        theta = [named.coordinate(name, float(params[name])) for name in named.parameters]
        return replace(
            base,
            law=law,
            params={name: float(params[name]) for name in named.parameters},
            standard_errors=dict.fromkeys(named.parameters),
            intervals=dict.fromkeys(named.parameters),
            theta=tuple(theta),
            fixed=dict(named.fixed),
            data=None,
            covariance=None,
            units=replace(base.units, inputs=dict.fromkeys(named.inputs, 1.0), loss=1.0),
            ranges=dict.fromkeys(named.inputs, (1e6, 1e9)) | {"tokens": (1e9, 1e11)},
            source={},
        )

    return make
