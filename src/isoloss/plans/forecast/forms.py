"""The laws of a forecast, fitted to the rows of a fit: whether another follows them better."""

from isoloss.laws import Fit, Form
from isoloss.plans.forecast.bases import BaseFit, bases_of, fit_base
from isoloss.plans.forecast.runs import log_runs
from isoloss.sources.scales import OTHERS, SIZES


def better_form(fit: Fit, most: float) -> BaseFit | None:
    """The form that scatters least about the rows of ``fit``, if it is another and by ``most`` at most."""
    if fit.data is None or not forecast_inputs(fit.form) or set(fit.form.inputs) & set(OTHERS):
        return None
    runs = log_runs(fit.data.inputs, fit.data.loss)
    plain = "" if fit.fixed or fit.tied else fit.law
    bases = {base.name: base for base in bases_of(runs.names) if not base.tied}
    same = bases.pop(plain, None)
    best = min((fit_base(base, runs.z_In, runs.y_n) for base in bases.values()), key=_scatter)
    if best.scatter > most:
        return None
    # The same form may follow the runs as well, by an objective that outliers move less.
    return best if same is None or best.scatter < fit_base(same, runs.z_In, runs.y_n).scatter else None


def _scatter(fitted: BaseFit) -> float:
    return fitted.scatter


def forecast_inputs(law: Form) -> bool:
    """Whether a forecast takes the inputs of ``law``: N and D, or one of N, D and C, and more such sizes."""
    sizes, others = set(law.inputs) & set(SIZES), set(law.inputs) - set(SIZES)
    return (
        law.gives == "loss" and others <= set(OTHERS) and (len(sizes) == 1 or sizes == {"params", "tokens"})
    )
