"""AdamW (arXiv 1711.05101) for every member by itself: its own rate, gradient norm and clipping.

A stacked parameter (K, ...) is handed to torch's fused AdamW as K separate tensors, views of its rows, each
in its member's parameter group. AdamW acts element by element, so a member is updated as it would be alone,
and a member that has diverged is left out by having no gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from isoloss.models.cohort import member_parameters
from isoloss.training.settings import Recipe


@dataclass(frozen=True)
class Row:
    """One member's part of a parameter; ``weight`` shares the parameter's memory."""

    owner: nn.Parameter
    number: int | None
    weight: Tensor
    decays: bool

    def gradient(self) -> Tensor | None:
        if self.owner.grad is None or self.number is None:
            return self.owner.grad
        return self.owner.grad[self.number]


class MemberAdamW:
    def __init__(self, model: nn.Module, members: int, recipe: Recipe):
        self.clip = recipe.clip
        self.rows = [rows_of(model, k) for k in range(members)]
        groups = [
            {"params": [row.weight for row in rows if row.decays == decays], "weight_decay": decay}
            for rows in self.rows
            for decays, decay in ((True, recipe.weight_decay), (False, 0.0))
        ]
        self.adamw = torch.optim.AdamW(
            groups, lr=0.0, betas=(recipe.beta1, recipe.beta2), eps=recipe.eps, fused=True
        )
        for row in self.all_rows():
            # From the start, so that a checkpoint has the same entries whenever it is taken.
            self.adamw.state[row.weight] = {
                "step": torch.zeros((), device=row.weight.device),
                "exp_avg": torch.zeros_like(row.weight),
                "exp_avg_sq": torch.zeros_like(row.weight),
            }

    def all_rows(self) -> list[Row]:
        return [row for rows in self.rows for row in rows]

    def gradient_norms(self) -> Tensor:
        """Norm of each member's gradient, (K,); all ranks must ask."""
        for row in self.all_rows():
            row.weight.grad = row.gradient()
        gradients = [[row.weight.grad for row in rows if row.weight.grad is not None] for rows in self.rows]
        return torch.stack([full(get_total_norm(of_member)) for of_member in gradients])

    def step(self, rates: Sequence[float], norm_K: Tensor, alive: list[bool]) -> None:
        """One update with gradients scaled to a norm of at most ``clip``, after ``gradient_norms``."""
        for k, (rows, rate) in enumerate(zip(self.rows, rates, strict=True)):
            for group in self.adamw.param_groups[2 * k : 2 * k + 2]:
                group["lr"] = rate
            if alive[k]:
                clip_grads_with_norm_([row.weight for row in rows], self.clip, norm_K[k])
            else:
                for row in rows:
                    row.weight.grad = None
        self.adamw.step()

    def state(self) -> dict[str, Tensor]:
        """Everything that the next update reads, by name."""
        return {
            f"{number}.{name}": tensor
            for number, row in enumerate(self.all_rows())
            for name, tensor in self.adamw.state[row.weight].items()
        }

    def restore(self, saved: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(saved[name])


def rows_of(model: nn.Module, member: int) -> list[Row]:
    rows: list[Row] = []
    for name, parameter, number in member_parameters(model, member):
        axes = parameter.dim() - (number is not None)
        if is_part(parameter):
            number = None  # all of it is the one member's, and a row of a part would be a copy
        weight = parameter.data if number is None else parameter.data[number]
        rows.append(Row(parameter, number, weight, decays(name, axes)))
    return rows


def decays(name: str, axes: int) -> bool:
    """Matrices decay; embeddings, biases and other vectors do not."""
    tables = ("embedding", "vocabulary.tokens", "vocabulary.positions")
    return axes == 2 and not any(table in name for table in tables)


def is_part(tensor: Tensor) -> bool:
    """Is it a DTensor, of which this rank holds a part? Tells without importing torch.distributed."""
    return hasattr(tensor, "full_tensor")


def full(tensor: Tensor) -> Tensor:
    """The whole of a tensor of which ranks may hold parts; all must ask."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()
