"""From a finished study to the packaged checkpoints: weights in float16, a card, a manifest.

python benchmarks/showdown.py DIR     trains ``showdown.toml`` with isoloss' own trainer, then calls this
"""

from pathlib import Path

import polars as pl
import torch
from safetensors.torch import load_file

from isoloss import files
from isoloss.records import load
from isoloss.records.schema import Record
from isoloss.records.store import check_file, read_part, run_folder
from isoloss.teach.showdown.checkpoints import CARD, MANIFEST, TOKENIZER, Card, Trained, Tried
from isoloss.training import weights

DECIMALS = 4


def pack(study: Path, rates: Path, tokenizer: Path, out: Path) -> list[Path]:
    """Write the checkpoints of every run of ``study`` to ``out``; the files written.

    ``rates``: the study at other learning rates, for the card.

    Raises InputError if a file does not match its record, or the weights were not kept.
    """
    records = load(study).records
    written = [out / TOKENIZER, out / CARD]
    files.write_bytes(out / TOKENIZER, tokenizer.read_bytes())
    runs = []
    for record in records:
        place = run_folder(study, record.run_id)
        target = out / f"{record.family}-{record.seed}.safetensors"
        weights.write(target, load_file(check_file(place, record, weights.NAME)), torch.float16)
        runs.append(trained(record, place, target.name))
        written.append(target)
    about = card(records[0], runs, [tried(record) for record in load(rates).records])
    files.write_json(out / CARD, about.model_dump(mode="json"))
    files.write_json(out / MANIFEST, {"sha256": {path.name: files.sha256(path) for path in written}})
    return [*written, out / MANIFEST]


def trained(record: Record, place: Path, name: str) -> Trained:
    last = record.evaluations[-1]
    positions = read_part(place, record, "positions.parquet").filter(
        pl.col("cooled"), pl.col("part") == "exit_1", pl.col("tokens") == last.tokens
    )
    return Trained(
        file=name,
        family=record.family,
        label=record.label,
        shape=record.settings["shape"],
        seed=record.seed,
        params=record.counts.params,
        params_total=record.counts.params_total,
        learning_rate=record.learning_rate,
        loss=last.loss,
        loss_se=last.loss_se,
        bits_per_byte=last.bits_per_byte,
        windows=last.windows,
        sum_T=[round(value, DECIMALS) for value in positions.sort("position")["sum"]],
        cpu_seconds=round(record.cpu_seconds, 1),
    )


def tried(record: Record) -> Tried:
    last = record.evaluations[-1]
    return Tried(
        family=record.family,
        learning_rate=record.learning_rate,
        seed=record.seed,
        loss=last.loss,
        loss_se=last.loss_se,
    )


def card(first: Record, runs: list[Trained], other_rates: list[Tried]) -> Card:
    settings, machine = first.settings, first.environment
    return Card(
        corpus=first.data.corpus,
        corpus_hash=first.data.corpus_hash,
        tokenizer_hash=first.data.tokenizer_hash,
        train_tokens=first.data.train_tokens,
        vocab=first.data.vocab,
        context=settings["context"],
        batch_size=settings["batch_size"],
        tokens=first.tokens,
        steps=first.steps,
        epochs=round(first.data.epochs, 4),
        recipe=first.recipe,
        made=first.events[-1].time[:10],
        machine=machine.device_name,
        threads=machine.threads,
        torch=machine.torch,
        isoloss=machine.isoloss,
        runs=runs,
        other_rates=other_rates,
    )
