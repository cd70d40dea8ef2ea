"""Runs about a law of N and D, and their forecast."""

import numpy as np

from isoloss.plans.forecast import forecast

TRUTH = {"E": 1.8, "A": 0.5, "alpha": 0.35, "B": 0.6, "beta": 0.37}


def loss_at(N, D):
    p = TRUTH
    return p["E"] + p["A"] * (N / 1e8) ** -p["alpha"] + p["B"] * (D / 1e10) ** -p["beta"]


def runs_of(count=40, noise=0.003, seed=0, bend=0.0):
    rng = np.random.default_rng(seed)
    N, D = 10 ** rng.uniform(7, 9, count), 10 ** rng.uniform(9, 11, count)
    bent = 1 + bend * np.sin(np.log(N * D) / 3)
    return N, D, loss_at(N, D) * bent * np.exp(noise * rng.standard_normal(count))


AT = {"params": [1e8, 5e9], "tokens": [1e10, 4e11]}


def asked(N, D, loss, at=AT, **options):
    return forecast({"params": N, "tokens": D}, loss, at, **options)
