"""From a trained state to the records of its members: positions, curve, and the record last."""

import numpy as np
import polars as pl

from isoloss import files, units
from isoloss.corpus.batches import epochs, evaluation_windows
from isoloss.corpus.library import TokenizedCorpus
from isoloss.models import count, family, shape_of
from isoloss.records.schema import Counts, Data, Evaluation, Record
from isoloss.records.store import POSITION_COLUMNS, write_parquet
from isoloss.training import weights
from isoloss.training.evaluation import PositionSums
from isoloss.training.journal import Journal
from isoloss.training.schedule import segments
from isoloss.training.settings import RunSettings
from isoloss.training.setup import Setup
from isoloss.training.state import Measured, State
from isoloss.training.task import Member, Task


def write_records(setup: Setup, state: State, journal: Journal) -> None:
    task, corpus = setup.task, setup.corpus
    for k, member in enumerate(task.members):
        tables = {
            "positions.parquet": positions(member, state, k),
            "curve.parquet": curve(member, state, k, setup.parts),
        }
        written = {name: write_parquet(member.folder / name, table) for name, table in tables.items()}
        if (kept := member.folder / weights.NAME).is_file():
            written[weights.NAME] = files.sha256(kept)
        record = Record(
            run_id=member.run_id,
            study=task.study,
            family=member.settings.family,
            label=member.label,
            status="finished" if state.diverged[k] is None else "diverged",
            reason=reason(state.diverged[k]),
            diverged_step=state.diverged[k],
            attempt=journal.attempt,
            seed=member.settings.seed,
            learning_rate=member.settings.learning_rate,
            recipe=f"{member.settings.recipe.name} v{member.settings.recipe.version}",
            settings=member.settings.model_dump(mode="json"),
            counts=counts_of(member.settings),
            data=data_of(task, corpus),
            environment=setup.environment,
            events=journal.events,
            evaluations=evaluations(corpus, member, state, k),
            steps=len(state.curve_UKP) if state.diverged[k] is None else state.diverged[k],
            tokens=member.settings.tokens[-1],
            wall_seconds=state.wall_seconds / len(task.members),
            cpu_seconds=state.cpu_seconds / len(task.members),
            files=written,
        )
        files.write_json(member.folder / "record.json", record.model_dump(mode="json"))
        files.remove_file(member.folder / "failure.json")
    files.remove_folder(task.lead.folder / "checkpoints")


def reason(diverged: int | None) -> str:
    if diverged is None:
        return "reached its last D point"
    return f"loss or gradient not finite at update {diverged}"


def counts_of(settings: RunSettings) -> Counts:
    shape = shape_of(settings.family, settings.shape)
    counted = count(family(settings.family), shape, settings.vocab, settings.context)
    return Counts(
        params=counted.params,
        params_total=counted.params_total,
        params_executed=counted.params_executed,
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


def evaluations(corpus: TokenizedCorpus, member: Member, state: State, k: int) -> list[Evaluation]:
    return [
        evaluation(corpus, member.settings, measured, sums)
        for measured in state.measured
        if (sums := measured.sums[k]) is not None
    ]


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


def positions(member: Member, state: State, k: int) -> pl.DataFrame:
    """Long form: one row per evaluation, part and position."""
    tables = [
        pl.DataFrame(
            {
                "step": measured.step,
                "tokens": measured.step * member.settings.batch_tokens,
                "cooled": measured.branch > 0,
                "part": part,
                "position": np.arange(1, len(sum_T) + 1),
                "sum": sum_T,
                "sumsq": sumsq_T,
                "count": sums.windows,
            },
            schema=POSITION_COLUMNS,
        )
        for measured in state.measured
        if (sums := measured.sums[k]) is not None
        for part, sum_T, sumsq_T in zip(sums.parts, sums.sum_PT, sums.sumsq_PT, strict=True)
    ]
    return pl.concat(tables) if tables else pl.DataFrame(schema=POSITION_COLUMNS)


def curve(member: Member, state: State, k: int, parts: list[str]) -> pl.DataFrame:
    """Training loss at every update that was made: ``step`` counts along the branch it belongs to."""
    plan = segments(member.settings)
    branch = np.concatenate([np.full(len(segment), segment.branch) for segment in plan])
    step = np.concatenate([np.arange(segment.start, segment.stop) + 1 for segment in plan])
    table = pl.DataFrame(
        {
            "branch": branch,
            "step": step,
            "tokens": step * member.settings.batch_tokens,
            "cooled": branch > 0,
            **{part: state.curve_UKP[:, k, column] for column, part in enumerate(parts)},
        }
    )
    return table.filter(pl.col("total").is_finite())
