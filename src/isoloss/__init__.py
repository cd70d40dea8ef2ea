"""isoloss: a laboratory for neural scaling laws.

    isoloss.run("architectures", scale="mini")     train a study, or go on with it
    isoloss.load(folder).table()                    its losses, one row per run and evaluation
    isoloss.fit("power", table)                     a law, with intervals, or a refusal
    isoloss.published("chinchilla-epoch")           a law that a paper printed

Fitting and reading import no deep-learning framework; training does.
"""

from isoloss.api import fit, load, published, run
from isoloss.errors import InputError, IsolossError, Refusal, RunError
from isoloss.version import __version__

__all__ = [
    "InputError",
    "IsolossError",
    "Refusal",
    "RunError",
    "__version__",
    "fit",
    "load",
    "published",
    "run",
]
