"""Families of a study that do not come with isoloss: every planned shape is checked before training."""

from collections.abc import Sequence

import torch

from isoloss.errors import InputError
from isoloss.models import family, shape_of
from isoloss.studies.plan import PlannedRun
from isoloss.training.check import check_family

MOST_PARAMS = 20_000_000
"""Of a shape that is checked though it is not the smallest: a few seconds and 1 GB."""

SHORT_WINDOW = 16
"""Tokens of the windows in which those are checked."""


def check_families(runs: Sequence[PlannedRun], device: torch.device) -> dict[str, dict[str, str]]:
    """What checking found of each, by name: its file, what ``check_family`` says, and of how many shapes."""
    names = dict.fromkeys(run.settings.family for run in runs if not family(run.settings.family).shipped)
    return {name: check_own([run for run in runs if run.settings.family == name], device) for name in names}


def check_own(runs: Sequence[PlannedRun], device: torch.device) -> dict[str, str]:
    """One family's planned shapes, each in every context it is planned with.

    The smallest of each setting of the keys that are no numbers is checked in windows as long as the context;
    the others in short ones, since what peeks may begin at the second layer or width.
    """
    kind = family(runs[0].settings.family)
    ordered = sorted(runs, key=lambda run: run.counts.params_total)
    models = {(repr(run.settings.shape), run.settings.context): run for run in ordered}
    found: dict[str, dict[str, str]] = {}
    left_out: list[str] = []
    for run in models.values():
        whole = (options := options_of(run)) not in found
        if whole or run.counts.params_total <= MOST_PARAMS:
            checked = check_planned(run, device, whole=whole)
            found.setdefault(options, checked)
        else:
            left_out.append(run.label)
    shapes = f"{len(models) - len(left_out)} of {len(models)} planned checked"
    but = f", not {', '.join(left_out)}" if left_out else ""
    return {"file": kind.place, **next(iter(found.values())), "shapes": shapes + but}


def options_of(run: PlannedRun) -> str:
    return repr([pair for pair in run.settings.shape.items() if isinstance(pair[1], bool | str)])


def check_planned(run: PlannedRun, device: torch.device, *, whole: bool) -> dict[str, str]:
    """Raises InputError that names the shape, for what ``check_family`` refuses and for N = 0."""
    kind, settings = family(run.settings.family), run.settings
    if run.counts.params < 1:
        what = f"{run.label} has no parameters but those of its embedding and head: N = {run.counts.params}"
        mend = "give it others; laws and figures take the logarithm of N"
        raise InputError(what, where=kind.place, mend=mend)
    window = settings.context if whole else min(settings.context, SHORT_WINDOW)
    shape = shape_of(kind.name, settings.shape)
    try:
        return check_family(kind, shape, settings.vocab, settings.context, device, window)
    except InputError as error:
        raise InputError(f"{error.what} ({run.label})", where=error.where, mend=error.mend) from None
