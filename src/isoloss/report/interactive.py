"""interactive.html beside a study's page: its runs to hover, fade, zoom, sort and filter; one offline file.

Vega's interpreter stands in for eval, and the policy names the hash of each script: nothing else may run.
"""

import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version

import vl_convert
from markupsafe import Markup

from isoloss import files
from isoloss.analysis.conditions import condition
from isoloss.errors import InputError
from isoloss.figures import explorer
from isoloss.figures.render import VEGA_LITE
from isoloss.records import StudyData
from isoloss.report.templates import fill, policy, text

NAME = "interactive.html"
TABLE = ("curve", "params", "tokens", "flops_6nd", "seed", "loss", "low", "high", "run_id")
NAMES = explorer.TOOLTIPS | {"low": "from", "high": "to"}
OUTLINES = {
    "circle": "M-.8,0A.8,.8,0,1,1,.8,0A.8,.8,0,1,1,-.8,0Z",
    "square": "M-.75,-.75H.75V.75H-.75Z",
    "triangle-up": "M0,-.85L.95,.8H-.95Z",
    "diamond": "M0,-1L.7,0L0,1L-.7,0Z",
    "cross": "M-.9,-.35H-.35V-.9H.35V-.35H.9V.35H.35V.9H-.35V.35H-.9Z",
    "triangle-down": "M0,.85L.95,-.8H-.95Z",
    "triangle-right": "M.85,0L-.8,.95V-.95Z",
}
"""Vega's shapes as paths; its other shapes are paths already."""


def page(study: StudyData) -> str:
    """The whole page. Raises Refusal before any run has finished."""
    rows = explorer.rows_of(study)
    data = {
        "rows": rows.to_dicts(),
        "columns": TABLE,
        "names": NAMES,
        "axes": explorer.AXES,
        "tokens": rows["tokens"].unique().sort().to_list(),
        "chart": explorer.specification(rows),
    }
    # In JSON "<" stands nowhere but in text: escaped, it ends no script.
    written = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    scripts = (library(), text("report/interactive.js"))
    return fill(
        "report/interactive.html",
        study=study.plan["study"],
        title=study.plan["title"],
        condition=condition(study),
        axes=explorer.AXES,
        looks={
            curve: (colour, OUTLINES.get(shape, shape))
            for curve, (colour, shape) in explorer.looks_of(rows).items()
        },
        tokens=data["tokens"],
        policy=policy(*scripts),
        style=Markup(text("report/interactive.css")),  # noqa: S704 - our own file
        data=Markup(written),  # noqa: S704 - JSON without "<"
        library=Markup(scripts[0]),  # noqa: S704 - Vega's, as its converter brings it
        script=Markup(scripts[1]),  # noqa: S704 - our own file
    )


@cache
def library() -> str:
    """Vega, Vega-Lite and vega-embed as one script. Bundling takes seconds: the user's folder keeps it."""
    stored = files.home() / f"vega-{VEGA_LITE}-{version('vl-convert-python')}.js"
    if stored.is_file():
        return files.read_bytes(stored).decode("utf-8")
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    script = script.replace("</script", "<\\/script")
    with suppress(OSError, InputError):  # where nothing can be kept it is bundled each time
        files.write_text(stored, script)
    return script
