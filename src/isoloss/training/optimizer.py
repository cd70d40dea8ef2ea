"""AdamW (arXiv 1711.05101) over a member axis: each member has its own learning rate and gradient norm.

    m <- b1 m + (1 - b1) g      v <- b2 v + (1 - b2) g^2
    w <- w - rate_k (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)

Every operation is element-wise along the members, so one launch serves them all and none sees another.
torch.optim.AdamW takes one rate per tensor, not one per row; a test holds this one against it.
"""

import torch
from torch import Tensor, nn

from isoloss.models.cohort import member_slices
from isoloss.training.settings import Recipe


class MemberAdamW:
    def __init__(self, model: nn.Module, members: int, recipe: Recipe):
        self.recipe, self.members, self.count = recipe, members, 0
        self.parameters = member_slices(model)
        self.m = [torch.zeros_like(p) for p, _ in self.parameters]
        self.v = [torch.zeros_like(p) for p, _ in self.parameters]
        names = [name for name, _ in model.named_parameters()]
        self.decays = [decays(name, p, slot) for name, (p, slot) in zip(names, self.parameters, strict=True)]

    @torch.no_grad()
    def gradient_norms(self) -> Tensor:
        """Norm of each member's gradient, (K,)."""
        device = self.parameters[0][0].device
        square_K = torch.zeros(self.members, device=device)
        for p, members in self.parameters:
            if p.grad is not None:
                square_K[members] += rows(p.grad, members).flatten(1).square().sum(1)
        return square_K.sqrt()

    @torch.no_grad()
    def step(self, rate_K: Tensor, norm_K: Tensor, alive_K: Tensor) -> None:
        """One update; gradients are first scaled to a norm of at most ``clip``. A dead member stays put."""
        recipe, self.count = self.recipe, self.count + 1
        scale_K = torch.where(alive_K, (recipe.clip / (norm_K + 1e-6)).clamp(max=1.0), 0.0)
        rate_K = torch.where(alive_K, rate_K, 0.0)
        first = 1.0 - recipe.beta1**self.count
        second = (1.0 - recipe.beta2**self.count) ** 0.5
        all_alive = bool(alive_K.all())
        for (p, members), m, v, decay in zip(self.parameters, self.m, self.v, self.decays, strict=True):
            if p.grad is None:
                continue
            w, m, v = rows(p, members), rows(m, members), rows(v, members)
            column = (-1, *[1] * (w.dim() - 1))
            scale, rate = scale_K[members].view(column), rate_K[members].view(column)
            g = rows(p.grad, members)
            # A dead member's gradient may be NaN, and NaN * 0 is NaN.
            g = g * scale if all_alive else torch.where(scale > 0, g, 0.0) * scale
            m.lerp_(g, 1.0 - recipe.beta1)
            v.mul_(recipe.beta2).addcmul_(g, g, value=1.0 - recipe.beta2)
            if decay:
                w.mul_(1.0 - rate * recipe.weight_decay)
            w.sub_(rate * (m / first) / (v.sqrt() / second + recipe.eps))

    def state(self) -> list[Tensor]:
        return [*self.m, *self.v]


def rows(tensor: Tensor, members: slice) -> Tensor:
    """The tensor with its member axis in front: its own, or one of length 1."""
    return tensor if members == slice(None) else tensor.unsqueeze(0)


def decays(name: str, parameter: nn.Parameter, members: slice) -> bool:
    """Matrices decay; embeddings, biases and other vectors do not."""
    axes = parameter.dim() - (1 if members == slice(None) else 0)
    tables = ("embedding", "vocabulary.tokens", "vocabulary.positions")
    return axes == 2 and not any(table in name for table in tables)
