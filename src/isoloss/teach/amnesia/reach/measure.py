"""Measure: |d out_T / d x_(T-k)| relative to k = 0, in layers that were never trained.

x are letters of a random string as vectors of root mean square 1, out_T is the layer's last output, and the
norm is that of u^T d out_T / d x_(T-k) with one random direction u a string. In float64: the smallest values
are far below what float32 holds.
"""

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from isoloss.distributions import t_quantile
from isoloss.models import shape_of
from isoloss.models.layers import rms_norm
from isoloss.models.lstm import initialise, initialise_chrono
from isoloss.models.transformer import Block, BlockShape
from isoloss.stats import LEVEL
from isoloss.teach.amnesia.names import BIAS_1, BIAS_3, BLOCK, CHRONO, DEFAULT, TANH
from isoloss.teach.amnesia.settings import ReachSettings
from isoloss.teach.panel import Report
from isoloss.teach.result import Row, Tables

LETTERS = 26
SMALLEST = 1e-300

Layer = Callable[[Tensor], Tensor]
"""Vectors (B, T, D) to outputs (B, T, D)."""


def measure(settings: ReachSettings, report: Report) -> Tables:
    rows: list[Row] = []
    done = 0
    for side, build in SIDES.items():
        ratios = []
        for seed in settings.seed_numbers:
            ratios.append(reach(build, settings, seed))
            done += 1
            report(done / (len(SIDES) * settings.seeds), f"{side}, seed {seed}")
        rows.extend(summary(side, np.stack(ratios), settings.strings))
        report(done / (len(SIDES) * settings.seeds), side, {"reach": list(rows)})
    return {"reach": rows}


def reach(build: Callable[[int, int], Layer], settings: ReachSettings, seed: int) -> np.ndarray:
    """Mean gradient norm over strings by distance, relative to the last token's, (T,)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = build(settings.width, settings.length)
        table_VD = torch.randn(LETTERS, settings.width, dtype=torch.float64)
        letters_BT = torch.randint(0, LETTERS, (settings.strings, settings.length))
        u_BD = torch.randn(settings.strings, settings.width, dtype=torch.float64)
    x_BTD = rms_norm(table_VD[letters_BT]).requires_grad_()
    (gradient_BTD,) = torch.autograd.grad((layer(x_BTD)[:, -1] * u_BD).sum(), x_BTD)
    norm_T = gradient_BTD.norm(dim=-1).mean(0).flip(0)
    return (norm_T / norm_T[0]).numpy()


def summary(side: str, ratio_ST: np.ndarray, strings: int) -> list[Row]:
    """Geometric mean over seeds by distance, with a t interval of the mean of log10."""
    log_ST = np.log10(np.maximum(ratio_ST, SMALLEST))
    seeds = len(log_ST)
    mean_T = log_ST.mean(0)
    spread_T = log_ST.std(0, ddof=1) / math.sqrt(seeds) if seeds > 1 else np.zeros_like(mean_T)
    reach = t_quantile(LEVEL, seeds - 1) if seeds > 1 else 0.0
    return [
        {
            "side": side,
            "k": k,
            "value": float(10**mean),
            "low": float(10 ** (mean - reach * se)),
            "high": float(10 ** (mean + reach * se)),
            "n": strings,
            "seeds": seeds,
            "log10": float(mean),
            "log10_se": float(se),
        }
        for k, (mean, se) in enumerate(zip(mean_T, spread_T, strict=True))
    ]


def tanh_rnn(width: int, length: int) -> Layer:
    layer = nn.RNN(width, width, batch_first=True).double()
    return lambda x_BTD: layer(x_BTD)[0]


def lstm(start: Callable[[nn.LSTM, int], None]) -> Callable[[int, int], Layer]:
    def build(width: int, length: int) -> Layer:
        layer = nn.LSTM(width, width, batch_first=True)
        with torch.no_grad():
            start(layer, length)
        layer.double()
        return lambda x_BTD: layer(x_BTD)[0]

    return build


def block(width: int, length: int) -> Layer:
    shape = shape_of("transformer", {"n_layer": 1, "n_head": 2, "d_model": width})
    module = Block(cast(BlockShape, shape), length, depth=1).double()
    return lambda x_BTD: module(x_BTD[None])[0]


SIDES: dict[str, Callable[[int, int], Layer]] = {
    TANH: tanh_rnn,
    DEFAULT: lstm(lambda layer, length: layer.reset_parameters()),
    BIAS_1: lstm(lambda layer, length: initialise(layer, forget_bias=1.0)),
    BIAS_3: lstm(lambda layer, length: initialise(layer, forget_bias=3.0)),
    CHRONO: lstm(initialise_chrono),
    BLOCK: block,
}
