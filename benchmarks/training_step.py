"""What the training loop costs beside the bare step, and how near both come to the core's matmul rate.

    python benchmarks/training_step.py

For each shape, in turn and several times over: one update of the package's loop (batch, forward, losses,
backward, clipping, MemberAdamW, curve), and the bare step that nothing can undercut without other kernels
(forward, cross-entropy, backward, torch's fused AdamW, on one fixed batch). CPU seconds, medians; the ratio
is taken pair by pair, so that a drifting machine favours neither. The last columns set the loop's exact FLOPs
per second beside a large matmul's on the same core.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from isoloss.corpus import library
from isoloss.models import build_cohort, count, family, shape_of
from isoloss.studies.estimate import matmul_rate
from isoloss.training.device import device_name, prepare_cpu
from isoloss.training.objective import losses
from isoloss.training.schedule import rate
from isoloss.training.settings import Execution, RunSettings
from isoloss.training.setup import set_up
from isoloss.training.step import train_step
from isoloss.training.task import Member, Task

SHAPES = [
    ("transformer", {"n_layer": 2, "d_model": 24, "n_head": 1}),
    ("transformer", {"n_layer": 3, "d_model": 64, "n_head": 2}),
    ("transformer", {"n_layer": 4, "d_model": 128, "n_head": 4}),
    ("lstm", {"n_layer": 1, "d_model": 40}),
    ("lstm", {"n_layer": 1, "d_model": 312}),
    ("lstm", {"n_layer": 4, "d_model": 156}),
    ("looped", {"n_layer": 1, "d_model": 72, "n_head": 1, "recurrence": 4}),
]
VOCAB, CONTEXT, BATCH, ROUNDS, STEPS = 1024, 128, 4, 7, 6


def loop_step(
    name: str,
    shape: dict,
    folder: Path,
    corpus: library.TokenizedCorpus,
    batch_size: int = BATCH,
    context: int = CONTEXT,
) -> Callable[[], None]:
    settings = RunSettings(
        family=name,
        shape=shape,
        corpus_hash=corpus.corpus_hash,
        tokenizer=f"bpe-{VOCAB}",
        vocab=VOCAB,
        context=context,
        batch_size=batch_size,
        tokens=(1000 * batch_size * context,),
        learning_rate=1e-3,
        seed=0,
    )
    place = folder / settings.run_id
    place.mkdir()
    task = Task(
        "benchmark", (Member(settings, name, place),), "starter", corpus.tokenizer_path.parent, Execution()
    )
    setup = set_up(task)
    state, segment = setup.first_state(), setup.segments[0]

    def step() -> None:
        rates = [rate(settings, segment, state.step)]
        x_KBT, y_KBT = setup.batch(state.step)
        means_KP, _ = train_step(
            state.model, state.optimizer, x_KBT, y_KBT, rates, state.alive_K, setup.options
        )
        state.advance(means_KP.numpy())

    return step


def bare_step(name: str, shape: dict, corpus: library.TokenizedCorpus) -> Callable[[], None]:
    model = build_cohort(family(name), shape_of(name, shape), VOCAB, CONTEXT, [0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    ids = torch.from_numpy(corpus.train.ids[: BATCH * CONTEXT + 1].astype("int64"))
    x_KBT, y_KBT = (part.view(1, BATCH, CONTEXT) for part in (ids[:-1], ids[1:]))

    def step() -> None:
        optimizer.zero_grad()
        losses(model(x_KBT), y_KBT).total.mean().backward()
        optimizer.step()

    return step


def seconds(step: Callable[[], None]) -> float:
    begin = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - begin) / STEPS


def main() -> None:
    torch.set_num_threads(1)
    prepare_cpu()
    corpus = library.tokenize("starter", VOCAB)
    peak = matmul_rate(seconds=1.0)
    size = f"{BATCH} x {CONTEXT} tokens a step"
    print(f"{device_name(torch.device('cpu'))}, torch {torch.__version__}, one thread, {size}")
    print(f"large float32 matmul: {peak / 1e9:.0f} GFLOP/s\n")
    columns = "model, N, loop tokens/s, bare tokens/s, loop / bare time, loop GFLOP/s, of the matmul rate"
    print("| " + columns.replace(", ", " | ") + " |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        for name, values in SHAPES:
            shape = shape_of(name, values)
            flops = count(family(name), shape, VOCAB, CONTEXT).flops_exact(BATCH * CONTEXT)
            loop = loop_step(name, shape.model_dump(mode="json"), Path(folder), corpus)
            bare = bare_step(name, values, corpus)
            seconds(loop), seconds(bare)
            pairs = [(seconds(loop), seconds(bare)) for _ in range(ROUNDS)]
            ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            params = count(family(name), shape, VOCAB, CONTEXT).params
            label = " ".join(f"{key} {value}" for key, value in values.items())
            rates = [f"{BATCH * CONTEXT / time:,.0f}" for time in (ours, theirs)]
            speed = [f"{ratio:.2f}", f"{flops / ours / 1e9:.0f}", f"{flops / ours / peak:.0%}"]
            print("| " + " | ".join([f"{name} {label}", f"{params:,}", *rates, *speed]) + " |")


if __name__ == "__main__":
    main()
