"""What every family gives back: the one interface between a model and the rest."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Unformed(NamedTuple):
    """Logits that shall not all be held at once: ``head`` makes those of some positions of ``h_KBTD``."""

    h_KBTD: Tensor
    head: Callable[[Tensor], Tensor]
    pieces: int


class Output(NamedTuple):
    """``logits``: one (K, B, T, V) tensor per exit, the last one being the model's full depth.

    ``exit_log_p``: log probability of leaving at each exit, (K, B, T) each, or None for one exit without a
    gate. ``entropy_weight``: beta in the objective  sum_t p_t CE_t - beta H(p). ``unformed``: in place of
    ``logits`` where a trainer asked for their losses in pieces.
    """

    logits: list[Tensor]
    exit_log_p: list[Tensor] | None = None
    entropy_weight: float = 0.0
    unformed: list[Unformed] | None = None
