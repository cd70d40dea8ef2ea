"""A synthetic study on disk, made from known laws: what the figures and the report are tested on.

At fixed tokens D each family follows L = ((Nc/N)^a) (1 + 30 D^-0.45) exactly, so that the crossover of two
families is known; looped models follow the additive loop law in their total loss. Noise is seeded and small.
Records and tables go through the real schema and the real writer.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, prod
from pathlib import Path

import numpy as np
import polars as pl

from isoloss import files, report
from isoloss.records.schema import Counts, Data, Environment, Evaluation, Event, Record
from isoloss.records.store import run_folder, write_failure, write_parquet

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


def on_disk(base: Path, story: Story) -> Path:
    """The study's folder under ``base``, written once per test session."""
    folder = base / f"story-{files.hash_of(repr(story))[:12]}"
    return folder if (folder / "study.json").is_file() else write(folder, story)


@cache
def reported(folder: Path) -> report.ReportResult:
    """The report in the study's folder, written once per test session."""
    return report.write(folder)


def write(folder: Path, story: Story) -> Path:
    """The whole study; with ``hostile`` also a diverged, a failed and a running run under hostile names."""
    runs = planned(story)
    name = f"architectures {HOSTILE}" if story.hostile else "architectures"
    if story.finished:
        for number, run in enumerate(runs):
            write_run(folder, name, story, run, np.random.default_rng(1000 + number))
    if story.hostile:
        shape = {"n_layer": 2, "d_model": 300, "n_head": 4}
        extra = [plan_run(story, "transformer", shape, 90 + i, f"{HOSTILE} {i}") for i in range(3)]
        runs += extra
        write_run(folder, name, story, extra[0], np.random.default_rng(5), diverged_at=40)
        write_failure(run_folder(folder, extra[1]["run_id"]), f"RunError: {HOSTILE}")
    write_plan(folder, name, f"Three families {HOSTILE}" if story.hostile else "Three families", runs)
    return folder


def write_plan(folder: Path, name: str, title: str, runs: list[dict]) -> None:
    kept = ("params", "params_total", "params_executed")
    rows = [{**run, "counts": {rule: run["counts"][rule] for rule in kept}} for run in runs]
    plan = {"study": name, "title": title, "scale": "mini", "isoloss": "0.1.0", "spec": {}, "runs": rows}
    files.write_json(folder / "study.json", plan)


def write_run(folder, study, story, run, rng, diverged_at=None):
    place = run_folder(folder, run["run_id"])
    shift = story.noise * rng.standard_normal()
    steps = D_POINTS[-1] // BATCH_TOKENS if diverged_at is None else diverged_at
    evaluations, positions = evaluate(story, run, shift, steps, rng)
    curve = curve_of(story, run, shift, steps, rng)
    hashes = {
        "positions.parquet": write_parquet(place / "positions.parquet", positions),
        "curve.parquet": write_parquet(place / "curve.parquet", curve),
    }
    if story.slides and run["settings"]["family"] != "looped":
        sliding = pl.concat(sliding_table(story, run, shift, e.step, e.cooled, rng) for e in evaluations)
        hashes["sliding.parquet"] = write_parquet(place / "sliding.parquet", sliding)
    record = record_of(study, run, evaluations, hashes, steps, diverged_at).sealed()
    files.write_json(place / "record.json", record.model_dump(mode="json"))


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


def evaluate(story, run, shift, steps, rng):
    """Trunk evaluations at step 0 and the rounded powers of sqrt 2, and a cooled one at each D point."""
    trunk = sorted({0, *(round(2 ** (i / 2)) for i in range(40) if 2 ** (i / 2) <= steps)})
    cooled = [tokens // BATCH_TOKENS for tokens in D_POINTS if tokens // BATCH_TOKENS <= steps]
    evaluations, tables = [], []
    for step, is_cooled in [*((s, False) for s in trunk), *((s, True) for s in cooled)]:
        windows = 32 if not is_cooled else 512
        table = position_table(story, run, shift, step, is_cooled, windows, rng)
        tables.append(table)
        evaluations.append(evaluation_of(run, table, step, is_cooled, windows))
    return evaluations, pl.concat(tables)


def position_table(story, run, shift, step, is_cooled, windows, rng):
    family = run["settings"]["family"]
    law = story.transformer if family == "looped" else getattr(story, family)
    learned = 1 - exp(-step / 8)
    # The validation windows are the same for all runs, and so is the text's own noise.
    text_T = np.random.default_rng(windows).normal(0, 2.0 / windows**0.5, CONTEXT)
    tables = []
    own = np.random.default_rng([step, *run["run_id"].encode()])
    shift = shift + story.wander * own.standard_normal()
    for part, mean in mean_losses(story, run, step * BATCH_TOKENS).items():
        loss_T = np.full(CONTEXT, mean)
        if part != "entropy":
            own_T = rng.normal(0, 0.3 / windows**0.5, CONTEXT)
            loss_T += learned * law.profile() + text_T - text_T.mean() + own_T - own_T.mean()
            loss_T += learned * shift + (0.0 if is_cooled else 0.05)
        columns = {
            "step": np.full(CONTEXT, step),
            "tokens": np.full(CONTEXT, step * BATCH_TOKENS),
            "cooled": np.full(CONTEXT, is_cooled),
            "part": [part] * CONTEXT,
            "position": np.arange(1, CONTEXT + 1),
            "sum": loss_T * windows,
            "sumsq": (loss_T**2 + 4.0) * windows,
            "count": np.full(CONTEXT, windows),
        }
        tables.append(pl.DataFrame(columns))
    return pl.concat(tables)


def sliding_table(story, run, shift, step, is_cooled, rng):
    """Positions 1 to 8 alone, then in pairs; 16 blocks of 64 targets, their noise common to all runs."""
    law = getattr(story, run["settings"]["family"])
    first_G = np.r_[np.arange(1, 9), np.arange(9, CONTEXT, 2)]
    last_G = np.r_[first_G[1:] - 1, CONTEXT]
    T_G = np.minimum(np.sqrt(first_G * last_G), law.plateau)
    p = law.p + story.steeper * np.log10(run["counts"]["params"] / 1e5)
    shape_G = law.b * T_G**-p
    learned_G = 1 - np.exp(-step / (2 * T_G**story.delay))
    mean = mean_losses(story, run, step * BATCH_TOKENS)["exit_1"] + shift + (0.0 if is_cooled else 0.05)
    loss_G = mean + learned_G * (shape_G - np.average(shape_G, weights=last_G - first_G + 1))
    text_B = np.random.default_rng(3).normal(0, 0.3, 16)
    loss_GB = loss_G[:, None] + text_B + rng.normal(0, 0.02, (len(T_G), 16))
    columns = {
        "step": step,
        "tokens": step * BATCH_TOKENS,
        "cooled": is_cooled,
        "first": first_G.repeat(16),
        "last": last_G.repeat(16),
        "block": np.tile(np.arange(16), len(T_G)),
        "sum": loss_GB.ravel() * 64,
        "count": 64,
    }
    return pl.DataFrame(columns)


def evaluation_of(run, table, step, is_cooled, windows):
    means = dict(table.group_by("part").agg(pl.col("sum").sum() / pl.col("count").sum()).iter_rows())
    exits = [means[name] for name in sorted(means) if name.startswith("exit_")]
    return Evaluation(
        step=step,
        tokens=step * BATCH_TOKENS,
        cooled=is_cooled,
        windows=windows,
        loss=exits[-1],
        loss_se=2.0 / (windows * CONTEXT) ** 0.5,
        bits_per_byte=exits[-1] / log(2) / 2.6,
        exits=exits,
        expected=means.get("expected", exits[-1]),
        entropy=means.get("entropy", 0.0),
        total=means.get("total", exits[-1]),
    )


def curve_of(story, run, shift, steps, rng):
    """Training losses: the trunk, then each cooldown branch over its last fifth."""
    parts = []
    points = [tokens // BATCH_TOKENS for tokens in D_POINTS if tokens // BATCH_TOKENS <= steps]
    spans = [(0, 1, steps + 1), *((i, p - p // 5 + 1, p + 1) for i, p in enumerate(points, start=1))]
    for branch, first, end in spans:
        step_S = np.arange(first, end)
        rows = [mean_losses(story, run, int(step) * BATCH_TOKENS) for step in step_S]
        noise_S = shift + rng.normal(0, 0.05, len(step_S)) + (0.05 if branch == 0 else 0.0)
        columns = {"total": np.array([row.get("total", row["exit_1"]) for row in rows]) + noise_S}
        if "total" in rows[0]:
            columns |= {
                name: np.array([row[name] for row in rows]) + (0.0 if name == "entropy" else noise_S)
                for name in rows[0]
            }
        parts.append(
            pl.DataFrame({"step": step_S, "tokens": step_S * BATCH_TOKENS}).with_columns(
                pl.lit(branch > 0).alias("cooled"), pl.lit(branch).alias("branch"), **columns
            )
        )
    return pl.concat(parts)


def record_of(study, run, evaluations, hashes, steps, diverged_at):
    settings = run["settings"]
    return Record(
        run_id=run["run_id"],
        study=study,
        family=settings["family"],
        label=run["label"],
        status="finished" if diverged_at is None else "diverged",
        reason="" if diverged_at is None else f"loss was not finite {HOSTILE}",
        diverged_step=diverged_at,
        attempt=1,
        seed=settings["seed"],
        learning_rate=settings["learning_rate"],
        recipe="adamw-constant-1sqrt/1",
        settings=settings,
        counts=Counts(**run["counts"]),
        data=Data(
            corpus="starter",
            corpus_hash="c" * 64,
            tokenizer_hash="d" * 64,
            train_sha256="e" * 64,
            validation_sha256="f" * 64,
            train_tokens=2_300_000,
            validation_tokens=120_000,
            vocab=VOCAB,
            bytes_per_token=2.6,
            epochs=0.9,
        ),
        environment=Environment(
            isoloss="0.1.0",
            commit="0123456789abcdef",
            dirty=False,
            python="3.11.2",
            torch="2.13.0",
            numpy="2.4.6",
            platform="Linux-x86_64",
            device="cpu",
            device_name="a made-up processor",
            threads=1,
            dtype="float32",
            compiled=False,
            cohort_size=1,
        ),
        events=[
            Event(kind="started", attempt=1, step=0, time="2026-01-02T03:04:05+00:00"),
            Event(kind="finished", attempt=1, step=steps, time="2026-01-02T03:05:05+00:00"),
        ],
        evaluations=evaluations,
        steps=steps,
        tokens=steps * BATCH_TOKENS,
        wall_seconds=60.0,
        cpu_seconds=55.0,
        files=hashes,
    )
