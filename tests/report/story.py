"""A synthetic study: the laws that it follows and the runs that it plans. ``telling`` writes it to disk.

At fixed tokens D each family follows L = ((Nc/N)^a) (1 + 30 D^-0.45) exactly, so that the crossover of two
families is known; looped models follow the additive loop law in their total loss.
"""

import itertools
from dataclasses import dataclass, replace
from math import exp, log, prod

import numpy as np

from isoloss import files

CONTEXT, BATCH, VOCAB = 128, 64, 1024
D_POINTS = (524_288, 1_048_576, 2_097_152)
BATCH_TOKENS = BATCH * CONTEXT
HOSTILE = "<script>alert(1)</script></script>\"'& ünïcödé 🜁"


@dataclass(frozen=True)
class Law:
    """Loss at N = 1e4 and unlimited data, exponent a; profile b T^-p, flat after ``plateau``.

    ``lag``: nats by which a doubling of D lowers the loss beyond that, counted from the largest D.
    """

    at_10k: float
    a: float
    b: float
    p: float
    plateau: int
    lag: float = 0.0

    def loss(self, params: float, tokens: float) -> float:
        left = log(D_POINTS[-1] / max(tokens, 1), 2)
        return self.at_10k * (params / 1e4) ** -self.a * (1 + 30 * max(tokens, 1) ** -0.45) + self.lag * left

    def profile(self) -> np.ndarray:
        """b T^-p less its mean: by how much the loss at position T departs from the context mean."""
        position_T = np.arange(1, CONTEXT + 1)
        shape_T = self.b * np.minimum(position_T, self.plateau) ** -self.p
        return shape_T - shape_T.mean()


@dataclass(frozen=True)
class LoopLaw:
    """Total loss E + A N^-alpha + B D^-beta + C T_m^-gamma."""

    E: float = 2.0
    A: float = 9.0
    alpha: float = 0.2
    B: float = 60.0
    beta: float = 0.36
    C: float = 0.4
    gamma: float = 0.9
    entropy_weight: float = 0.1

    def loss(self, params: float, tokens: float, loops: int) -> float:
        data = self.B * max(tokens, 1) ** -self.beta
        return self.E + self.A * params**-self.alpha + data + self.C * loops**-self.gamma


@dataclass(frozen=True)
class DepthLaw:
    """Loss of looped models of equal depth: E + A (N_once + r^phi N_rec)^-alpha + B D^-beta."""

    phi: float = 0.5
    E: float = 1.8
    A: float = 14.0
    alpha: float = 0.22
    B: float = 60.0
    beta: float = 0.36

    def loss(self, once: float, recurrent: float, loops: int, tokens: float) -> float:
        effective = once + loops**self.phi * recurrent
        return self.E + self.A * effective**-self.alpha + self.B * max(tokens, 1) ** -self.beta


@dataclass(frozen=True)
class Story:
    """``noise``: of a run, the same at every D; ``wander``: at each of its D."""

    transformer: Law
    lstm: Law = Law(at_10k=4.0, a=0.05, b=3.0, p=0.9, plateau=24)
    looped: LoopLaw = LoopLaw()
    gated: Law = Law(at_10k=4.2, a=0.06, b=3.1, p=0.8, plateau=64)
    """Of a family that a user registered."""
    gated_widths: tuple[int, ...] = ()
    transformer_widths: tuple[int, ...] = (20, 40, 64, 112, 200)
    lstm_widths: tuple[tuple[int, tuple[int, ...]], ...] = (
        (1, (36, 72, 140, 340)),
        (2, (24, 50, 100, 240)),
        (4, (18, 36, 70, 170)),
    )
    looped_widths: tuple[int, ...] = (32, 64, 128)
    loops: tuple[int, ...] = (1, 2, 4)
    depth: DepthLaw = DepthLaw()
    depth_widths: tuple[int, ...] = ()
    shapes: tuple[tuple[tuple[str, int], ...], ...] = ()
    bends: tuple[tuple[str, float, float], ...] = ()
    seeds: int = 2
    noise: float = 0.006
    wander: float = 0.0
    steeper: float = 0.0
    """By how much the exponent of context grows for tenfold N."""
    delay: float = 0.5
    """Position T is learned T^delay times later than the first."""
    slides: bool = True
    """Were losses taken of the same targets at every position?"""
    hostile: bool = True
    finished: bool = True

    def bent(self, shape: dict) -> float:
        """Product over ``bends`` (ratio, best, curvature) of 1 + curvature log(ratio / best)^2."""
        width, heads = shape["d_model"], shape.get("n_head", 1)
        ratios = {
            "ff": shape.get("d_ff", 4 * width) / width,
            "aspect": width / shape["n_layer"],
            "heads": shape.get("d_head", width // heads),
        }
        return prod(1 + bend * log(ratios[name] / best) ** 2 for name, best, bend in self.bends)

    @property
    def crossing(self) -> float:
        """N where the two laws meet."""
        ratio = self.transformer.at_10k / self.lstm.at_10k
        return 1e4 * exp(log(ratio) / (self.transformer.a - self.lstm.a))


LSTM_AHEAD = Story(transformer=Law(at_10k=4.4, a=0.065, b=3.2, p=0.6, plateau=CONTEXT))
"""The curves meet at 5.7M parameters, far beyond the largest model."""
FEW = replace(LSTM_AHEAD, lstm_widths=((1, (36, 72, 140, 340)),), loops=(), hostile=False)
"""The same truth in few runs: one LSTM depth, no looped models, no accidents."""
CROSSES_INSIDE = Story(transformer=Law(at_10k=4.456, a=0.09, b=3.2, p=0.6, plateau=CONTEXT))
"""The curves meet at 149K parameters, in the middle of the data."""


def planned(story: Story) -> list[dict]:
    """The runs of study.json, in order."""
    shapes = [("transformer", {"n_layer": 2, "d_model": d, "n_head": 4}) for d in story.transformer_widths]
    shapes += [("transformer", dict(shape)) for shape in story.shapes]
    shapes += [("lstm", {"n_layer": n, "d_model": d}) for n, widths in story.lstm_widths for d in widths]
    shapes += [("gated", {"n_layer": 2, "d_model": d}) for d in story.gated_widths]
    shapes += [
        (
            "looped",
            {"n_layer": 2, "d_model": d, "recurrence": t, "entropy_weight": story.looped.entropy_weight},
        )
        for d, t in itertools.product(story.looped_widths if story.loops else (), story.loops)
    ]
    deep = {"n_prelude": 1, "n_coda": 1, "exits": "last"}
    shapes += [
        ("looped", deep | {"n_layer": 4 // r, "d_model": d, "recurrence": r, "injection": r > 1})
        for d, r in itertools.product(story.depth_widths, (1, 2, 4))
    ]
    return [plan_run(story, family, shape, seed) for family, shape in shapes for seed in range(story.seeds)]


def halves(shape: dict) -> tuple[int, int]:
    """Parameters outside and inside the loop of a model of equal depth, its injection counted inside."""
    square, loops = shape["d_model"] ** 2, shape["recurrence"]
    return 24 * square, 12 * shape["n_layer"] * square + (2 * square if loops > 1 else 0)


def plan_run(story: Story, family: str, shape: dict, seed: int, label: str = "") -> dict:
    layers, width = shape["n_layer"], shape["d_model"]
    d_attn, d_ff = shape.get("n_head", 1) * shape.get("d_head", 0) or width, shape.get("d_ff", 4 * width)
    block = width * (8 * width + 8 if family == "lstm" else 4 * d_attn + 2 * d_ff)
    loops = shape.get("recurrence", 1)
    body = layers * block + (width + 1 if loops > 1 else 0)
    executed = body * loops
    if "exits" in shape:
        once, recurrent = halves(shape)
        body, executed = once + recurrent, once + loops * recurrent
    settings = {
        "version": 1,
        "family": family,
        "shape": shape,
        "vocab": VOCAB,
        "context": CONTEXT,
        "batch_size": BATCH,
        "tokens": list(D_POINTS),
        "learning_rate": 0.004 if family == "lstm" else 0.002,
        "seed": seed,
        "recipe": {"name": "adamw-constant-1sqrt", "version": 1, "warmup": 0.1, "cooldown": 0.2},
    }
    return {
        "run_id": f"{family}-{layers}x{width}-r{loops}-s{seed}-{files.hash_of(settings)[:12]}",
        "label": label or f"{family} {layers}x{width}" + (f" T_m={loops}" if family == "looped" else ""),
        "settings": settings,
        "counts": {
            "params": body,
            "params_total": body + VOCAB * width,
            "params_executed": executed,
            "params_embedding": VOCAB * width,
            "flops_6nd_per_token": 6.0 * executed,
            "flops_exact_per_token": 6.0 * executed + 6.0 * width * VOCAB,
        },
    }


def mean_losses(story: Story, run: dict, tokens: int) -> dict[str, float]:
    """Context means by part, without noise."""
    settings, params = run["settings"], run["counts"]["params"]
    loops = settings["shape"].get("recurrence", 1)
    ceiling = log(VOCAB)
    if settings["family"] != "looped":
        loss = getattr(story, settings["family"]).loss(params, tokens) * story.bent(settings["shape"])
        return {"exit_1": min(ceiling, loss)}
    if "exits" in settings["shape"]:
        deep = story.depth.loss(*halves(settings["shape"]), loops, tokens)
        return {"exit_1": min(ceiling, deep)}
    total = min(ceiling, story.looped.loss(params, tokens, loops))
    if loops == 1:
        return {"exit_1": total}
    entropy = 0.9 * log(loops)
    expected = total + story.looped.entropy_weight * entropy
    spread = np.linspace(0.12, -0.12, loops)  # later exits are better, and their mean is the expected loss
    exits = {f"exit_{t}": expected + offset for t, offset in enumerate(spread, start=1)}
    return {**exits, "expected": expected, "entropy": entropy, "total": total}
