"""The page of one fit: the law in words, its doubts, its figures, its source."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from isoloss import files
from isoloss.analysis import fit_tables
from isoloss.analysis.fit_doubts import outlier_tables
from isoloss.analysis.fit_findings import findings
from isoloss.analysis.fit_rows import brief_formula, condition
from isoloss.analysis.refits import LeaveOneOut, Refits, hidden_runs, leave_one_out, objectives, without_a_law
from isoloss.errors import InputError, Refusal, attempt
from isoloss.figures import backtest as backtest_figure
from isoloss.figures import (
    correlations,
    exponents,
    fit_residuals,
    frontier_fit,
    loss_by_ratio,
    parameter_cloud,
    profiles,
    tokens_per_param,
)
from isoloss.figures import fit as fit_figures
from isoloss.figures import hidden_runs as hidden_figure
from isoloss.figures import isoflop as isoflop_figures
from isoloss.figures.figure import Figure
from isoloss.laws import Fit
from isoloss.plans.backtest import Backtest
from isoloss.report import cache
from isoloss.report.publish import Notify, Page, ReportResult, publish, quiet
from isoloss.report.sections import Section, attempt_with, parts_of, section
from isoloss.sources.fits import read_fit
from isoloss.version import __version__


def write(
    source: str | Path | Fit,
    out: str | Path | None = None,
    *,
    others: Sequence[Fit] = (),
    notify: Notify = quiet,
) -> ReportResult:
    """Report on a fit: OUT/index.html and OUT/figures/NAME.svg, .png, .pdf, .csv.

    ``source`` is a FIT.json, a published law's name, or a fit. ``out`` is FIT-report beside FIT.json by
    default. Laws in ``others`` stand in the picture of tokens a parameter, or of a law without N and D in its
    own. ``notify`` is called with what is done next. A report of the same fit there is left as it is.

    Raises InputError for a file that is no fit, for a place that cannot be written to and for laws beside it
    that do not fit in.
    """
    fit = source if isinstance(source, Fit) else read_fit(source)
    out = Path(out) if out is not None else _default_folder(source)
    made_of = files.hash_of([cache.code(), fit.to_json(), *(other.to_json() for other in others)])
    return publish(out, made_of, lambda: page(fit, others), notify)


def page(fit: Fit, others: Sequence[Fit] = ()) -> Page:
    """What the page of a fit says."""
    refits, without = attempt(objectives, fit), attempt(leave_one_out, fit)
    values = {
        "fit": fit,
        "law": fit.form,
        "formula": brief_formula(fit),
        "condition": condition(fit),
        "version": __version__,
    }
    sections = _sections(fit, refits, without, others)
    return Page("fit.html", findings(fit, refits, without), tuple(sections), values)


def _default_folder(source: str | Path | Fit) -> Path:
    if isinstance(source, Fit):
        raise InputError("a fit in memory lies nowhere", where="out", mend="say where its report goes")
    path = Path(source)
    return path.with_name(f"{path.stem if path.is_file() else path.name}-report")


def _sections(
    fit: Fit, refits: Refits | Refusal, without: LeaveOneOut | Refusal, others: Sequence[Fit]
) -> list[Section]:
    sizes = set(fit.form.inputs) == {"params", "tokens"} and fit.form.gives == "loss"
    ratios = [attempt(tokens_per_param.figure, fit, others)] if sizes else []
    law = attempt(fit_figures.law, fit, () if sizes else others)
    misses = parts_of(fit, fit_residuals.real_against_predicted, fit_residuals.residuals)
    trial: Backtest | Refusal = attempt(hidden_runs, fit)
    hidden = parts_of(trial, backtest_figure.figure, hidden_figure.figure)
    methods = attempt(lambda: isoflop_figures.pictures(without_a_law(fit.data, fit.level), fit.loss_unit))
    objectives = parts_of(refits, partial(exponents.figure, fit), partial(fit_tables.sensitivity, fit))
    left = attempt_with(without, partial(fit_tables.influence, fit))
    draws: tuple[Callable[[Fit], Figure], ...] = (
        loss_by_ratio.figure,
        parameter_cloud.figure,
        frontier_fit.bought_figure,
    )
    by_ratio, cloud, bought = ([attempt(draw, fit)] if sizes else [] for draw in draws)
    return [
        section("parameters", "The law", law, *by_ratio, fit_tables.parameters(fit)),
        section("misses", "Where it misses", *misses, *outlier_tables(fit)),
        section(
            "doubts",
            "Its parameters",
            *parts_of(fit, correlations.figure, profiles.figure),
            *cloud,
        ),
        section(
            "frontier",
            "Compute",
            *_each(attempt(frontier_fit.figures, fit, others if sizes else ())),
            *ratios,
        ),
        *([section("next", "Which runs to buy next", *bought)] if sizes else []),
        section("trial", "On runs it did not see", *hidden),
        section("opinions", "Without a law", *_each(methods)),
        section("refits", "Other objectives, fewer runs", *objectives, left),
        section("solution", "How it was solved", fit_tables.solution(fit)),
        section("source", "Where the rows come from", *fit_tables.source(fit)),
    ]


def _each(figures: Sequence[Figure] | Refusal) -> Sequence[Figure | Refusal]:
    return [figures] if isinstance(figures, Refusal) else figures
