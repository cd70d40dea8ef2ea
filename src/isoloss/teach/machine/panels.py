"""Slide 1: what this machine can do, and how long all the other panels will take on it."""

from pydantic import Field

from isoloss.teach.panel import Panel
from isoloss.teach.settings import Settings


class MachineSettings(Settings):
    size: int = Field(default=512, ge=64, le=2048, description="Side of the square matrices multiplied")
    repeats: int = Field(default=9, ge=3, le=50, description="How often it is timed")


PANELS = (
    Panel(
        name="machine",
        demo="machine",
        title="Two ways to remember",
        question="What can this machine do, and how long will the measurements take on it?",
        doubt="Matrix products say little about the small operations that small models spend their time on, "
        "so the estimate can be off by a factor of two.",
        settings=MachineSettings,
        measured_by="machine.calibration",
        told_by="machine.telling",
        cap_seconds=60.0,
        alone=True,
    ),
)
