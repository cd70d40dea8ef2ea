"""Public tables of runs as their authors publish them, for benchmarks that predict the largest runs."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from isoloss.laws import Array
from isoloss.sources import columns_for

LEAST_RATIO = 1.0
"""Tokens a parameter: below, a run has hardly left its warm-up."""


@dataclass(frozen=True)
class Table:
    """Runs of one experiment; tables of one ``family`` share models or authors.

    ``more``: sizes beside N and D.
    """

    family: str
    name: str
    params: Array
    tokens: Array
    loss: Array
    cluster: np.ndarray | None = None
    more: Mapping[str, Array] = field(default_factory=dict)


Reader = Callable[[Path], Iterator[Table]]


def tables(folder: Path, readers: tuple[Reader, ...]) -> Iterator[Table]:
    """Every table that is there."""
    for read in readers:
        try:
            yield from read(folder)
        except FileNotFoundError as absent:
            print(f"# absent: {absent.filename}", file=sys.stderr)


GADRE_LOSSES = ("loss_openlm", "loss_paloma_c4_en", "loss_paloma_falcon-refinedweb", "loss_paloma_ptb")
GADRE_FRESH = ("loss_paloma_dolma_100_programing_languages", "loss_paloma_redpajama", "loss_de-en")


def others(folder: Path) -> Iterator[Table]:
    """Tables that the intervals' constants were not chosen on: other losses and counts, and Step Law."""
    yield from gadre(folder, GADRE_LOSSES)
    runs = csv(folder / "porian" / "isoflop_points.csv")
    runs = runs.filter(pl.col("param_count") == "attention")
    for key, own in runs.group_by("hparams", "warmup", "decay", maintain_order=True):
        yield table("porian", f"{' '.join(map(str, key))} attention", own, "n", "t", "loss")
    runs = csv(folder / "steplaw" / "dense_lr_bs_loss.csv")
    yield table("steplaw", "best of each cell", runs.group_by("N", "D").min(), "N", "D", "smooth loss")


def fresh(folder: Path) -> Iterator[Table]:
    """Tables that nothing was chosen on: losses on texts of other kinds."""
    yield from gadre(folder, GADRE_FRESH)


def csv(path: Path) -> pl.DataFrame:
    if not path.exists():
        raise FileNotFoundError(2, "absent", str(path))
    return pl.read_csv(path, infer_schema_length=None)


def gadre(folder: Path, losses: tuple[str, ...] = ("loss_c4_val",)) -> Iterator[Table]:
    runs = csv(folder / "gadre-overtraining" / "runs_104.csv")
    for loss in losses:
        for (corpus,), own in runs.group_by("dataset", maintain_order=True):
            name = f"{corpus} {loss}".removesuffix(" loss_c4_val")
            yield table("gadre", name, own, "params", "tokens", loss)


def chinchilla(folder: Path) -> Iterator[Table]:
    """One reading of the figure: the other table of it holds the same points."""
    runs = csv(folder / "epoch-chinchilla" / "svg_extracted_data.csv").sort("loss").head(240)
    runs = runs.with_columns((pl.col("Training FLOP") / (6 * pl.col("Model Size"))).alias("D"))
    yield table("chinchilla", "epoch", runs, "Model Size", "D", "loss")


def isoflops(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "openathena-isoflops" / "isoflops_transform.csv").filter(~pl.col("outlier"))
    for (name,), own in runs.filter(~pl.col("experiment").str.contains("chinchilla")).group_by(
        "experiment", maintain_order=True
    ):
        yield table("marin", str(name).split("__")[1], own, "params", "tokens", "loss")


def porian(folder: Path) -> Iterator[Table]:
    """Each setting under one count of parameters, the standard one where it is there."""
    runs = csv(folder / "porian" / "isoflop_points.csv")
    keys = ["dataset", "hparams", "warmup", "decay"]
    for key, own in runs.group_by(keys, maintain_order=True):
        count = "standard" if (own["param_count"] == "standard").any() else own["param_count"][0]
        own = own.filter(pl.col("param_count") == count)
        own = own.filter(pl.col("val") == own["val"][0])
        yield table("porian", " ".join(map(str, key)), own, "n", "t", "loss")


def xlstm(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "xlstm" / "isoflop_runs.csv")
    whole = (pl.col("final_val_loss") < 10) & (pl.col("last_step") >= pl.col("planned_steps"))
    for (name,), own in runs.filter(whole).group_by("data_set", maintain_order=True):
        yield table("xlstm", str(name), own, "num_params", "tokens", "final_val_loss")


def datablations(folder: Path) -> Iterator[Table]:
    runs = csv(folder / "datablations" / "runs.csv").filter(
        (pl.col("set") == "all_296") & (pl.col("epochs") <= 1.0)
    )
    yield table("datablations", "one epoch", runs, "params", "tokens", "val_loss")


def repeated(folder: Path, most_epochs: float) -> Table:
    """Runs over repeated data, each beside its unique tokens."""
    enough = pl.col("tokens") >= LEAST_RATIO * pl.col("params")
    runs = csv(folder / "datablations" / "runs.csv").filter(enough, pl.col("set") == "all_296")
    runs = runs.filter(pl.col("epochs") <= most_epochs)
    names = ("params", "tokens", "unique_tokens", "val_loss")
    N, D, unique, loss = (runs[name].to_numpy().astype(float) for name in names)
    more = {"unique_tokens": np.minimum(unique, D)}
    return Table("datablations", f"to {most_epochs:g} epochs", N, D, loss, more=more)


def table(family: str, name: str, runs: pl.DataFrame, params: str, tokens: str, loss: str) -> Table:
    runs = runs.select(params=params, tokens=tokens, loss=loss).drop_nulls()
    read = columns_for("chinchilla", runs.filter(pl.col("tokens") >= LEAST_RATIO * pl.col("params")))
    return Table(family, name, read.inputs["params"], read.inputs["tokens"], read.loss)


CHOSEN_ON: tuple[Reader, ...] = (gadre, chinchilla, isoflops, porian, xlstm, datablations)
