"""Templates of pages, slides and panels. Texts that go in are escaped; our own pictures alone are safe."""

import base64
import hashlib
import html
import re
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from isoloss.figures.figure import Figure

_INNER_ROLES = re.compile(r' role="graphics-[a-z]+"| aria-roledescription="[^"]*"')


def text(name: str) -> str:
    """A file of the package, such as ``report/macros.html``."""
    return resources.files("isoloss").joinpath(name).read_text("utf-8")


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(name: str, **values: Any) -> Markup:
    """The HTML of a template of the package."""
    return Markup(environment().get_template(name).render(**values))  # noqa: S704 - autoescaped


def policy(*scripts: str, server: bool = False) -> str:
    """Content-Security-Policy: these very scripts run, and our own styles; no text becomes code.

    Nothing is fetched, but from the page's own ``server``, and no form or base leads elsewhere.
    """
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    connect = "; connect-src 'self'" if server else ""
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        f"base-uri 'none'; form-action 'none'{connect}"
    )


def inline(figure: Figure, svg: str, name: str = "") -> Markup:
    """The SVG for a page: one image with a name and a description, scaled by its viewBox.

    Vega gives its groups roles of their own, without names: inside one image they only disturb. ``name``
    begins the ids of a second picture of the same figure.
    """
    name = name or figure.name
    opening, rest = svg.split(">", 1)
    box = opening.split('viewBox="')[1].split('"')[0]
    width = box.split()[2]
    body = _INNER_ROLES.sub("", rest)
    title, description = f"{name}-title", f"{name}-description"
    return Markup(  # noqa: S704 - our own SVG, its words escaped
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{title}" '
        f'aria-describedby="{description}" viewBox="{box}" width="{width}" style="--drawn:{width}px">'
        f'<title id="{title}">{html.escape(figure.title)}</title>'
        f'<desc id="{description}">{html.escape(figure.description)}</desc>{body}'
    )
