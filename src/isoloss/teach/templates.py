"""The templates of slides and panels: every text that goes in is escaped; only our own markup is safe."""

from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup


def text(name: str) -> str:
    """A file of this folder, such as ``deck/deck.css``, or the report's macros."""
    package = "isoloss" if name.startswith("report/") else "isoloss.teach"
    return resources.files(package).joinpath(name).read_text("utf-8")


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def filled(name: str, **values: Any) -> Markup:
    return Markup(environment().get_template(name).render(**values))  # noqa: S704 - autoescaped


def filled_text(source: str, **values: Any) -> Markup:
    """A template given as text: a slide."""
    return Markup(environment().from_string(source).render(**values))  # noqa: S704 - autoescaped
