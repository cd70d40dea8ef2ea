"""How a family uses context: a law in the token index for each size, and how it changes with size.

Every size was measured on the same targets at every token index, in blocks of text. Laws and slopes are made
of the means over seeds, then again without each block in turn: their intervals hold for other text, for these
models. What is said over sizes also counts how the sizes scatter, and so the seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import exp

import numpy as np
import polars as pl

from isoloss import text
from isoloss.analysis.context_steps import ContextSteps, steps_of
from isoloss.analysis.families import by_context, name_of
from isoloss.analysis.fit_rows import law_at
from isoloss.analysis.gap_words import size_words
from isoloss.analysis.points import main_tokens, of_families, points_of
from isoloss.analysis.sliding import (
    SlidingProfile,
    block_mean,
    jackknife_se,
    left_out,
    octaves,
    sliding_profiles,
)
from isoloss.distributions import t_quantile
from isoloss.errors import Refusal, attempt
from isoloss.laws import Array, Fit, FitStatus, fit
from isoloss.records import StudyData
from isoloss.stats import LEVEL, Interval, t_interval

FACTOR = 2.0
"""An exponent is known if its interval ends within this factor of it: no formula is shown of another."""
LEAST_SIZES = 3
"""A slope over fewer sizes has no scatter around it."""


@dataclass(frozen=True)
class ContextSize:
    """The seeds of one size and context; ``law``: a + b T^-p with t intervals over blocks of text.

    ``left_out_B``: the exponent without each block; empty where the law is refused.
    """

    profiles: tuple[SlidingProfile, ...]
    law: Fit | Refusal
    left_out_B: Array

    @property
    def params(self) -> int:
        return self.profiles[0].params

    @property
    def context(self) -> int:
        return self.profiles[0].context

    def mean_B(self, first: int, last: int) -> Array:
        return np.mean([profile.mean_B(first, last) for profile in self.profiles], axis=0)

    @property
    def known(self) -> Fit | None:
        """The law, where its exponent is known to a factor of FACTOR."""
        if isinstance(self.law, Refusal) or not len(self.left_out_B):
            return None
        low, high = self.law.intervals["p"] or (None, None)
        return self.law if low is not None and high is not None and high < FACTOR**2 * low else None

    @property
    def formula(self) -> str:
        """'4.00 + 3.20 T^-0.47', or nothing where the data leave it open."""
        return "" if self.known is None else "{a:.2f} + {b:.2f} T^-{p:.2f}".format(**self.known.params)

    @cached_property
    def curve(self) -> pl.DataFrame:
        """By group of positions: first, last, position (geometric middle), loss, and its ``weight``.

        ``lowest_seed`` and ``highest_seed`` are the losses of one seed.
        """
        one = self.profiles[0]
        columns = {"first": one.first_G, "last": one.last_G, "position": one.position_G}
        loss_SG = np.array([profile.loss_GB.mean(axis=1) for profile in self.profiles])
        ends = {"lowest_seed": loss_SG.min(axis=0), "highest_seed": loss_SG.max(axis=0)}
        return pl.DataFrame({**columns, "loss": loss_SG.mean(axis=0), "weight": log_width(one), **ends})


@dataclass(frozen=True)
class JointLaw:
    """E + A N^-alpha + B N^-eta T^-(p N^q) over all sizes.

    Fitted to all but the largest it misses that by ``error`` nats on average; taking the next
    smaller size's curve misses it by ``nearest``.
    """

    law: Fit
    error: float
    nearest: float


@dataclass(frozen=True)
class Contexts:
    """``short``: sizes of a shorter context. Slopes are for tenfold N. ``first``: of the study's families.

    ``trend``: of the exponent. ``late``: of the loss at the last octave of T minus that at T = 1.
    """

    family: str
    first: bool
    tokens: int
    context: int
    sizes: tuple[ContextSize, ...]
    short: tuple[ContextSize, ...]
    trend: Interval | Refusal
    late: Interval | Refusal
    joint: JointLaw | Refusal
    steps: ContextSteps | Refusal

    @property
    def suffix(self) -> str:
        """Ends the names of this family's figures; the first family has the plain names."""
        return "" if self.first else f"-{self.family}"

    @property
    def whose(self) -> str:
        """Begins a figure's title where it speaks of a user's family."""
        return "" if self.family == "transformer" else f"{name_of(self.family)}: "


def measure(study: StudyData) -> dict[str, Contexts | Refusal]:
    """By family, in the plan's order."""
    families = by_context(study)
    return {
        family: attempt(measure_family, study, family, first=family == families[0]) for family in families
    }


def measure_family(study: StudyData, family: str = "transformer", *, first: bool = True) -> Contexts:
    """Raises Refusal without a finished run, or where none was measured on the same targets."""
    points = of_families(points_of(study), family)
    tokens = main_tokens(points)
    points = points.filter(pl.col("tokens") == tokens)
    everyone = sizes_of(sliding_profiles(study, points))
    context = max(size.context for size in everyone)
    sizes = tuple(size for size in everyone if size.context == context)
    short = tuple(size for size in everyone if size.context < context)
    runs = points.filter(pl.col("run_id").is_in([profile.run_id for profile in sizes[-1].profiles]))
    trend = attempt(trend_of, [size for size in sizes if size.known])
    return Contexts(
        family=family,
        first=first,
        tokens=tokens,
        context=context,
        sizes=sizes,
        short=short,
        trend=trend,
        late=attempt(late_slope, sizes, context),
        joint=attempt(joint_law, sizes, steeper=isinstance(trend, Interval) and trend.decided),
        steps=attempt(steps_of, study, runs),
    )


def sizes_of(profiles: Sequence[SlidingProfile]) -> list[ContextSize]:
    """Seeds of one size together, in the order of the profiles."""
    sizes: dict[tuple[int, int], list[SlidingProfile]] = {}
    for profile in profiles:
        sizes.setdefault((profile.context, profile.params), []).append(profile)
    return [ContextSize(tuple(seeds), *law_of(seeds)) for seeds in sizes.values()]


def log_width(profile: SlidingProfile) -> Array:
    """Every octave of the token index counts alike in a fit."""
    return np.log((profile.last_G + 0.5) / (profile.first_G - 0.5))


def law_of(seeds: Sequence[SlidingProfile]) -> tuple[Fit | Refusal, Array]:
    """a + b T^-p of the mean over seeds, and its exponent without each block of text."""
    loss_GB = np.mean([profile.loss_GB for profile in seeds], axis=0)
    inputs = {"position": seeds[0].position_G}
    fit_loss = partial(fit, "context", inputs, weights=log_width(seeds[0]), level=LEVEL, curve_only=True)
    law = attempt(fit_loss, loss_GB.mean(axis=1))
    if isinstance(law, Refusal) or law.status is not FitStatus.CONVERGED:
        return law, np.array([])
    refits = [fit_loss(loss_G, starts=[law.params]).params for loss_G in left_out(loss_GB)]
    log_ses = {name: jackknife_se(np.log([params[name] for params in refits])) for name in law.params}
    t = t_quantile(LEVEL, len(refits) - 1)
    ends: dict[str, tuple[float | None, float | None] | None] = {
        name: (value * exp(-t * log_ses[name]), value * exp(t * log_ses[name]))
        for name, value in law.params.items()
    }
    errors: dict[str, float | None] = {name: value * log_ses[name] for name, value in law.params.items()}
    known = {"df": len(refits) - 1, "clusters": len(refits)}
    # What the fit warned of are intervals of its own, which those over blocks replace.
    law = replace(law, intervals=ends, standard_errors=errors, warnings=(), **known)
    return law, np.array([params["p"] for params in refits])


def slope_for_tenfold(sizes: Sequence[ContextSize], value_Z: Array, left_out_ZB: Array) -> Interval:
    """Slope against log10 N over sizes Z. se^2: scatter of sizes about the line + jackknife over blocks.

    What is each size's own counts in both, so the interval errs to the wide side. Raises Refusal below three
    sizes.
    """
    if len(sizes) < LEAST_SIZES:
        raise Refusal(
            f"only {text.plural(len(sizes), 'size')} can be compared, too few for a trend with N",
            mend="train more sizes, or take losses of more targets",
        )
    x_Z = np.log10([size.params for size in sizes])
    x_Z -= x_Z.mean()
    weight_Z, df = x_Z / np.sum(x_Z**2), len(sizes) - 2
    slope = float(weight_Z @ value_Z)
    scatter = np.sum((value_Z - value_Z.mean() - slope * x_Z) ** 2) / df / np.sum(x_Z**2)
    se = float(np.sqrt(scatter + jackknife_se(weight_Z @ left_out_ZB) ** 2))
    return t_interval(slope, se, len(sizes), df)


def trend_of(sizes: Sequence[ContextSize]) -> Interval:
    """How much the exponent p changes for tenfold N, of sizes that determine it."""
    p_Z = np.array([size.law.params["p"] for size in sizes if isinstance(size.law, Fit)])
    return slope_for_tenfold(sizes, p_Z, np.array([size.left_out_B for size in sizes]))


def late_slope(sizes: Sequence[ContextSize], context: int) -> Interval:
    """How much more tenfold N changes the loss at the last octave of token indices than at token 1."""
    late_ZB = np.array([size.mean_B(*octaves(context)[-1]) - size.mean_B(1, 1) for size in sizes])
    return slope_for_tenfold(sizes, late_ZB.mean(axis=1), left_out(late_ZB).T)


def joint_law(sizes: Sequence[ContextSize], *, steeper: bool) -> JointLaw:
    """``steeper``: the exponent may grow with N. Raises Refusal with too few sizes, or as ``fit`` does."""
    if len(sizes) < LEAST_SIZES + 1:
        raise Refusal(
            f"{len(sizes)} sizes are too few for a law in N and T that is judged on one left out",
            mend="train four sizes or more",
        )
    *others, largest = sizes
    free = ("q",) if steeper else ()
    position_G, loss_G, weight_G = (largest.curve[name].to_numpy() for name in ("position", "loss", "weight"))
    predicted_G = law_at(
        fit_jointly(others, free),
        {"params": np.full(len(position_G), float(largest.params)), "position": position_G},
    )
    nearest_G = others[-1].curve["loss"].to_numpy()
    errors = [float(np.average(np.abs(each - loss_G), weights=weight_G)) for each in (predicted_G, nearest_G)]
    return JointLaw(fit_jointly(sizes, free), *errors)


def fit_jointly(sizes: Sequence[ContextSize], free: Sequence[str]) -> Fit:
    rows = pl.concat(size.curve.with_columns(params=pl.lit(float(size.params))) for size in sizes)
    inputs = {name: rows[name].to_numpy() for name in ("params", "position")}
    return fit("context-params", inputs, rows["loss"], weights=rows["weight"], free=free, curve_only=True)


def half_error(size: ContextSize) -> float:
    """Mean nats by which a + b T^-p, fitted to half the context, misses the rest. Refuses as ``fit``."""
    rows = size.curve
    seen, rest = (
        rows.filter(pl.col("last") <= size.context // 2),
        rows.filter(pl.col("first") > size.context // 2),
    )
    law = fit(
        "context",
        {"position": seen["position"].to_numpy()},
        seen["loss"],
        weights=seen["weight"],
        curve_only=True,
    )
    away = law_at(law, {"position": rest["position"].to_numpy()}) - rest["loss"].to_numpy()
    return float(np.average(np.abs(away), weights=rest["weight"].to_numpy()))


def short_minus_long(data: Contexts) -> tuple[ContextSize, Interval] | None:
    """The largest size of both contexts: the short one's loss at its last octave minus the long one's."""
    both = [(short, long) for short in data.short for long in data.sizes if short.params == long.params]
    if not both:
        return None
    short, long = both[-1]
    ends = octaves(short.context)[-1]
    return short, block_mean(short.mean_B(*ends) - long.mean_B(*ends))


def law_verdict(data: Contexts) -> str:
    """For whom the loss goes on falling longer along the context, which a smaller exponent p means."""
    if isinstance(data.trend, Refusal):
        return f"whether larger models gain longer from context is not known: {data.trend.what}"
    if not data.trend.decided:
        return "it is not shown that larger models gain longer from context"
    return f"{'smaller' if data.trend.value > 0 else 'larger'} models gain longer from context"


def law_sentence(data: Contexts) -> str:
    """The same with the change of the exponent, as one clause."""
    if isinstance(data.trend, Refusal):
        return law_verdict(data)
    change = f"{text.signed(data.trend.value)} ({text.interval(data.trend.ends, text.signed)})"
    return f"{law_verdict(data)}: the exponent p changes by {change} for tenfold N"


def sizes_verdict(data: Contexts) -> str:
    """What tenfold N is worth late in the context, beside at its first token."""
    if isinstance(data.late, Refusal):
        return f"what size gives late tokens is not known: {data.late.what}"
    first, last = octaves(data.context)[-1]
    where = f"at tokens {first}–{last} than at token 1"
    if not data.late.decided:
        return f"ten times the parameters are not shown to lower the loss more {where}"
    more = "more" if data.late.value < 0 else "less"
    return f"ten times the parameters lower the loss by {size_words(data.late)} {more} {where}"


def slope_words(slope: Interval | Refusal, of: str) -> str:
    """'For tenfold N the exponent changes by +0.06 (95% interval +0.02 to +0.11)'; empty for none."""
    if isinstance(slope, Refusal):
        return ""
    ends = text.interval(slope.ends, text.signed)
    return f"For tenfold N {of} changes by {text.signed(slope.value)} ({text.level(LEVEL)} interval {ends})"


def trend_words(data: Contexts) -> str:
    return slope_words(data.trend, "the exponent")


def late_words(data: Contexts) -> str:
    first, last = octaves(data.context)[-1]
    return slope_words(data.late, f"the loss at tokens {first}–{last} minus that at token 1")
