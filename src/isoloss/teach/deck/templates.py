"""The deck's templates: every text that goes in is escaped; only our own markup and pictures are safe."""

from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup


def text(name: str) -> str:
    """A file of the deck's folder."""
    return resources.files("isoloss.teach.deck").joinpath(name).read_text("utf-8")


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _source(name: str) -> str:
    if name == "report/macros.html":
        return resources.files("isoloss.report").joinpath("macros.html").read_text("utf-8")
    return text(name)


def filled(name: str, **values: Any) -> Markup:
    return Markup(environment().get_template(name).render(**values))  # noqa: S704 - autoescaped


def filled_text(source: str, **values: Any) -> Markup:
    """A template given as text: a slide."""
    return Markup(environment().from_string(source).render(**values))  # noqa: S704 - autoescaped
