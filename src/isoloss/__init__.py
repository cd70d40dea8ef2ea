"""isoloss: a laboratory for neural scaling laws.

    isoloss.run("architectures", scale="mini")     train a study, or go on with it
    isoloss.load(folder).table()                    its losses, one row per run and evaluation
    isoloss.fit("power", table)                     a law, with intervals, or a refusal
    isoloss.forecast(table, params=7e10, tokens=1.4e12)   the loss of a run beyond the table's
    isoloss.predict(fit, params=7e10, tokens=1.4e12)      by a law, with what its own runs say against it
    isoloss.published("chinchilla-epoch")           a law that a paper printed

Fitting and reading import no deep-learning framework; training does.
"""

from isoloss.api import fit, forecast, load, predict, published, run
from isoloss.errors import InputError, IsolossError, Refusal, RunError
from isoloss.version import __version__

__all__ = [
    "InputError",
    "IsolossError",
    "Refusal",
    "RunError",
    "__version__",
    "fit",
    "forecast",
    "load",
    "predict",
    "published",
    "run",
]
