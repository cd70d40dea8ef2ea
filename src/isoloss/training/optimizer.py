"""AdamW (arXiv 1711.05101) for every member by itself: its own rate, gradient norm and clipping.

A stacked parameter (K, ...) is handed to torch's fused AdamW as K separate tensors, views of its rows, each
with its member's rate. AdamW acts element by element, so a member is updated as it would be alone. Whether a
member is updated stays on the device, as what the kernel takes for an overflow: no number is waited for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

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

    def has_gradient(self) -> bool:
        return self.owner.grad is not None


@dataclass(frozen=True)
class Moments:
    """What AdamW keeps of a row: updates made, and running means of the gradient and of its square."""

    step: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "Moments":
        step = torch.zeros((), device=weight.device)
        return cls(step, torch.zeros_like(weight), torch.zeros_like(weight))


class MemberAdamW:
    def __init__(self, model: nn.Module, members: int, recipe: Recipe):
        self.recipe = recipe
        self.rows = [rows_of(model, k) for k in range(members)]
        # From the start, so that a checkpoint has the same entries whenever it is taken.
        self.moments = [[Moments.of(row.weight) for row in rows] for rows in self.rows]

    def gradient_norms(self) -> Tensor:
        """Norm of each member's gradient, (K,); all ranks must ask."""
        return torch.stack([full(get_total_norm(gradients(rows))) for rows in self.rows])

    def step(self, rates: Sequence[float] | Tensor, norm_K: Tensor, alive_K: Tensor) -> None:
        """One update with gradients scaled to a norm of at most ``clip``; ``norm_K``: ``gradient_norms``.

        A member that is not alive is left as it is. ``rates``: numbers, or on a GPU float32 there.
        """
        scale_K = (self.recipe.clip / (norm_K + 1e-6)).clamp(max=1.0)
        dead_K = (~alive_K).float()
        for k, rows in enumerate(self.rows):
            torch._foreach_mul_(gradients(rows), scale_K[k])
            if alive_K.device.type == "mps" and not alive_K[k]:  # its kernel does not look for overflows
                continue
            for decays, decay in ((True, self.recipe.weight_decay), (False, 0.0)):
                self.update(k, decays, rates[k], decay, dead_K[k])

    def update(self, k: int, decays: bool, rate: float | Tensor, decay: float, dead: Tensor) -> None:
        pairs = zip(self.rows[k], self.moments[k], strict=True)
        moved = [(row, moments) for row, moments in pairs if row.decays == decays and row.has_gradient()]
        if not moved:
            return
        steps = [moments.step for _, moments in moved]
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            [row.weight for row, _ in moved],
            gradients(row for row, _ in moved),
            [moments.exp_avg for _, moments in moved],
            [moments.exp_avg_sq for _, moments in moved],
            [],
            steps,
            lr=rate,
            beta1=self.recipe.beta1,
            beta2=self.recipe.beta2,
            weight_decay=decay,
            eps=self.recipe.eps,
            amsgrad=False,
            maximize=False,
            found_inf=dead,
        )
        torch._foreach_sub_(steps, [dead] * len(steps))

    def state(self) -> dict[str, Tensor]:
        """Everything that the next update reads, by name."""
        every = (moments for of_member in self.moments for moments in of_member)
        return {
            f"{number}.{name}": tensor
            for number, moments in enumerate(every)
            for name, tensor in vars(moments).items()
        }

    def restore(self, saved: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(saved[name])


def gradients(rows: Iterable[Row]) -> list[Tensor]:
    """Of those rows that have one: a user's family may leave weights unused."""
    return [gradient for gradient in map(Row.gradient, rows) if gradient is not None]


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
