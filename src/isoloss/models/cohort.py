"""K members as one module: stacked where the family allows it, one after the other where it does not."""

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from isoloss.models.layers import Dropout, Embedding, Linear
from isoloss.models.output import Output
from isoloss.models.registry import Family, users_code
from isoloss.models.shape import Shape
from isoloss.models.transformer import Vocabulary
from isoloss.units import Count


@runtime_checkable
class Carrying(Protocol):
    """Has recurrent state that goes on from window to window: (h, c) by layer, None at the start."""

    state: list[tuple[Tensor, Tensor]] | None


class OneByOne(nn.Module):
    """Members that each map (B, T) to (B, T, V), run in turn behind the cohort's interface."""

    def __init__(self, members: list[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x_KBT: Tensor) -> Output:
        logits = [member(x_BT) for member, x_BT in zip(self.members, x_KBT, strict=True)]
        return Output([torch.stack(logits)])


def build_cohort(family: Family, shape: Shape, vocab: int, context: int, seeds: list[int]) -> nn.Module:
    """K = len(seeds) members; member k starts from the weights that seed k alone would give it."""
    members = []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(seed)
            members.append(family.build(shape, vocab, context))
    if not family.stacked:
        return OneByOne(members)
    first, *others = members
    with torch.no_grad():
        for name, parameter in first.named_parameters():
            rows = [dict(other.named_parameters())[name] for other in others]
            parameter.data = torch.cat([parameter, *rows])
    return first


def member_parameters(model: nn.Module, k: int) -> Iterator[tuple[str, nn.Parameter, int | None]]:
    """Name, parameter and member k's row of it, None where all of it is the member's.

    Named as in the cohort of one that ``load_state_dict`` takes them to.
    """
    if isinstance(model, OneByOne):
        for name, parameter in model.members[k].named_parameters():
            yield f"members.0.{name}", parameter, None
    else:
        for name, parameter in model.named_parameters():
            yield name, parameter, k


def member_weights(model: nn.Module, k: int) -> dict[str, Tensor]:
    """Member k's parameters, with a member axis of length 1 where they are stacked."""
    return {
        name: parameter.detach() if row is None else parameter.detach()[row : row + 1]
        for name, parameter, row in member_parameters(model, k)
    }


def set_generators(model: nn.Module, generators: list[torch.Generator]) -> None:
    """Give every dropout its members' generators."""
    if isinstance(model, OneByOne):
        for member, generator in zip(model.members, generators, strict=True):
            set_generators(member, [generator])
        return
    for module in model.modules():
        if isinstance(module, Dropout):
            module.generators = generators


def set_pieces(model: nn.Module, pieces: int) -> None:
    """In how many pieces a shipped stacked family leaves its logits to be formed; others give them whole."""
    for module in model.modules():
        if isinstance(module, Vocabulary):
            module.pieces = pieces


def carriers(model: nn.Module) -> list[tuple[str, Carrying]]:
    modules: Iterable[tuple[str, object]] = model.named_modules()
    return [(name, module) for name, module in modules if isinstance(module, Carrying)]


def carried_state(model: nn.Module) -> dict[str, Tensor]:
    """Recurrent state that goes on from window to window, by name; empty unless a family carries one."""
    tensors: dict[str, Tensor] = {}
    for name, module in carriers(model):
        for layer, pair in enumerate(module.state or []):
            tensors[f"{name}|{layer}|h"], tensors[f"{name}|{layer}|c"] = pair
    return tensors


def restore_carried_state(model: nn.Module, saved: dict[str, Tensor]) -> None:
    for name, module in carriers(model):
        pairs: list[tuple[Tensor, Tensor]] = []
        while (key := f"{name}|{len(pairs)}|") + "h" in saved:
            pairs.append((saved[key + "h"], saved[key + "c"]))
        module.state = pairs or None


def count(family: Family, shape: Shape, vocab: int, context: int) -> Count:
    """By the family's formula, or on the meta device by PyTorch's own counter where it gives none.

    Without a formula, embedding tables and linear layers with ``vocab`` outputs count as embedding, matmuls
    are not told apart by origin, and attention is the full square. Raises InputError where a user's family
    raises.
    """
    mend = "mend that line; it ran on the meta device to count parameters, unless Family has a count"
    with users_code(family, mend):
        return family.count(shape, vocab, context) if family.count else counted(family, shape, vocab, context)


def counted(family: Family, shape: Shape, vocab: int, context: int) -> Count:
    with torch.device("meta"):
        model = family.build(shape, vocab, context)
        total = sum(p.numel() for p in model.parameters())
        modules = [module for module in model.modules() if is_vocabulary(module, vocab)]
        ends = {id(p): p for module in modules for p in module.parameters()}
        tokens = torch.zeros((1, 1, context) if family.stacked else (1, context), dtype=torch.long)
        # The fused attention kernels are opaque to the counter.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(tokens)
    embedding = sum(p.numel() for p in ends.values())
    return Count(
        params=total - embedding,
        params_executed=total - embedding,
        embedding=embedding,
        matmul_flops=counter.get_total_flops() / context,
        attention_flops=0.0,
        head_flops=0.0,
    )


def is_vocabulary(module: nn.Module, vocab: int) -> bool:
    if isinstance(module, nn.Linear):
        return module.out_features == vocab
    if isinstance(module, Linear):
        return module.weight.shape[-1] == vocab
    return isinstance(module, nn.Embedding | Embedding)
