"""The contestants: a causal Transformer, and LSTMs of about as many parameters that start differently.

The Transformer has rotary positions and a head of its own, the LSTM one layer and a tied head: the forms of
this package that learn these tasks soonest. Parameters are counted in full, tables and heads included.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from isoloss.models import count, family, shape_of
from isoloss.models.lstm import initialise, initialise_chrono
from isoloss.teach.amnesia.names import ATTENTION, BIAS_1, BIAS_3, CHRONO, DEFAULT
from isoloss.teach.learner import Side
from isoloss.teach.tasks import LearningTask

BLOCKS = {"n_layer": 2, "n_head": 2, "positions": "rotary", "tied": False}
WIDEST_LSTM = 512


def params_of(side: Side, task: LearningTask) -> int:
    return count(
        family(side.family), shape_of(side.family, side.shape), task.vocab, task.context
    ).params_total


def attention(width: int) -> Side:
    return Side(ATTENTION, "transformer", BLOCKS | {"d_model": width})


def lstm(name: str, task: LearningTask, width: int) -> Side:
    """The LSTM whose parameters are nearest to those of ``attention(width)``, started as ``name`` says."""
    wanted = params_of(attention(width), task)
    sizes = [Side(name, "lstm", {"n_layer": 1, "d_model": d}) for d in range(4, WIDEST_LSTM)]
    nearest = min(sizes, key=lambda side: abs(params_of(side, task) - wanted))
    return Side(name, "lstm", nearest.shape, partial(start_layers, start=STARTS[name](task.context)))


STARTS: dict[str, Callable[[int], Callable[[nn.LSTM], Any]]] = {
    DEFAULT: lambda longest: nn.LSTM.reset_parameters,
    BIAS_1: lambda longest: partial(initialise, forget_bias=1.0),
    BIAS_3: lambda longest: partial(initialise, forget_bias=3.0),
    CHRONO: lambda longest: partial(initialise_chrono, longest=longest),
}
"""How each LSTM's layer starts, given the longest lag of the task."""


def start_layers(member: nn.Module, start: Callable[[nn.LSTM], Any]) -> None:
    with torch.no_grad():
        for layer in member.modules():
            if isinstance(layer, nn.LSTM):
                start(layer)
