"""Quick panels for the deck's tests, and the two processes that show them. No torch, no statistics.

python fake_panels.py worker          what the server starts for a job
python fake_panels.py serve [FOLDER]  the live deck with these panels; FOLDER: recorded results
"""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import altair as alt
import polars as pl
from markupsafe import Markup, escape
from pydantic import Field

from isoloss.figures.figure import Figure
from isoloss.teach import start
from isoloss.teach.deck import page, server, worker
from isoloss.teach.panel import Panel, run
from isoloss.teach.result import Sentence
from isoloss.teach.settings import Seeded

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'n' more"
COMMAND = (sys.executable, __file__, "worker")
LIGHT = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))
"""A worker without any of this, for what needs a process and no panel."""


class Quick(Seeded):
    points: int = Field(default=4, ge=1, le=50, description="How many points")
    prompt: str = Field(default="We propose a", max_length=40, description="The prompt")
    rates: tuple[float, ...] = Field(
        default=(0.1, 0.2), strict=False, min_length=1, max_length=4, description="The rates"
    )
    device: Literal["cpu", "gpu"] = Field(default="cpu", description="Where")
    seed: int = Field(default=0, ge=0, le=2**31 - 1, description="The dice")
    loud: bool = Field(default=False, description="Print something")
    seconds: float = Field(default=0.0, ge=0, le=600, description="How long it takes")
    end: Literal["well", "raise", "die", "nonsense"] = Field(default="well", description="How it ends")


def measure(settings, report):
    if settings.loud:
        print("a library prints this to stdout")
    rows, steps = [], max(settings.points, int(settings.seconds * 20))
    for step in range(steps):
        rows.append({"x": step, "value": step * 0.1, "low": step * 0.05, "high": step * 0.2, "n": 2000})
        report((step + 1) / steps, f"step {step + 1} of {steps}", {"points": rows})
        time.sleep(settings.seconds / steps)
        if step == steps // 2 and settings.end == "raise":
            raise ValueError("the measurement met a wall")
        if step == steps // 2 and settings.end == "die":
            print("out of memory, says the kernel", file=sys.stderr, flush=True)
            os._exit(7)
    return {"points": rows}


def count(settings, tables):
    return 2000


def sentences(settings, tables):
    top = max(row["value"] for row in tables["points"])
    return [
        Sentence(
            key="top",
            text=f"From {settings.prompt}: the highest of the points is {top:.1f} nats.",
            short=f"The highest is {top:.1f}.",
        ),
        Sentence(key="count", text=f"There are {len(tables['points'])} points.", exact=True),
    ]


def figures(settings, tables):
    rows = tables["points"]
    chart = alt.Chart(alt.Data(values=rows)).mark_line(point=True).encode(x="x:Q", y="value:Q")
    return [
        Figure(
            name="points",
            chart=chart.properties(width=560, height=240, title=f"Points of {settings.prompt}"),
            title=f"Points of {settings.prompt}",
            description="A line that rises.",
            shows="Each point with its interval in the table.",
            would_change="",
            table=pl.DataFrame(rows),
        )
    ]


def lines(settings, tables):
    return ["points"]


def html(settings, tables):
    return Markup("<p>Told by the panel itself: {}</p>").format(escape(settings.prompt))


def blind(settings, tables):
    return Markup(
        '<p data-side="A">Text 1 of seed {} <span class="identity" data-reveal>LSTM</span></p>'
        '<p data-side="B">Text 2 <span class="identity" data-reveal>Transformer</span></p>'
        '<p class="vote"><button type="button" data-vote="A">Text 1</button> '
        '<input type="number" data-hands="A" aria-label="Hands for text 1">'
        '<button type="button" data-vote="B">Text 2</button>'
        '<input type="number" data-hands="B" aria-label="Hands for text 2">'
        '<button type="button" data-count>Count</button></p>'
        '<p class="tally" data-reveal></p>'
    ).format(settings.seed)


PLAIN = SimpleNamespace(count=count, sentences=sentences, figures=figures, lines=lines, html=html)
BLIND = SimpleNamespace(**PLAIN.__dict__ | {"html": blind, "blind_lines": lines, "HERO": True})


class Fake(Panel):
    """A panel whose module is here instead of in the package."""

    def measure(self, settings, report):
        return measure(settings, report)

    def experiment(self):
        return "a" * 64


def fake(name, **values):
    given = {
        "demo": "fake",
        "title": f"Panel {name} & co",
        "question": f"What does {name} say about <letters>?",
        "doubt": "It shows nothing at all: a test made it.",
        "beware": "A test made it.",
        "units": "unseen strings",
        "interval": "Wilson interval",
        "guess": "How high?",
        "guesses": ("high", "low"),
        "front": ("prompt",),
        "settings": Quick,
        "measured_by": "fake:measure",
        "tell": PLAIN,
    }
    return Fake(name=name, **given | values)


PANELS = (
    fake("quick"),
    fake("second"),
    fake("timed", stops=True),
    fake("capped", cap_seconds=1.0),
    fake("taste", tell=BLIND, fresh=True, guess="", guesses=()),
)
UNCAPPED = tuple(panel for panel in PANELS if panel.name != "capped")
"""Those that end well however slow the machine: a cap is of wall time."""


def slide(number):
    notes = f'<aside class="notes"><p>Say {number} first.</p></aside>'
    body = {
        2: '{{ machine("cell", "Static cell.", word="shift", steps=4) }}',
        3: '{{ panel("quick") }}',
        4: '{{ panel("second") }}\n{{ panel("timed") }}',
        5: '{{ panel("capped") }}',
        7: '{{ machine("dictionary", "Static dictionary.") }}',
        12: '{{ panel("taste") }}',
        13: '{{ verdict("quick", "top") }}\n<p><a href="#slide-1">Begin</a></p>',
    }
    heading = f"<h2>Slide {number}: words &amp; more</h2>\n<p class='lead'>Lead.</p>"
    return f"{heading}\n{body.get(number, '')}\n{notes}"


SLIDES = {str(number): slide(number) for number in range(1, 14)} | {"A1": slide("A1")}


def recorded(panel=PANELS[0], *, experiment=None, prompt="a record"):
    """A result as it would have been recorded a while ago."""
    settings = panel.settings_from({"prompt": prompt})
    made = run(panel, settings, lambda *_: None)
    changes = {"made": "2026-01-02T03:04:05+00:00", "wall_seconds": 1.0, "cpu_seconds": 1.5}
    return made.model_copy(update=changes | ({"experiment": experiment} if experiment else {}))


if __name__ == "__main__":
    start.prepare, start.warm = lambda panel: None, lambda: None  # these measure without torch
    if sys.argv[1] == "worker":
        worker.main(PANELS)
    else:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
        html = page.build(folder, live=True, panels=PANELS, sources=SLIDES)

        def save(measured):
            return page.build(folder, panels=PANELS, sources=SLIDES, measured=measured)

        server.serve(html, open_browser=False, save=save, panels=PANELS, command=COMMAND)
