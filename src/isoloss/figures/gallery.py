"""Every figure of the package by name: what `isoloss plot`, ``study.plot`` and ``fit.plot`` draw."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import altair as alt

from isoloss.analysis import refits
from isoloss.analysis.frontier import Source, largest_plan
from isoloss.analysis.study import StudyAnalysis, analyse, of_pair
from isoloss.errors import InputError, Refusal
from isoloss.figures import (
    backtest,
    compared_laws,
    context_laws,
    correlations,
    exponents,
    fit_residuals,
    frontier_fit,
    gap_by_tokens,
    hidden_runs,
    iso_loss,
    isoflop,
    learning_curves,
    loop_worth,
    looped_grid,
    loss_by_params,
    loss_by_position,
    loss_by_ratio,
    parameter_cloud,
    plan,
    profiles,
    render,
    shape,
    tokens_per_param,
)
from isoloss.figures import fit as fit_figures
from isoloss.figures.figure import Figure
from isoloss.figures.style import configured, title_of
from isoloss.laws import Fit
from isoloss.plans import Plan
from isoloss.plans.forecast import forecaster_of
from isoloss.records import StudyData, load, reference
from isoloss.sources.fits import read_fit

Data = TypeVar("Data")
AnyKind = TypeVar("AnyKind", "Kind", "StudyKind")


@dataclass(frozen=True)
class Kind:
    """``shows``: in a line what is seen. ``make``: of a fit and laws beside it."""

    shows: str
    make: Callable[..., Sequence[Figure]]


@dataclass(frozen=True)
class StudyKind:
    """``draw`` is given a ``part`` of an analysed study, or what that says of each family or pair of them."""

    shows: str
    part: str
    draw: Callable[[Any], Figure]
    pairs: bool = False

    def data(self, analysis: StudyAnalysis) -> list[Any]:
        """What it draws, or refusals; nothing where the study planned nothing of the kind."""
        part = getattr(analysis, self.part)
        each = [of_pair(part, pair) for pair in analysis.pairs] if self.pairs else [part]
        if isinstance(part, Mapping):
            each = list(part.values())
        return [data for data in each if data is not None]

    def make(self, analysis: StudyAnalysis) -> list[Figure]:
        return [self.draw(_there(data)) for data in self.data(analysis)]


def _there(data: Data | Refusal) -> Data:
    if isinstance(data, Refusal):
        raise data
    return data


def _alone(draw: Callable[[Any], Figure]) -> Callable[[Source, Sequence[Source]], list[Figure]]:
    """A figure that has no room for other laws."""

    def make(source: Source, others: Sequence[Source]) -> list[Figure]:
        if others:
            raise InputError("this figure draws one law", where=others[0].law, mend="name one source")
        return [draw(source)]

    return make


def _with_others(
    draw: Callable[[Fit, Sequence[Fit]], Figure],
) -> Callable[[Fit, Sequence[Source]], list[Figure]]:
    def make(fit: Fit, others: Sequence[Source]) -> list[Figure]:
        laws = [law for law in others if isinstance(law, Fit)]
        if len(laws) < len(others):
            raise InputError("this figure draws laws alone", where="a table", mend="fit a law to it")
        return [draw(fit, laws)]

    return make


def _penalty(source: Source, largest: Plan) -> Figure:
    return plan.penalty(largest, source.loss_unit)


def _exponents(fit: Fit, others: Sequence[Fit]) -> Figure:
    return exponents.of_fits([fit, *others]) if others else exponents.figure(fit, refits.objectives(fit))


def _iso_loss(source: Source, others: Sequence[Source]) -> list[Figure]:
    if len(others) > 1:
        raise InputError("this figure draws two laws at most", where=others[1].law, mend="name two sources")
    return [iso_loss.figure(source, largest_plan(source), *others)]


def _without_a_law(source: Source, which: int) -> Figure:
    """The curves by budget, the first, or the frontier, the last."""
    level = source.level if isinstance(source, Fit) else 0.9
    drawn = isoflop.pictures(refits.without_a_law(source.data, level), source.loss_unit)
    if len(drawn) < 2:
        raise Refusal("the runs form no budgets", mend="plot runs of several sizes at equal compute")
    return drawn[which]


def _planned(draw: Callable[..., Figure]) -> Callable[[Source, Sequence[Source]], list[Figure]]:
    return _alone(lambda source: draw(source, largest_plan(source)))


_grid = looped_grid.grid_figure
STUDY = {
    "gap-by-tokens": StudyKind(
        "one family's loss minus another's, over D", "gaps", gap_by_tokens.figure, pairs=True
    ),
    "loss-by-params": StudyKind("loss over N, families and depths", "by_params", loss_by_params.figure),
    "loss-by-position": StudyKind(
        "loss along the context, and the difference", "by_position", loss_by_position.figure, pairs=True
    ),
    "context-laws": StudyKind("a + b T^-p by size", "contexts", context_laws.laws_figure),
    "context-steps": StudyKind("loss over steps by token index", "contexts", context_laws.steps_figure),
    "context-sizes": StudyKind("loss over N by token index", "contexts", context_laws.sizes_figure),
    "looped-grid": StudyKind("total loss over tokens, T_m by N, real and predicted", "loops", _grid),
    "looped-grid-linear": StudyKind("the same over linear tokens", "loops", partial(_grid, log=False)),
    "looped-grid-expected": StudyKind(
        "the same of expected cross-entropy", "loops", partial(_grid, part="expected")
    ),
    "looped-grid-last-exit": StudyKind(
        "the same of the last exit", "loops", partial(_grid, part="last_exit")
    ),
    "looped-residuals": StudyKind("real minus predicted total loss", "loops", looped_grid.residual_figure),
    "looped-exits": StudyKind("what loops change in each loss", "loops", looped_grid.exits_figure),
    "loop-worth": StudyKind("loops at equal depth, and phi", "loops", loop_worth.study_figure),
    "shape": StudyKind("loss increase over three ratios of shape", "shape", shape.figure),
    "learning-curves": StudyKind(
        "loss over compute, every run, and their envelope",
        "study",
        learning_curves.figure,
    ),
}
FIT = {
    "law": Kind("the law among its runs", _with_others(fit_figures.law)),
    "real-against-predicted": Kind(
        "each run's loss against the law's", _alone(fit_residuals.real_against_predicted)
    ),
    "residuals": Kind("what the law leaves, along each input", _alone(fit_residuals.residuals)),
    "correlations": Kind("how the parameters hang together", _alone(correlations.figure)),
    "profiles": Kind("how sharply each parameter is known", _alone(profiles.figure)),
    "iso-loss": Kind("lines of equal loss over C and N, with the frontier", _iso_loss),
    "plan-frontier": Kind("the least loss over compute", _planned(plan.frontier)),
    "plan-allocation": Kind("the best N, D and D / N over compute", _planned(plan.allocation)),
    "plan-penalty": Kind("what another size costs", _planned(_penalty)),
    "design": Kind("which runs to buy next, over N and D", _alone(frontier_fit.bought_figure)),
    "backtest": Kind(
        "hidden runs against their predictions", _alone(lambda fit: backtest.figure(refits.hidden_runs(fit)))
    ),
    "hidden-runs": Kind(
        "hidden runs one by one, with errors", _alone(lambda fit: hidden_runs.figure(refits.hidden_runs(fit)))
    ),
    "compared-laws": Kind(
        "laws of the same inputs on hidden runs",
        _alone(lambda fit: compared_laws.figure(refits.compared(fit))),
    ),
    "tokens-per-param": Kind("best D / N over compute, several laws", _with_others(tokens_per_param.figure)),
    "loss-by-ratio": Kind("loss over tokens a parameter", _alone(loss_by_ratio.figure)),
    "parameter-cloud": Kind("pairs of exponents that the runs allow", _alone(parameter_cloud.figure)),
    "exponents": Kind("exponents under each objective, or of several fits", _with_others(_exponents)),
    "isoflop-curves": Kind("loss over N at each budget", _alone(lambda fit: _without_a_law(fit, 0))),
    "compute-frontier": Kind(
        "best N over compute by several methods", _alone(lambda fit: _without_a_law(fit, -1))
    ),
}
WITHOUT_A_LAW = (
    "iso-loss",
    "plan-frontier",
    "plan-allocation",
    "plan-penalty",
    "design",
    "isoflop-curves",
    "compute-frontier",
)
"""Of a fit's figures those that a table of runs allows too: by its forecast, or by no law at all."""


def study_figures(study: StudyData, kind: str) -> Sequence[Figure]:
    """The figures of a kind, one for each pair of families where it compares two.

    Raises InputError for an unknown kind, Refusal where the study's runs do not allow it.
    """
    _known(STUDY, kind, "a study")
    return figures_of(analyse(study), kind)


def figures_of(analysis: StudyAnalysis, kind: str) -> Sequence[Figure]:
    """The same of a study that was analysed."""
    known = _known(STUDY, kind, "a study")
    if not known.data(analysis):
        what = "compares no two families" if known.pairs else "planned nothing of this kind"
        raise Refusal(f"the study {what}", mend=f"choose one of {', '.join(allowed(analysis))}")
    return known.make(analysis)


def allowed(analysis: StudyAnalysis) -> list[str]:
    """The kinds of figures of which a study has the runs."""
    some = {name: kind.data(analysis) for name, kind in STUDY.items()}
    return [name for name, data in some.items() if any(not isinstance(one, Refusal) for one in data)]


def fit_figures_of(source: Source, kind: str, others: Sequence[Source] = ()) -> Sequence[Figure]:
    """The figures of a kind of a fit, or of the forecast of a table, with ``others`` beside it.

    Raises as above, for a kind that needs a law, and for sources beside one that has no room for them.
    """
    drawn = _known(FIT, kind, "a fit")
    if not isinstance(source, Fit) and kind not in WITHOUT_A_LAW:
        mend = f"fit a law to it, or choose one of {', '.join(WITHOUT_A_LAW)}"
        raise InputError("is a figure of a law, and a table has none", where=kind, mend=mend)
    return drawn.make(source, others)


def of_sources(kind: str, sources: Sequence[str], **reading: Any) -> Sequence[Figure]:
    """Of a study's folder or `reference`; or of FIT.json, published laws and tables, the first before others.

    A table is read by ``reading``, as ``plans.forecast.forecaster_of`` takes it. Raises InputError for a
    source that is none of these, Refusal where the runs do not allow the figure.
    """
    try:
        return _of_sources(kind, sources, reading)
    except Refusal as reason:
        where = reason.where or f"{kind} of {sources[0]}"
        raise Refusal(reason.what, where=where, mend=reason.mend) from None


def _of_sources(kind: str, sources: Sequence[str], reading: Mapping[str, Any]) -> Sequence[Figure]:
    first, *others = sources
    shipped = not Path(first).exists() and reference.is_name(first)
    if not shipped and not Path(first).is_dir():
        if kind in STUDY and not Path(first).exists():
            raise InputError("there is no such folder", where=first, mend=f"{kind} is a figure of a study")
        _known(FIT, kind, "a fit")
        main, *rest = (_law_or_table(source, reading) for source in sources)
        return fit_figures_of(main, kind, rest)
    if others:
        raise InputError("only a law takes others beside it", where=others[0], mend="name one study")
    return study_figures(load(reference.folder(first) if shipped else first), kind)


def is_table(source: str) -> bool:
    """Whether it is read as a table of runs, not as a fit or a study."""
    return Path(source).is_file() and Path(source).suffix != ".json"


def _law_or_table(source: str, reading: Mapping[str, Any]) -> Source:
    return forecaster_of(Path(source), **reading) if is_table(source) else read_fit(source)


def listing() -> tuple[dict[str, str], list[str]]:
    """Every kind with what it shows, as data and in lines."""
    lines = [
        line
        for whose, kinds in (("a study", STUDY), ("a fit", FIT))
        for line in (f"Of {whose}:", *(f"  {name:<24}{kind.shows}" for name, kind in kinds.items()))
    ]
    return {name: kind.shows for name, kind in (STUDY | FIT).items()}, lines


def _known(kinds: Mapping[str, AnyKind], kind: str, of: str) -> AnyKind:
    if kind not in kinds:
        raise InputError(f"is no figure of {of}", where=kind, mend=f"choose one of {', '.join(kinds)}")
    return kinds[kind]


def in_notebook(figures: Sequence[Figure]) -> alt.TopLevelMixin:
    """The figures under one another with their titles, as a chart that a notebook shows without a network."""
    titled = [
        each.chart.properties(title=title_of(each.title, each.subtitle, each.characters)) for each in figures
    ]
    chart = configured(titled[0] if len(titled) == 1 else alt.vconcat(*titled))
    words = "\n".join(each.title for each in figures)

    def bundle(include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawn = render.svg_of(chart.to_dict(validate=False), figures[0].name)
        return {"image/svg+xml": drawn, "text/plain": words}

    # Altair's own bundle loads its scripts from a server; past its attributes, which are the chart's fields.
    object.__setattr__(chart, "_repr_mimebundle_", bundle)
    return chart
