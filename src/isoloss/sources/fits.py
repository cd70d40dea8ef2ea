"""Fits on disk and fits by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isoloss import files
from isoloss.errors import InputError
from isoloss.laws import Fit
from isoloss.sources.published import names, published, unpublished


def read_fit(source: str | Path) -> Fit:
    """A FIT.json, or the published law of that name.

    Raises InputError for neither, and for a file that is no fit; Refusal for a law whose constants no paper
    prints.
    """
    path = Path(source)
    if path.is_file():
        table = f"if it is a table of runs, fit it first: isoloss fit {path} --law ..."
        try:
            data = files.read_json(path)
        except InputError as error:
            raise InputError(f"is not a fit: it {error.what}", where=str(path), mend=table) from None
        if not isinstance(data, dict):
            raise InputError("is not a fit", where=str(path), mend=table)
        if {"laws", "error_rate"} <= set(data):
            mend = f"isoloss forecast {path}, or --forecast {path} in place of the fit"
            raise InputError("is a forecast, not a fit", where=str(path), mend=mend)
        try:
            return Fit.from_json(data)
        except InputError as error:
            raise InputError(error.what, where=str(path), mend="write it with isoloss fit -o") from None
    if str(source) in names() or str(source) in unpublished():
        return published(str(source))
    raise InputError(
        "is neither a file nor a published law",
        where=str(source),
        mend=f"write one with isoloss fit -o, or choose one of {', '.join(names())}",
    )


def flops_rule(source: Mapping[str, Any]) -> str:
    """How the table behind a result counts FLOPs, where not as C = 6 N D; else ''."""
    # A file that others wrote may name no kind.
    rules = [each["message"] for each in source.get("findings", ()) if each.get("kind") == "flops-rule"]
    return next(iter(rules), source.get("flops_rule", ""))


def check_flops(source: Mapping[str, Any], inputs: Iterable[str]) -> None:
    """Raises InputError where no size of a run of ``inputs`` can follow from FLOPs, C = 6 N D of each loop.

    ``source`` is of the table behind a result, which may count FLOPs by another rule, or loops in N.
    """
    what = f"flops mean 6 N D here, but {rule}" if (rule := flops_rule(source)) else ""
    if source.get("count") == "params_executed" and "recurrence" in inputs:
        what = "flops mean 6 N D recurrence here, but params_executed counts each loop already"
    if what:
        raise InputError(what, where="flops", mend="give params and tokens")


def inputs_for(fit: Fit, given: Mapping[str, float]) -> dict[str, float]:
    """What the law takes, out of what was given; of params and tokens one from FLOPs C = 6 N D and loops.

    Raises InputError for an input that is missing, one that the law does not take, or three that disagree.
    """
    given, needed = dict(given), fit.form.inputs
    if {"params", "tokens"} <= set(needed) and "flops" in given:
        flops = given.pop("flops")
        check_flops(fit.source, needed)
        loops = given.get("recurrence", 1.0)
        if "params" in given and "tokens" not in given:
            given["tokens"] = flops / (6 * given["params"] * loops)
        elif "tokens" in given and "params" not in given:
            given["params"] = flops / (6 * given["tokens"] * loops)
        else:
            raise InputError("needs one of params and tokens beside flops", mend="give one; C = 6 N D")
    if extra := sorted(set(given) - set(needed)):
        raise InputError(
            f"the law takes {', '.join(needed)}, not {', '.join(extra)}", where=fit.law, mend="leave it out"
        )
    if missing := [name for name in needed if name not in given]:
        raise InputError(
            f"the law takes {', '.join(needed)}: {', '.join(missing)} is missing",
            where=fit.law,
            mend="give each as an option, or as --input NAME=VALUE",
        )
    return given
