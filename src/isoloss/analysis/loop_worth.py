"""What one more loop is worth, in parameters and in compute, from runs of equal depth (arXiv 2604.21106).

    L = E + A (N_once + r^phi N_rec)^-alpha + B D^-beta

At phi = 1 a loop is worth as much as as many layers of its own, at 0 nothing, below 0 it does harm.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.fit_rows import law_losses
from isoloss.analysis.points import of_families, of_one_exit, points_of
from isoloss.errors import Refusal, attempt
from isoloss.laws import Fit, FitStatus, fit
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval, Noise, seed_noise

NO_FLOOR = {"E": 1e-9}
MISSED = 2.0
"""Times the seeds' noise: a law that misses its runs by more says nothing of them."""
INPUTS = ("params_once", "params_recurrent", "recurrence", "tokens")


@dataclass(frozen=True)
class LoopWorth:
    """``phi``; and of ``loops`` instead of one: parameters that they are worth and compute that they cost.

    Both are shares of the model with one loop: ``worth`` = ((N_once + r^phi N_rec) / N) - 1, and ``cost``
    the same at phi = 1. ``points`` are the runs at every D. ``floor``: False where E is not told apart from
    0, and is 0 in the law.
    """

    points: pl.DataFrame
    law: Fit
    phi: Interval
    loops: int
    worth: Interval
    cost: float
    floor: bool = True


def measure(study: StudyData) -> LoopWorth:
    """Raises Refusal without such runs, and where they do not determine phi."""
    looped = of_families(points_of(study), "looped")
    points = looped.filter(pl.col("run_id").is_in(of_one_exit(study)))
    if points.is_empty():
        raise Refusal(
            "no loops were trained beside layers of their own at equal depth, so what a loop is worth is not "
            "measured",
            mend='add looped runs of one exit (exits = "last") with recurrence 1, 2 and 4',
        )
    return worth_of(points)


def worth_of(points: pl.DataFrame) -> LoopWorth:
    """The law fitted to the cooled ``points``; runs of one width and number of loops count once together.

    Raises Refusal where they do not determine phi, and where the law misses them by more than seeds can.
    """
    loops = pl.col("recurrence")
    recurrent = pl.when(loops > 1).then((pl.col("params_executed") - pl.col("params")) / (loops - 1))
    points = points.with_columns(recurrent.otherwise(pl.col("params")).alias("params_recurrent"))
    points = points.with_columns((pl.col("params") - pl.col("params_recurrent")).alias("params_once"))
    cell = points.select(pl.concat_str("d_model", pl.lit(" "), "recurrence")).to_series()
    inputs = {name: points[name].to_numpy().astype(float) for name in INPUTS}
    fit_law = partial(fit, "loop-equivalence", inputs, points["loss"], cluster=cell, level=LEVEL)
    law = attempt(fit_law)
    floor = not (isinstance(law, Refusal) and law.what.startswith("the floor"))
    if not floor:
        law = attempt(fit_law, fixed=NO_FLOOR)
    if isinstance(law, Refusal):
        raise Refusal(f"what a loop is worth is not known: {law.what}", mend=law.mend)
    low, high = law.intervals["phi"] or (None, None)
    if law.status is not FitStatus.CONVERGED or low is None or high is None:
        raise Refusal(f"what a loop is worth has no interval: {law.reason}", mend="add sizes or loops")
    missed = missed_by(law, points)
    noise = seed_noise(
        points.group_by("d_model", "recurrence", "tokens", maintain_order=True).agg("loss")["loss"]
    )
    if isinstance(noise, Noise) and missed > MISSED * noise.sd:
        raise Refusal(
            f"what a loop is worth is not known: the law misses its runs by {text.loss(missed)} nats, "
            f"{text.number(missed / noise.sd, 2)} times what seeds differ by",
            mend="train longer, so that early tokens do not bend the law, or sweep a rate for each r",
        )
    phi = Interval(law.params["phi"], low, high, points.height, law.df)
    looped = points.filter(loops > 1).sort("recurrence", "params")
    once, inside, more = (float(looped[name][0]) for name in INPUTS[:3])

    def share(exponent: float) -> float:
        return (once + more**exponent * inside) / (once + inside) - 1

    worth = Interval(share(phi.value), share(low), share(high), points.height, law.df)
    return LoopWorth(points, law, phi, int(more), worth, share(1.0), floor)


def worth_words(data: LoopWorth) -> str:
    """'A second loop is worth 20% more parameters (10% to 30%) and costs 52% more compute'."""
    one = data.loops == 2
    loops = "a second loop is" if one else f"{data.loops} loops instead of one are"
    cost = f"{'costs' if one else 'cost'} {text.percent(data.cost)} more compute"
    if not data.phi.decided:
        ends = text.interval(data.worth.interval, text.signed_percent)
        return f"{loops} not shown to be worth any parameters ({ends}) and {cost}"
    low, high = sorted(abs(end) for end in data.worth.ends if end is not None)
    change = f"{text.percent(abs(data.worth.value))} {'more' if data.worth.value > 0 else 'fewer'} parameters"
    return f"{loops} worth {change} ({text.interval((low, high), text.percent)}) and {cost}"


def phi_words(data: LoopWorth) -> str:
    """'φ = 0.46 (0.30 to 0.62)': 1 where a loop is worth a layer of its own, 0 where it is worth nothing."""
    write = partial(text.number, digits=2)
    return f"φ = {write(data.phi.value)} ({text.interval(data.phi.interval, write)})"


def doubts_words(data: LoopWorth) -> str:
    """What the law leaves out, and by how much it misses its own runs, in sentences."""
    missed = text.loss(missed_by(data.law, data.points))
    misfit = f"That law misses its own runs by {missed} nats (root mean square)."
    return misfit if data.floor else f"A floor E is not told apart from 0, so that the law has none. {misfit}"


def missed_by(law: Fit, points: pl.DataFrame) -> float:
    """Root mean square of what the law leaves, in nats."""
    return float(np.sqrt(np.mean((points["loss"] - law_losses(law, points)).to_numpy() ** 2)))
