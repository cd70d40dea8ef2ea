"""From a trained state to the records of its members: positions, curve, and the record last."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from isoloss import files, units
from isoloss.corpus.batches import epochs, evaluation_windows
from isoloss.corpus.library import TokenizedCorpus
from isoloss.models import count, family, shape_of
from isoloss.records.divergence import mark_divergence
from isoloss.records.schema import Counts, Data, Evaluation, Record
from isoloss.records.store import (
    CURVE,
    POSITION_COLUMNS,
    POSITIONS,
    SLIDING,
    SLIDING_COLUMNS,
    WEIGHTS,
    write_parquet,
)
from isoloss.training.evaluation import PositionSums
from isoloss.training.journal import Journal
from isoloss.training.settings import RunSettings
from isoloss.training.setup import Setup
from isoloss.training.state import Measured, State
from isoloss.training.task import Task


def write_records(setup: Setup, state: State, journal: Journal) -> None:
    for k, member in enumerate(setup.task.members):
        measured = [(m, sums) for m in state.measured if (sums := m.sums[k]) is not None]
        tables = {
            POSITIONS: positions(member.settings, measured),
            SLIDING: sliding_positions(setup, measured, k),
            CURVE: curve(setup, state, k),
        }
        written = {name: write_parquet(member.folder / name, table) for name, table in tables.items()}
        if (weights := member.folder / WEIGHTS).is_file():
            written[WEIGHTS] = files.sha256(weights)
        diverged = state.diverged[k]
        record = Record(
            run_id=member.run_id,
            study=setup.task.study,
            family=member.settings.family,
            label=member.label,
            status="finished" if diverged is None else "diverged",
            reason="reached its last D point"
            if diverged is None
            else f"loss or gradient not finite at update {diverged}",
            diverged_step=diverged,
            attempt=journal.attempt,
            seed=member.settings.seed,
            learning_rate=member.settings.learning_rate,
            recipe=f"{member.settings.recipe.name} v{member.settings.recipe.version}",
            settings=member.settings.model_dump(mode="json"),
            counts=counts_of(member.settings),
            data=data_of(setup.task, setup.corpus),
            environment=setup.environment,
            events=journal.events,
            evaluations=[evaluation(setup.corpus, member.settings, *pair) for pair in measured],
            steps=len(state.curve_UKP) if diverged is None else diverged,
            tokens=member.settings.tokens[-1],
            wall_seconds=state.wall_seconds / len(setup.task.members),
            cpu_seconds=state.cpu_seconds / len(setup.task.members),
            files=written,
        )
        record = mark_divergence(record, tables[CURVE])
        files.write_json(member.folder / "record.json", record.sealed().model_dump(mode="json"))
        files.remove_file(member.folder / "failure.json")
    files.remove_folder(setup.task.lead.folder / "checkpoints")


def counts_of(settings: RunSettings) -> Counts:
    shape = shape_of(settings.family, settings.shape)
    counted = count(family(settings.family), shape, settings.vocab, settings.context)
    return Counts(
        **counted.params_by_rule(),
        params_embedding=counted.embedding,
        flops_6nd_per_token=counted.flops_6nd(1),
        flops_exact_per_token=counted.flops_exact(1),
    )


def data_of(task: Task, corpus: TokenizedCorpus) -> Data:
    settings = task.lead.settings
    return Data(
        corpus=task.corpus,
        corpus_hash=corpus.corpus_hash,
        tokenizer_hash=corpus.tokenizer_hash,
        train_sha256=corpus.train.sha256,
        validation_sha256=corpus.validation.sha256,
        train_tokens=corpus.train.tokens,
        validation_tokens=corpus.validation.tokens,
        vocab=corpus.vocab,
        bytes_per_token=corpus.validation.bytes_per_token,
        epochs=epochs(corpus.train.tokens, settings.tokens[-1], settings.context),
    )


def evaluation(
    corpus: TokenizedCorpus, settings: RunSettings, measured: Measured, sums: PositionSums
) -> Evaluation:
    exits = [part for part in sums.parts if part.startswith("exit_")]
    last = exits[-1]
    _, y_MT = evaluation_windows(corpus.validation, count=sums.windows, context=settings.context)
    text_bytes = float(corpus.token_bytes[y_MT].sum())
    return Evaluation(
        step=measured.step,
        tokens=measured.step * settings.batch_tokens,
        cooled=measured.branch > 0,
        windows=sums.windows,
        loss=sums.mean(last),
        loss_se=sums.standard_error(last),
        bits_per_byte=units.bits_per_byte(float(sums.sum_T(last).sum()), text_bytes),
        exits=[sums.mean(part) for part in exits],
        expected=sums.mean("expected") if "expected" in sums.parts else sums.mean(last),
        entropy=sums.mean("entropy") if "entropy" in sums.parts else 0.0,
        total=sums.mean("total") if "total" in sums.parts else sums.mean(last),
    )


def positions(settings: RunSettings, measured: Sequence[tuple[Measured, PositionSums]]) -> pl.DataFrame:
    """Long form: one row per evaluation, part and position."""
    tables = [
        pl.DataFrame(
            {
                "step": m.step,
                "tokens": m.step * settings.batch_tokens,
                "cooled": m.branch > 0,
                "part": part,
                "position": np.arange(1, len(sum_T) + 1),
                "sum": sum_T,
                "sumsq": sumsq_T,
                "count": sums.windows,
            },
            schema=POSITION_COLUMNS,
        )
        for m, sums in measured
        for part, sum_T, sumsq_T in zip(sums.parts, sums.sum_PT, sums.sumsq_PT, strict=True)
    ]
    return pl.concat(tables) if tables else pl.DataFrame(schema=POSITION_COLUMNS)


def sliding_positions(
    setup: Setup, measured: Sequence[tuple[Measured, PositionSums]], k: int
) -> pl.DataFrame:
    """Long form: one row per evaluation, group of positions and block of text."""
    tables = []
    for m, _ in measured:
        plan = setup.sliding_at(cooled=m.branch > 0)
        if m.sliding_KGN is None or plan is None:
            continue
        groups, blocks = m.sliding_KGN[k].shape
        values = {
            "step": m.step,
            "tokens": m.step * setup.settings.batch_tokens,
            "cooled": m.branch > 0,
            "first": plan.first_G.repeat(blocks),
            "last": plan.last_G.repeat(blocks),
            "block": np.tile(np.arange(blocks), groups),
            "sum": m.sliding_KGN[k].ravel(),
            "count": plan.block_targets,
        }
        tables.append(pl.DataFrame(values, schema=SLIDING_COLUMNS))
    return pl.concat(tables) if tables else pl.DataFrame(schema=SLIDING_COLUMNS)


def curve(setup: Setup, state: State, k: int) -> pl.DataFrame:
    """Training loss at every update that was made: ``step`` counts along the branch it belongs to."""
    branch = np.concatenate([np.full(len(segment), segment.branch) for segment in setup.segments])
    step = np.concatenate([np.arange(segment.start, segment.stop) + 1 for segment in setup.segments])
    table = pl.DataFrame(
        {
            "branch": branch,
            "step": step,
            "tokens": step * setup.settings.batch_tokens,
            "cooled": branch > 0,
            **{part: state.curve_UKP[:, k, column] for column, part in enumerate(setup.parts)},
        }
    )
    return table.filter(pl.col("total").is_finite())
