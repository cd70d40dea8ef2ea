"""Slide 1: what this machine can do, and how long all the other panels will take on it."""

from pydantic import Field

from isoloss.teach.settings import Settings


class MachineSettings(Settings):
    size: int = Field(default=512, ge=64, le=2048, description="Side of the square matrices multiplied")
    repeats: int = Field(default=9, ge=3, le=50, description="How often it is timed")
