"""Everything that changes during training, in one place: what a checkpoint must hold, no more and no less."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from isoloss.models.cohort import carried_state, restore_carried_state
from isoloss.training.evaluation import PositionSums
from isoloss.training.optimizer import MemberAdamW


@dataclass(frozen=True)
class Measured:
    """One evaluation of the cohort: sums per member, None for a member that had diverged.

    ``sliding_KGN``: sums by member, group of positions and block (``training.sliding``), where it was taken.
    """

    step: int
    branch: int
    sums: list[PositionSums | None]
    sliding_KGN: np.ndarray | None = None


@dataclass
class State:
    """``segment``, ``step``: where the schedule stands. ``done``: optimiser updates so far.

    ``curve_UKP``: training losses by update, member and part; NaN where there is none.
    ``diverged``: per member the update after which its loss or gradient was not finite.
    ``trunk``: the trunk's tensors while a branch is being trained from them.
    """

    model: nn.Module
    optimizer: MemberAdamW
    generators: list[torch.Generator]
    curve_UKP: np.ndarray
    diverged: list[int | None]
    segment: int = 0
    step: int = 0
    done: int = 0
    measured: list[Measured] = field(default_factory=list)
    trunk: dict[str, Tensor] | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def alive_K(self) -> Tensor:
        return torch.tensor([step is None for step in self.diverged])

    def advance(self, means_KP: np.ndarray) -> None:
        """Note the losses of an update just made; those of members that have diverged are not kept."""
        self.curve_UKP[self.done] = np.where(self.alive_K.numpy()[:, None], means_KP, np.nan)
        self.step, self.done = self.step + 1, self.done + 1

    def has_measured(self, step: int, branch: int) -> bool:
        return any(m.step == step and m.branch == branch for m in self.measured)


def tensors(state: State) -> dict[str, Tensor]:
    """Weights, optimiser moments and count, generators, recurrent state: all that an update reads."""
    model = {f"model.{name}": p.detach() for name, p in state.model.named_parameters()}
    optimizer = {f"optimizer.{name}": t for name, t in state.optimizer.state().items()}
    generators = {f"generator.{k}": g.get_state() for k, g in enumerate(state.generators)}
    carried = {f"carried.{name}": t for name, t in carried_state(state.model).items()}
    return model | optimizer | generators | carried


def copies(saved: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in saved.items()}


@torch.no_grad()
def put_back(state: State, saved: dict[str, Tensor]) -> None:
    for name, p in state.model.named_parameters():
        p.copy_(saved[f"model.{name}"])
    state.optimizer.restore(beginning_with("optimizer.", saved))
    for k, generator in enumerate(state.generators):
        generator.set_state(saved[f"generator.{k}"].cpu())
    device = next(state.model.parameters()).device
    carried = beginning_with("carried.", saved)
    restore_carried_state(state.model, {name: tensor.to(device) for name, tensor in carried.items()})


def beginning_with(prefix: str, saved: dict[str, Tensor]) -> dict[str, Tensor]:
    """The entries whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): t for name, t in saved.items() if name.startswith(prefix)}
