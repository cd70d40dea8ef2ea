"""What every family gives back: the one interface between a model and the rest."""

from typing import NamedTuple

from torch import Tensor


class Output(NamedTuple):
    """``logits``: one (K, B, T, V) tensor per exit, the last one being the model's full depth.

    ``exit_log_p``: log probability of leaving at each exit, (K, B, T) each, or None for one exit without a
    gate. ``entropy_weight``: beta in the objective  sum_t p_t CE_t - beta H(p).
    """

    logits: list[Tensor]
    exit_log_p: list[Tensor] | None = None
    entropy_weight: float = 0.0
