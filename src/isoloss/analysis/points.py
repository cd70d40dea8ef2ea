"""The points that a study compares: finished runs at the end of a cooldown, at one number of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isoloss import text
from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, FitStatus, fit
from isoloss.noise import Key, nested_noise
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Noise

LEVEL_WORDS = text.level(LEVEL)
"""Of every interval of a study's figures and tables."""
EQUAL_DEPTH = ", layers for loops"
"""Ends the name of curves whose runs have fewer layers the more loops they have."""


@dataclass(frozen=True)
class Curve:
    """One curve of loss against N: its points (params, seed, loss), and its law or why there is none."""

    name: str
    family: str
    points: pl.DataFrame
    fit: Fit | Refusal

    @property
    def law(self) -> str:
        if isinstance(self.fit, Refusal):
            return "no law fitted"
        alone = ", a curve alone" if self.fit.status is FitStatus.CURVE_ONLY else ""
        return self.fit.formula() + alone

    @property
    def label(self) -> str:
        """Its name with what its law says of its own last doubling of N: its constants say nothing by eye."""
        if self.change is None:
            return self.name
        return f"{self.name}: {text.signed_percent(self.change)} for twice N, by its law"

    @property
    def change(self) -> float | None:
        """Of the loss over the last doubling of N, a share; None without a law."""
        if isinstance(self.fit, Refusal):
            return None
        half, whole = (float(self.fit.predict(params=params).loss) for params in (self.most / 2, self.most))
        return whole / half - 1

    @property
    def most(self) -> float:
        """Its largest N."""
        return float(self.points["params"].to_numpy().max())


def curve_of() -> pl.Expr:
    """Which curve a row belongs to: LSTMs by layers, looped models by loops, other families as a whole."""
    layers, loops = (pl.col(name).cast(pl.String) for name in ("n_layer", "recurrence"))
    return (
        pl.when(pl.col("family") == "transformer")
        .then(pl.lit("Transformer"))
        .when(pl.col("family") == "lstm")
        .then(pl.concat_str(layers, pl.lit("-layer LSTM")))
        .when(pl.col("family") == "looped")
        .then(pl.concat_str(pl.lit("looped, T_m = "), loops))
        .otherwise(pl.col("family"))
        .alias("curve")
    )


def curve_in_study() -> pl.Expr:
    """``curve_of`` the loss table's rows; a shorter context than the study's is a curve of its own."""
    short = pl.concat_str(curve_of(), pl.lit(", context "), pl.col("context").cast(pl.String))
    longest = pl.col("context") == pl.col("context").max()
    return pl.when(longest).then(curve_of()).otherwise(short).alias("curve")


def cooled_points(table: pl.DataFrame, equal_depth: Sequence[str] = ()) -> pl.DataFrame:
    """Evaluations at the end of a cooldown, of finished runs, at each size's best learning rate.

    Runs of one size at other rates are no seeds of it. The runs ``equal_depth`` change layers with loops, so
    beside others they are no curve over N with them. Raises Refusal if no point is left.
    """
    points = finished_points(table)
    if points.is_empty():
        raise Refusal(
            "no run has finished with an evaluation at the end of a cooldown",
            mend="let the study run on, then report",
        )
    order = ["family", "n_layer", "recurrence", "params", "seed", "tokens"]
    named = points.with_columns(curve_in_study())
    alike = pl.col("run_id").is_in(equal_depth)
    if named.select((~alike & (pl.col("family") == "looped")).any()).item():
        apart = pl.concat_str("curve", pl.lit(EQUAL_DEPTH))
        named = named.with_columns(pl.when(alike).then(apart).otherwise("curve").alias("curve"))
    return best_rate(named).sort(order, nulls_last=True)


def points_of(study: StudyData) -> pl.DataFrame:
    """``cooled_points`` of a study. Looped runs of one exit beside others are curves of their own."""
    if "points" not in study.derived:
        study.derived["points"] = cooled_points(study.table(), of_one_exit(study))
    return study.derived["points"]


def of_one_exit(study: StudyData) -> list[str]:
    """Ids of the looped runs that predict after their last loop alone: the design at equal depth."""
    shapes = {run["run_id"]: run["settings"]["shape"] for run in study.plan["runs"]}
    return [run_id for run_id, shape in shapes.items() if shape.get("exits") == "last"]


def best_rate(points: pl.DataFrame) -> pl.DataFrame:
    """Of sizes trained at several learning rates, the rate with the lowest mean loss at its largest D."""
    best = rates_of(points).filter(pl.col("chosen"))
    return points.join(best, on=["curve", "params", "learning_rate"], how="semi")


def rates_of(points: pl.DataFrame) -> pl.DataFrame:
    """Mean loss of each size and learning rate at its largest D; ``chosen`` is the size's best rate."""
    size = ["curve", "params"]
    last = points.filter(pl.col("tokens") == pl.col("tokens").max().over(*size, "learning_rate"))
    rates = last.group_by(*size, "learning_rate").agg(pl.col("loss").mean(), pl.len().alias("seeds"))
    rates = rates.sort(*size, "loss", "learning_rate")
    return rates.with_columns((pl.int_range(pl.len()).over(size) == 0).alias("chosen"))


def sweeps(table: pl.DataFrame) -> pl.DataFrame:
    """``rates_of`` the sizes that were trained at more than one learning rate, in order of rate."""
    points = finished_points(table).with_columns(curve_in_study())
    rates = rates_of(points).filter(pl.len().over("curve", "params") > 1)
    return rates.sort("curve", "params", "learning_rate")


def finished_points(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter((pl.col("status") == "finished") & pl.col("cooled") & pl.col("loss").is_not_null())


def of_families(points: pl.DataFrame, *families: str) -> pl.DataFrame:
    """Rows of these families. Raises Refusal naming the ones without a row."""
    missing = [family for family in families if points.filter(pl.col("family") == family).is_empty()]
    if missing:
        raise Refusal(
            f"the study holds no finished {' and no '.join(missing)} run to compare",
            mend=f"add {' and '.join(missing)} runs of the same D, or let them finish without diverging",
        )
    return points.filter(pl.col("family").is_in(families))


def shared_tokens(points: pl.DataFrame, column: str = "family") -> list[int]:
    """Every D that most values of ``column`` reached, ascending. Raises Refusal if no two share one."""
    reached = points.group_by("tokens").agg(pl.col(column).n_unique().alias("values"))
    most = int(reached["values"].to_numpy().max())
    if most < min(2, points[column].n_unique()):
        names = text.listed(list(map(str, points[column].unique().sort())))
        raise Refusal(
            f"no number of training tokens is shared by two of {names}",
            mend="give every run of the study the same D points",
        )
    return reached.filter(pl.col("values") == most)["tokens"].sort().to_list()


def main_tokens(points: pl.DataFrame, column: str = "family") -> int:
    """Of the shared D, the largest that more than half as many sizes reached as any: some stop earlier."""
    shared = points.filter(pl.col("tokens").is_in(shared_tokens(points, column)))
    sizes = shared.group_by("tokens").agg(pl.struct("curve", "params").n_unique().alias("sizes"))
    most = sizes.filter(2 * pl.col("sizes") > pl.col("sizes").max())
    return int(most["tokens"].sort()[-1])


def noise_by_size(points: pl.DataFrame, value: str = "loss") -> dict[Key, Noise] | Refusal:
    """Seed noise at every (family, curve, params) of ``points``, which hold one D."""
    groups = points.group_by("family", "curve", "params", maintain_order=True)
    return nested_noise({size: rows[value].to_numpy() for size, rows in groups})


def means(points: pl.DataFrame) -> pl.DataFrame:
    """Mean loss and number of seeds per curve and size, in order of size."""
    grouped = points.group_by("curve", "family", "n_layer", "recurrence", "params", maintain_order=True)
    return grouped.agg(pl.col("loss").mean(), pl.len().alias("seeds")).sort("params")


def best_curve(points: pl.DataFrame, family: str) -> str:
    """Of a family's curves at one D, such as depths of LSTMs, the one with most sizes, then lowest loss.

    Lowest, on average over its sizes, against a line in log N through all sizes of the family.
    """
    mean = means(points.filter(pl.col("family") == family))
    log_n, loss = np.log(mean["params"].to_numpy()), mean["loss"].to_numpy()
    line = np.polyfit(log_n, loss, min(1, len(np.unique(log_n)) - 1))
    above = mean.with_columns(pl.Series("above", loss - np.polyval(line, log_n)))
    curves = above.group_by("curve").agg(pl.len().alias("sizes"), pl.col("above").mean())
    return curves.sort("sizes", -pl.col("above"), "curve")["curve"][-1]


def curves_of(points: pl.DataFrame) -> tuple[Curve, ...]:
    """Every curve of points at one D with its law, those of a family together."""
    curves: list[Curve] = []
    for family in points["family"].unique(maintain_order=True):
        of_family = points.filter(pl.col("family") == family)
        for name in of_family["curve"].unique(maintain_order=True):
            rows = of_family.filter(pl.col("curve") == name).select("params", "seed", "loss")
            rows = rows.sort("params", "seed")
            curves.append(Curve(name, family, rows, fit_over_params(rows)))
    return tuple(curves)


def fit_over_params(points: pl.DataFrame) -> Fit | Refusal:
    """The law of loss against N at one D, seeds of one size being one cluster.

    ``power-floor`` where the data tell its floor from 0, else ``power``, else the refusal of the latter.
    Where the seeds contradict ``power``, the curve of ``power-floor`` alone.
    """
    inputs, options = {"params": points["params"]}, {"cluster": points["params"], "level": LEVEL}
    law = attempt(fit, "power-floor", inputs, points["loss"], **options)
    if isinstance(law, Refusal):
        law = attempt(fit, "power", inputs, points["loss"], **options)
        if isinstance(law, Fit) and misses(law):
            law = attempt(fit, "power-floor", inputs, points["loss"], **options, curve_only=True)
    if isinstance(law, Fit) and misses(law):
        return Refusal(
            f"{law.law} misses its own sizes by more than seeds differ", mend="read the points; add sizes"
        )
    return law


def misses(law: Fit) -> bool:
    """Whether the means of the sizes lie off their law farther than seeds allow, by an F test."""
    return law.seeds is not None and law.seeds.p < 1 - LEVEL


def seeds_phrase(points: pl.DataFrame) -> str:
    """'2 seeds a size', '2 to 3 seeds a size', 'one seed a size'."""
    counts = means(points)["seeds"].to_numpy()
    low, high = int(counts.min()), int(counts.max())
    if high == 1:
        return "one seed a size"
    return f"{low} seeds a size" if low == high else f"{low} to {high} seeds a size"
