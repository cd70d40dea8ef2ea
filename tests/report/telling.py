"""A story as a study on disk, with seeded and small noise, through the real schema and the real writer."""

from functools import cache
from math import exp, log
from pathlib import Path

import numpy as np
import polars as pl
from story import BATCH_TOKENS, CONTEXT, D_POINTS, HOSTILE, VOCAB, Story, mean_losses, plan_run, planned

from isoloss import files, report
from isoloss.records.schema import Counts, Data, Environment, Evaluation, Event, Record
from isoloss.records.store import run_folder, write_failure, write_parquet


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


def evaluate(story, run, shift, steps, rng):
    """Trunk evaluations at step 0 and the rounded powers of sqrt 2, and a cooled one at each D point."""
    trunk = sorted({0, *(round(2 ** (i / 2)) for i in range(40) if 2 ** (i / 2) <= steps)})
    cooled = [tokens // BATCH_TOKENS for tokens in D_POINTS if tokens // BATCH_TOKENS <= steps]
    when = [(step, False, 32) for step in trunk] + [(step, True, 512) for step in cooled]
    positions = pl.concat(position_table(story, run, shift, *one, rng) for one in when)
    losses = positions.group_by("step", "cooled", "part").agg(pl.col("sum").sum() / pl.col("count").sum())
    means = {one: {} for one in when}
    for step, is_cooled, part, mean in losses.iter_rows():
        means[step, is_cooled, 512 if is_cooled else 32][part] = mean
    return [evaluation_of(*one, means[one]) for one in when], positions


def position_table(story, run, shift, step, is_cooled, windows, rng):
    family = run["settings"]["family"]
    law = story.transformer if family == "looped" else getattr(story, family)
    learned = 1 - exp(-step / 8)
    # The validation windows are the same for all runs, and so is the text's own noise.
    text_T = np.random.default_rng(windows).normal(0, 2.0 / windows**0.5, CONTEXT)
    own = np.random.default_rng([step, *run["run_id"].encode()])
    shift = shift + story.wander * own.standard_normal()
    means = mean_losses(story, run, step * BATCH_TOKENS)
    losses = []
    for part, mean in means.items():
        loss_T = np.full(CONTEXT, mean)
        if part != "entropy":
            own_T = rng.normal(0, 0.3 / windows**0.5, CONTEXT)
            loss_T += learned * law.profile() + text_T - text_T.mean() + own_T - own_T.mean()
            loss_T += learned * shift + (0.0 if is_cooled else 0.05)
        losses.append(loss_T)
    loss_N = np.concatenate(losses)
    columns = {
        "step": np.full(len(loss_N), step),
        "tokens": np.full(len(loss_N), step * BATCH_TOKENS),
        "cooled": np.full(len(loss_N), is_cooled),
        "part": np.repeat(list(means), CONTEXT),
        "position": np.tile(np.arange(1, CONTEXT + 1), len(losses)),
        "sum": loss_N * windows,
        "sumsq": (loss_N**2 + 4.0) * windows,
        "count": np.full(len(loss_N), windows),
    }
    return pl.DataFrame(columns)


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
        "step": np.full(loss_GB.size, step),
        "tokens": np.full(loss_GB.size, step * BATCH_TOKENS),
        "cooled": np.full(loss_GB.size, is_cooled),
        "first": first_G.repeat(16),
        "last": last_G.repeat(16),
        "block": np.tile(np.arange(16), len(T_G)),
        "sum": loss_GB.ravel() * 64,
        "count": np.full(loss_GB.size, 64),
    }
    return pl.DataFrame(columns)


def evaluation_of(step, is_cooled, windows, means):
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
