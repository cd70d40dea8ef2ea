"""One run on several devices of one machine: a rank on each, by DDP, or by FSDP2 where a model does not fit.

Every rank draws the whole batch of a step, a pure function of seed and step, and trains on its part of the
sequences; gradients are averaged over ranks, so a step is that of one process but for rounding. Rank 0 alone
writes. DDP (arXiv 2006.15704) keeps all weights on every rank; FSDP2 (arXiv 2304.11277) a part of each, and
of its gradient and moments, and gathers a block's weights for as long as it is computed.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from isoloss.errors import InputError, RunError
from isoloss.models import Shape
from isoloss.models.looped import Passes
from isoloss.models.transformer import Vocabulary
from isoloss.training.device import find
from isoloss.training.objective import Losses, losses
from isoloss.training.optimizer import full
from isoloss.training.settings import Execution

BACKENDS = {"cpu": ("gloo", "gloo"), "cuda": ("nccl", "cpu:gloo,cuda:nccl")}
"""What carries tensors of a device, and all that is asked for: what ranks agree on stays on the CPU."""


@dataclass(frozen=True)
class Ranks:
    """This process among the ``count`` that train one run. ``shard``: by FSDP2, else by DDP."""

    number: int = 0
    count: int = 1
    shard: bool = False

    @property
    def leads(self) -> bool:
        """Is it the one that writes?"""
        return self.number == 0

    @property
    def method(self) -> str:
        return "" if self.count == 1 else f"{self.count} ranks, {'FSDP2' if self.shard else 'DDP'}"

    def part(self, sequences: int) -> slice:
        """Which of a batch's sequences are this rank's."""
        each = sequences // self.count
        return slice(self.number * each, (self.number + 1) * each)

    def mean(self, of_rank: Tensor) -> Tensor:
        """Mean over ranks, the same on each."""
        if self.count > 1:
            dist.all_reduce(of_rank)
            of_rank /= self.count
        return of_rank

    def any(self, here: bool) -> bool:
        """Is it so on any rank? All must ask."""
        if self.count == 1:
            return here
        somewhere = torch.tensor(float(here))
        dist.all_reduce(somewhere, dist.ReduceOp.MAX)
        return bool(somewhere)

    def lead(self, here: bool) -> bool:
        """Is it so on rank 0? All must ask."""
        return self.any(here and self.leads)


ALONE = Ranks()
"""One process that trains a run by itself."""


def joined(execution: Execution) -> Ranks:
    """The place of this process. Raises RunError where it is none of as many as ``execution`` wants."""
    if execution.ranks == 1:
        return ALONE
    count = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
    if count != execution.ranks:
        raise RunError(f"this is one of {count} processes, not of {execution.ranks}", mend="use isoloss run")
    return Ranks(dist.get_rank(), count, execution.shard)


@contextmanager
def group(execution: Execution) -> Iterator[Execution]:
    """Join the ranks that torchrun has started; ``execution`` with this one's own device."""
    device, number = find(execution.device), int(os.environ["LOCAL_RANK"])
    own = device.type
    if own == "cuda":
        own = f"cuda:{(device.index or 0) + number}"
        torch.cuda.set_device(own)
    # Of a class of outputs that nobody writes to, and of a name that versions before 2.13 do not have.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* view|`broadcast_buffers` is deprecated")
    dist.init_process_group(BACKENDS[device.type][1])
    try:
        yield execution.model_copy(update={"device": own})
    finally:
        dist.destroy_process_group()


def lost(error: Exception) -> bool:
    """Did a collective fail, as where another rank has died?"""
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in ("gloo", "nccl"))


def check_ranks(ranks: int, device: torch.device) -> None:
    """Raises InputError where this machine or this PyTorch cannot run so many ranks."""
    if ranks == 1:
        return
    where, alone = f"ranks = {ranks}", "or set ranks = 1"
    if device.type not in BACKENDS:
        raise InputError(f"several ranks do not run on {device.type}", where=where, mend=f"use cuda, {alone}")
    backend = BACKENDS[device.type][0]
    if not dist.is_available() or not getattr(dist, f"is_{backend}_available")():
        mend = f"install a PyTorch that has it, {alone}"
        raise InputError(f"this PyTorch has no {backend}, which ranks talk by", where=where, mend=mend)
    if device.type == "cuda" and (there := torch.cuda.device_count() - (device.index or 0)) < ranks:
        raise InputError(f"there are {there} GPUs for them", where=where, mend=f"set ranks = {max(1, there)}")


def check_execution(
    execution: Execution, shape: Shape, sequences: int, *, where: str, members: int = 1
) -> None:
    """Raises InputError for ranks, micro-batches or activation checkpointing that a run cannot have."""
    carry, dropout = bool(getattr(shape, "carry", False)), getattr(shape, "dropout", 0.0) > 0.0
    ranks, several, again = execution.ranks, execution.ranks > 1, execution.activation_checkpointing != "none"
    no_carry = "set carry = false, or micro_batches and ranks to 1"
    no_dropout = "set dropout = 0, or leave ranks and activation_checkpointing away"
    for wrong, what, mend in (
        (
            carry and execution.micro_batches > 1,
            "a carried state cannot be kept over micro-batches",
            no_carry,
        ),
        (carry and several, "a carried state cannot be kept over ranks", no_carry),
        (dropout and several, "ranks would all drop out the same", no_dropout),
        (dropout and again, "what is computed again would drop out anew", no_dropout),
        (sequences % ranks, f"{ranks} ranks cannot divide {sequences} sequences", "use a number that does"),
        (members > 1 and several, f"{members} members cannot share ranks", "give each a cohort of its own"),
        (execution.shard and not several, "one rank cannot share a model", "set ranks, or shard = false"),
    ):
        if wrong:
            raise InputError(what, where=where, mend=mend)


def blocks(model: nn.Module) -> list[nn.Module]:
    """The members of the innermost lists of modules: the layers of every family."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    held = [module for one in lists for module in one]
    return [m for m in held if not any(isinstance(inner, nn.ModuleList) for inner in m.modules())]


def checkpoint_activations(model: nn.Module, every: str, *, draws: bool = False) -> None:
    """Keep what goes into each piece, and compute its inside again backward (arXiv 1604.06174).

    ``every``: "block", or "loop" for a looped model's passes; models without loops take blocks for them.
    ``draws``: may they draw random numbers, which the second time must be the same? No graph holds that.
    """
    passes = [module for module in model.modules() if isinstance(module, Passes) and len(module)]
    for piece in (passes if every == "loop" else []) or blocks(model):
        # Of this object alone, and within the hooks that FSDP2 calls around it.
        vars(piece)["forward"] = partial(
            checkpoint, piece.forward, use_reentrant=False, preserve_rng_state=draws
        )


def shard(model: nn.Module, ranks: Ranks, device: torch.device) -> None:
    """Leave a part of every parameter here: FSDP2, a group a block, a vocabulary and the rest.

    Logits in pieces are formed after the model's forward pass, so the vocabulary gathers its own.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
    from torch.distributed.tensor import Shard

    def placement(parameter: nn.Parameter) -> Shard:
        """By the first axis that divides: the first of all is that of members, of length 1."""
        even = (axis for axis, size in enumerate(parameter.shape) if size % ranks.count == 0)
        return Shard(next(even, 0))

    mesh = init_device_mesh(device.type, (ranks.count,))
    vocabularies = [module for module in model.modules() if isinstance(module, Vocabulary)]
    for module in [*vocabularies, *blocks(model), model]:
        # The rest, too, is given back after the forward pass, as an evaluation has no backward pass to do it.
        fully_shard(module, mesh=mesh, reshard_after_forward=True, shard_placement_fn=placement)
    for vocabulary in vocabularies:
        for method in ("embed", "logits"):
            register_fsdp_forward_method(vocabulary, method)


class Averaged:
    """The forward pass of one rank by DDP; gradients are averaged with the last of its ``sequences``."""

    def __init__(self, sequences: int):
        self.sequences, self.seen = sequences, 0
        self.ddp: nn.parallel.DistributedDataParallel | None = None

    def __call__(self, model: nn.Module, x_KBT: Tensor, y_KBT: Tensor) -> Losses:
        if self.ddp is None:  # gloo has no complex numbers, which the buffers of rotary positions are
            self.ddp = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
        self.seen = (self.seen + x_KBT.shape[1]) % self.sequences
        with self.ddp.no_sync() if self.seen else nullcontext():
            return losses(self.ddp(x_KBT), y_KBT)


def gathered(arrays: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """The whole of what ranks hold parts of, on rank 0's CPU, one after the other; all must ask."""
    if not ranks.shard:
        return dict(arrays)
    whole = ((name, full(tensor)) for name, tensor in arrays.items())
    return {name: tensor.cpu() for name, tensor in whole if ranks.leads}


def parts(whole: Mapping[str, Tensor], like: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """This rank's part of each tensor, as it holds that of the same name in ``like``; no rank is asked.

    In the shape of ``like``: the moments that ranks saved have the axis of members, those of one process not.
    """
    shaped = {name: t.view(like[name].shape) if name in like else t for name, t in whole.items()}
    if not ranks.shard:
        return shaped
    from torch.distributed.tensor import DTensor, distribute_tensor

    def part(name: str, tensor: Tensor) -> Tensor:
        held = like.get(name)
        if not isinstance(held, DTensor):
            return tensor
        tensor = tensor.to(held.device)
        return distribute_tensor(tensor, held.device_mesh, held.placements, src_data_rank=None)

    return {name: part(name, tensor) for name, tensor in shaped.items()}
