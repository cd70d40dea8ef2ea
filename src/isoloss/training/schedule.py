"""One run, many D: a constant-rate trunk with a cooldown branch for each D point (arXiv 2405.18392).

    trunk ---------+---------------+-------------------------------+
                   `-cooldown-> D1 `-- cooldown --> D2             `---- cooldown ----> D3

The trunk goes as far as the last branch point. Costs cooldown * sum(D) more than the longest run alone, and
every D point is a run of its own length: points along one decaying schedule would not be.
"""

from dataclasses import dataclass
from math import sqrt

from isoloss.training.settings import RunSettings


@dataclass(frozen=True)
class Segment:
    """Updates ``start`` to ``stop``. ``branch`` is 0 on the trunk, else the 1-based number of the D point."""

    branch: int
    start: int
    stop: int

    @property
    def cooled(self) -> bool:
        return self.branch > 0

    def __len__(self) -> int:
        return self.stop - self.start


def segments(settings: RunSettings) -> list[Segment]:
    """Trunk piece, branch, trunk piece, branch, ...: the order in which they are trained."""
    plan: list[Segment] = []
    trunk = 0
    for number, end in enumerate(settings.point_steps, start=1):
        leave = end - max(1, round(settings.recipe.cooldown * end))
        # Close D points may branch before the trunk got there: the trunk cannot go back.
        leave = max(leave, trunk)
        if leave > trunk:
            plan.append(Segment(0, trunk, leave))
            trunk = leave
        plan.append(Segment(number, leave, end))
    return plan


def updates(settings: RunSettings) -> int:
    """All optimiser updates, branches included: what the run costs."""
    return sum(len(segment) for segment in segments(settings))


def rate(settings: RunSettings, segment: Segment, step: int) -> float:
    """Learning rate of update ``step`` (0-based): warmup, constant, then 1 - sqrt(share of cooldown done)."""
    warmup_steps = max(1, int(settings.recipe.warmup * settings.point_steps[0]))
    warm = min(1.0, (step + 1) / warmup_steps)
    if segment.cooled:
        warm *= 1.0 - sqrt((step - segment.start) / len(segment))
    return settings.learning_rate * warm


def trace_steps(settings: RunSettings) -> set[int]:
    """Trunk steps at which validation loss is taken: 0, the rounded powers of sqrt 2, and the trunk's end."""
    end = max((segment.stop for segment in segments(settings) if not segment.cooled), default=0)
    powers = (round(2 ** (n / 2)) for n in range(2 * end.bit_length() + 1))
    return {0, end, *(step for step in powers if step < end)}
