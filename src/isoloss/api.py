"""The public functions of ``isoloss``; each imports what it needs when it is called."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoloss.errors import RunError
from isoloss.face import FitFace, Shown, StudyFace

if TYPE_CHECKING:
    from isoloss.laws import Fit, Prediction
    from isoloss.plans import Plan
    from isoloss.plans.forecast import Forecast
    from isoloss.records import StudyData


def run(
    study: str,
    *,
    scale: str = "mini",
    out: str | Path | None = None,
    changes: Sequence[str] = (),
    engine: str = "local",
    engine_settings: Sequence[str] = (),
    workers: int | None = None,
    family_files: Sequence[str | Path] = (),
) -> "StudyData":
    """Train every run of a study that its folder does not hold yet, and read the folder.

    ``study``: a shipped name or the path of a TOML file. ``out``: default studies/NAME-SCALE.
    ``changes``: "KEY=VALUE" strings, as after ``--set``. ``family_files``: Python files that register model
    families of yours, as after ``--family``. ``engine``, ``engine_settings``: as ``--engine`` and
    ``--engine-set``.

    Raises InputError for a study or a family that cannot be, RunError if a run failed or it was stopped.
    """
    from isoloss.studies.launch import launch

    outcome = launch(
        study,
        scale=scale,
        out=out,
        changes=changes,
        engine=engine,
        engine_settings=engine_settings,
        workers=workers,
        family_files=family_files,
    )
    if outcome.failed or outcome.stopped:
        reasons = "; ".join(sorted(set(outcome.failed.values()))) or "it was stopped"
        raise RunError(
            f"not all runs ended: {reasons}", where=str(outcome.folder), mend="call it again to go on"
        )
    return load(outcome.folder)


def load(folder: str | Path) -> "StudyData":
    """A study's folder: ``.table()``, ``.positions()``, ``.curves()``. Raises InputError if it is none."""
    from isoloss import records

    return records.load(folder)


def fit(law: str, table: Any, **options: Any) -> "Fit":
    """Fit a law to a table; options as in ``isoloss.sources.fit_table`` and ``isoloss.laws.fit``.

    Raises InputError for a table that cannot be read so, Refusal where the data cannot answer.
    """
    from isoloss.analysis.fit_doubts import doubted
    from isoloss.sources import fit_table

    return doubted(fit_table(law, table, **options))


def forecast(table: Any, **question: Any) -> "Forecast":
    """The losses of runs that nobody has made, with intervals that hold outside the table's runs.

    ``params``, ``tokens``, ``recurrence`` and their like say which; options as in
    ``isoloss.plans.forecast.forecast_table``.

    Raises InputError for a table that cannot be read so, Refusal for too few runs or a size without range.
    """
    from isoloss.plans.forecast import forecast_table

    return forecast_table(table, **question)


def predict(law: "Fit | str", *, level: float | None = None, **inputs: Any) -> "Prediction":
    """``Fit.predict`` of a fit or a published law, with what its own runs say of it, as `isoloss predict`.

    Where the fit carries its runs, warnings say by how much hidden ones were missed, and that decides
    how far outside them a new run is doubted. Costs a forecast, about half a second, once for a fit.

    Raises InputError.
    """
    from isoloss.plans.forecast import predicted
    from isoloss.sources import published

    return predicted(published(law) if isinstance(law, str) else law, inputs, level)[0]


def published(name: str) -> "Fit":
    """The law that a paper printed, with its citation; ``isoloss laws`` lists them.

    Raises InputError for an unknown name, Refusal for a law whose constants no paper prints.
    """
    from isoloss.sources import published

    return published(name)


def plan(law: "Fit", **question: Any) -> "Plan":
    """Which model for how many tokens: ``isoloss.plans.plan`` of this fit, with its options."""
    from isoloss.plans import plan

    return plan(law, **question)


def plot_fit(law: "Fit", kind: str = "law", *others: "Fit") -> Any:
    """A figure of a fit as an altair chart, of a kind that `isoloss plot list` names; ``others`` beside it.

    Raises InputError for an unknown kind, Refusal where the fit does not allow it.
    """
    from isoloss.figures.gallery import fit_figures_of, in_notebook

    return in_notebook(fit_figures_of(law, kind, others))


def plot_study(study: "StudyData", kind: str) -> Any:
    """A figure of a study as an altair chart; raises as for a fit."""
    from isoloss.figures.gallery import in_notebook, study_figures

    return in_notebook(study_figures(study, kind))


def shown(thing: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """Of a fit, a forecast, a plan or a study, as notebooks ask; they choose among the kinds themselves."""
    from isoloss.report.notebook import bundle

    return bundle(thing)


FitFace.plan, FitFace.plot, StudyFace.plot = plan, plot_fit, plot_study
Shown._repr_mimebundle_ = shown
