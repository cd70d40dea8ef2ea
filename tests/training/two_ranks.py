"""What each of two processes does in the tests of training on several ranks; they import this file."""

from dataclasses import replace

import torch

from isoloss.models import build_cohort, count, family, shape_of
from isoloss.models.cohort import set_pieces
from isoloss.studies import spec
from isoloss.training import distributed, loop
from isoloss.training.distributed import Averaged
from isoloss.training.optimizer import full
from isoloss.training.step import forward

SHAPES = {
    "transformer": {"n_layer": 2, "d_model": 16, "n_head": 2, "activation": "swiglu"},
    "lstm": {"n_layer": 2, "d_model": 16},
    "looped": {"n_layer": 2, "d_model": 16, "n_head": 2, "recurrence": 3, "n_prelude": 1},
}
VOCAB, CONTEXT, SEQUENCES = 40, 8, 4
CUT = 9
"""Updates after which the sharded run stops: within a branch, which keeps the trunk's tensors."""


def measure(task, asked):
    """Gradients, the large model and two runs: by DDP to its end, by FSDP2 up to a checkpoint."""
    with distributed.group(task.execution) as execution:
        ranks = distributed.joined(execution)
        results = {name: gradients(name, ranks) for name in SHAPES} | {"paper": paper(ranks)}
        results["stopped"] = not loop.train(task, should_stop=asked.is_set)
        ranks.any(False)  # the second is not to look for the checkpoint before the first has written it
        results["ended"] = loop.train(task)
        made = iter(range(1, 10_000))
        results["cut"] = not loop.train(sharded(task), should_stop=lambda: next(made) >= CUT)
        return "done", results


def sharded(task):
    """The same run in another folder, by FSDP2."""
    folder = task.lead.folder.parents[2] / "sharded" / "runs" / task.lead.run_id
    folder.mkdir(parents=True, exist_ok=True)
    execution = task.execution.model_copy(update={"shard": True, "activation_checkpointing": "block"})
    return replace(task, members=(replace(task.lead, folder=folder),), execution=execution)


def gradients(name, ranks):
    """Largest difference from a gradient of one process, as a share of the largest gradient, by method."""
    draw = torch.Generator().manual_seed(1)
    x, y = (torch.randint(0, VOCAB, (1, SEQUENCES, CONTEXT), generator=draw) for _ in range(2))
    mine = ranks.part(SEQUENCES)

    def built(pieces=1):
        model = build_cohort(family(name), shape_of(name, SHAPES[name]), VOCAB, CONTEXT, [0]).double()
        set_pieces(model, pieces)
        return model

    def backward(model, forward, rows):
        loss = forward(model, x[:, rows], y[:, rows]).total.mean()
        loss.backward()
        return loss.detach()

    def away(model):
        pairs = [(full(p.grad), whole[name]) for name, p in model.named_parameters()]
        return max(float((a - b).abs().max()) for a, b in pairs) / max(float(b.abs().max()) for _, b in pairs)

    alone = built()
    loss = backward(alone, forward, slice(None))
    whole = {name: p.grad for name, p in alone.named_parameters()}
    differences = {}
    for method, rows in (("DDP", mine), ("control: the same data twice", slice(0, SEQUENCES // 2))):
        model = built()
        of_rank = backward(model, Averaged(SEQUENCES // ranks.count), rows)
        differences[method] = away(model)
        differences[f"loss, {method}"] = abs(float(ranks.mean(of_rank) - loss))
    for every, pieces in (("none", 1), ("block", 1), ("loop", 1), ("none", 3), ("loop", 3)):
        model = built(pieces)
        if every != "none":
            distributed.checkpoint_activations(model, every)
        distributed.shard(model, replace(ranks, shard=True), torch.device("cpu"))
        with torch.no_grad():
            forward(model, x, y)  # an evaluation before must leave nothing behind
        backward(model, forward, mine)
        differences[f"FSDP2, {every}, {pieces}"] = away(model)
    return differences


def paper(ranks):
    """Parameters of the largest looped model of the scale: by formula, as built, and those of one rank."""
    scale = spec.read("looped").scale["paper"]
    models = scale.models[3]
    shape = shape_of("looped", models.shape | models.shapes[-1])
    with torch.device("meta"):
        model = family("looped").build(shape, scale.vocabulary, scale.context)
    built = sum(p.numel() for p in model.parameters())
    distributed.shard(model, replace(ranks, shard=True), torch.device("cpu"))
    mine = sum(p.to_local().numel() for p in model.parameters())
    counts = count(family("looped"), shape, scale.vocabulary, scale.context)
    return {"formula": counts.params_total, "built": built, "mine": mine}
