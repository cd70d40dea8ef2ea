"""The page of one fit: the law in words, its doubts, its figures, its source."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoloss import files
from isoloss.analysis import trials
from isoloss.analysis.findings import Finding
from isoloss.analysis.refits import leave_one_out, objectives
from isoloss.analysis.study import attempt
from isoloss.errors import InputError, Refusal
from isoloss.figures import backtest as backtest_figure
from isoloss.figures import correlations, fit_residuals, frontier_fit, profiles, render
from isoloss.figures import fit as fit_figures
from isoloss.figures import isoflop as isoflop_figures
from isoloss.figures.figure import Figure
from isoloss.laws import Fit
from isoloss.report import fit_tables, fresh
from isoloss.report.fit_findings import findings
from isoloss.report.page import remove_stale
from isoloss.report.sections import Section, section
from isoloss.report.tables import table_of
from isoloss.report.templates import filled, inline
from isoloss.sources.fits import read_fit
from isoloss.version import __version__


@dataclass(frozen=True)
class FitReport:
    """``path`` of the page, its findings, its figures; ``written`` is False if the page was true already."""

    path: Path
    findings: tuple[Finding, ...]
    figures: tuple[str, ...]
    written: bool = True

    @property
    def summary(self) -> str:
        """The law in a sentence."""
        return self.findings[0].sentence


def write(
    source: str | Path | Fit, out: str | Path | None = None, *, beside: Sequence[Fit] = ()
) -> FitReport:
    """Report on a fit: OUT/index.html and OUT/figures/NAME.svg, .png, .pdf, .csv.

    ``source`` is a FIT.json, a published law's name, or a fit. ``out`` is FIT-report beside FIT.json by
    default. ``beside`` are laws to draw beside one of one input. A report of the same fit there is left as
    it is. Raises InputError for a file that is no fit, for a place that cannot be written to and for laws of
    other inputs.
    """
    fit = source if isinstance(source, Fit) else read_fit(source)
    out = Path(out) if out is not None else _beside(source)
    if out.exists() and not out.is_dir():
        raise InputError("is not a folder", where=str(out), mend="move it away: the report goes there")
    made_of = files.hash_of([__version__, fit.to_json(), *(other.to_json() for other in beside)])
    if there := fresh.kept(out, made_of):
        return FitReport(out / "index.html", *there, written=False)
    refits, without = attempt(lambda: objectives(fit)), attempt(lambda: leave_one_out(fit))
    found = findings(fit, refits, without)
    parts = _sections(fit, refits, without, beside)
    figures = [figure for part in parts for figure in part.figures]
    pictures = {figure.name: render.render(figure) for figure in figures}
    for figure in figures:
        render.write(figure, pictures[figure.name], out / "figures")
    remove_stale(out / "figures", [figure.name for figure in figures])
    path = out / "index.html"
    inlined = {figure.name: inline(figure, pictures[figure.name].svg) for figure in figures}
    files.write_text(path, _page(fit, found, parts, figures, inlined))
    names = [figure.name for figure in figures]
    fresh.keep(out, made_of, list(found), names)
    return FitReport(path, found, tuple(names))


def _beside(source: str | Path | Fit) -> Path:
    if isinstance(source, Fit):
        raise InputError("a fit in memory lies nowhere", where="out", mend="say where its report goes")
    path = Path(source)
    return path.with_name(f"{path.stem if path.is_file() else path.name}-report")


def _sections(fit: Fit, refits, without, beside: Sequence[Fit]) -> list[Section]:
    left = without if isinstance(without, Refusal) else fit_tables.left_out(fit, without)
    other = refits if isinstance(refits, Refusal) else fit_tables.sensitivity(fit, refits)
    drawn = attempt(lambda: frontier_fit.figures(fit))
    hidden = attempt(lambda: backtest_figure.figure(trials.hidden_runs(fit)))
    methods = attempt(lambda: isoflop_figures.pictures(trials.without_a_law(fit)))
    return [
        section(
            "parameters",
            "The law",
            [attempt(lambda: fit_figures.law(fit, beside))],
            [fit_tables.parameters(fit)],
        ),
        section(
            "misses",
            "Where it misses",
            _drawn(fit, fit_residuals.real_against_predicted, fit_residuals.residuals),
            [],
        ),
        section("doubts", "Its parameters", _drawn(fit, correlations.figure, profiles.figure), []),
        section("frontier", "Compute", _listed(drawn), []),
        section("trial", "On runs it did not see", [hidden], []),
        section("opinions", "Without a law", _listed(methods), []),
        section("refits", "Other objectives, fewer runs", [], [other, left]),
        section("solution", "How it was solved", [], [fit_tables.solution(fit)]),
        section("source", "Where the rows come from", [], fit_tables.source(fit)),
    ]


def _listed(drawn: Sequence[Figure] | Refusal) -> list[Figure | Refusal]:
    return [drawn] if isinstance(drawn, Refusal) else list(drawn)


def _drawn(fit: Fit, *draw) -> list[Figure | Refusal]:
    return [attempt(lambda one=one: one(fit)) for one in draw]


def _page(fit: Fit, found: Sequence[Finding], parts: Sequence[Section], figures, inlined) -> str:
    return filled(
        "fit.html",
        fit=fit,
        law=fit.form,
        formula=fit.formula(),
        findings=found,
        sections=parts,
        inline=inlined,
        numbers={
            figure.name: table_of(f"Numbers behind: {figure.title}", figure.table) for figure in figures
        },
        version=__version__,
    )
