"""A plain family of a user, as text: what other families of the same file build on."""

PLAIN = '''
"""Families of a user."""

import os
import signal
import time
from pathlib import Path

import torch

from isoloss.models import Family, Shape, register
from isoloss.units import Count


class WidthShape(Shape):
    d_model: int


class Bigram(torch.nn.Module):
    def __init__(self, shape, vocab, context):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, shape.d_model)
        self.mix = torch.nn.Linear(shape.d_model, shape.d_model)
        self.head = torch.nn.Linear(shape.d_model, vocab)

    def forward(self, x_BT):
        return self.head(self.mix(self.embedding(x_BT)))
'''
