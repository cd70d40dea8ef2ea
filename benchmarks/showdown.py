"""Train the showdown's checkpoints and pack them: eleven CPU-minutes, and eighty for the pair that is shown.

    python benchmarks/showdown.py DIR [small|shown]

DIR holds the studies, whose finished runs are not trained again. Writes ``teach/showdown/checkpoints``, and
``checkpoints/shown``: weights in float16, a card, a manifest.
"""

import lzma
import sys
from importlib import resources
from pathlib import Path

import polars as pl
import torch
from safetensors.torch import load_file

from isoloss import files
from isoloss.corpus import library
from isoloss.records import load
from isoloss.records.schema import Record
from isoloss.records.store import WEIGHTS, check_file, run_folder
from isoloss.studies.launch import launch
from isoloss.teach.showdown.checkpoints import CARD, MANIFEST, TOKENIZER, Card, Trained, Tried
from isoloss.training.checkpoint import write_tensors

SHOWDOWN = Path(str(resources.files("isoloss.teach.showdown")))
DECIMALS = 4


AUTHOR, PART = "Jane Austen", "austen"
"""The pair that is shown reads six novels of one hand: so small a model writes better of one world."""

SETS = {
    "small": (("packaged", "rates"), (library.STARTER, library.VOCABULARY), SHOWDOWN / "checkpoints"),
    "shown": (("shown", "shown-rates"), (PART, 4096), SHOWDOWN / "checkpoints" / "shown"),
}


def main(folder: str, *sets: str) -> None:
    for name in sets or SETS:
        scales, text, out = SETS[name]
        add_part(Path(folder) / PART)
        places = [trained(scale, Path(folder) / scale) for scale in scales]
        for path in pack(*places, library.tokenize(*text).tokenizer_path, out):
            print(f"{path.stat().st_size:>9,} bytes  {path.name}")


def add_part(folder: Path) -> None:
    """The starter's documents of one author as a corpus of their own."""
    text = lzma.decompress(resources.files("isoloss.corpus.starter").joinpath("books.txt.xz").read_bytes())
    documents = [part for part in text.decode("utf-8").split("\n\n\n") if AUTHOR in part[:200]]
    for number, document in enumerate(documents):
        files.write_text(folder / f"{number}.txt", document)
    library.add(PART, [folder])


def trained(scale: str, out: Path) -> Path:
    """The folder of the study at a scale of ``showdown.toml``, once every run has finished."""
    outcome = launch(str(SHOWDOWN / "showdown.toml"), scale=scale, out=out, workers=1, keep_weights=True)
    if outcome.failed or outcome.diverged or outcome.stopped:
        raise SystemExit(f"not every run finished: {outcome.failed or outcome.diverged or 'stopped'}")
    return out


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
        folder = run_folder(study, record.run_id)
        target = out / f"{record.family}-{record.seed}.safetensors"
        write_tensors(target, load_file(check_file(folder, record, WEIGHTS)), torch.float16)
        runs.append(run_of(record, folder, target.name))
        written.append(target)
    about = card(records[0], runs, [other_rate(record, records[0].tokens) for record in load(rates).records])
    files.write_json(out / CARD, about.model_dump(mode="json"))
    files.write_json(out / MANIFEST, {"sha256": {path.name: files.sha256(path) for path in written}})
    return [*written, out / MANIFEST]


def run_of(record: Record, folder: Path, name: str) -> Trained:
    """What the card says of a run whose weights are in the file ``name``."""
    last = record.evaluations[-1]
    positions = pl.read_parquet(check_file(folder, record, "positions.parquet")).filter(
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


def other_rate(record: Record, tokens: int) -> Tried:
    """What the card says of a run at another rate, with its tokens where they are not as many."""
    last = record.evaluations[-1]
    return Tried(
        family=record.family,
        learning_rate=record.learning_rate,
        seed=record.seed,
        loss=last.loss,
        loss_se=last.loss_se,
        tokens=record.tokens if record.tokens != tokens else None,
    )


def card(first: Record, runs: list[Trained], other_rates: list[Tried]) -> Card:
    """The card of all runs; what they share is taken from the ``first``."""
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


if __name__ == "__main__":
    main(*sys.argv[1:])
