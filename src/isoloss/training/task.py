"""What a worker is given: a cohort to train, the text, and where to put the records. Plain data, no torch."""

from dataclasses import dataclass
from pathlib import Path

from isoloss.errors import InputError
from isoloss.training.settings import Execution, RunSettings


@dataclass(frozen=True)
class Member:
    """One run of a cohort: its settings, its name for people, and its folder."""

    settings: RunSettings
    label: str
    folder: Path

    @property
    def run_id(self) -> str:
        return self.settings.run_id


@dataclass(frozen=True)
class Task:
    """A cohort: members that differ in seed and learning rate only. ``tokens``: folder of the token files."""

    study: str
    members: tuple[Member, ...]
    corpus: str
    tokens: Path
    execution: Execution
    family_files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        different = {
            key
            for member in self.members
            for key, value in member.settings
            if value != getattr(self.members[0].settings, key)
        }
        if different - {"seed", "learning_rate"}:
            raise InputError(
                f"members of a cohort differ in {', '.join(sorted(different - {'seed', 'learning_rate'}))}",
                where=self.members[0].run_id,
                mend="put them in cohorts of their own",
            )

    @property
    def lead(self) -> Member:
        """The member whose folder holds the cohort's log and checkpoints."""
        return self.members[0]


@dataclass(frozen=True)
class Progress:
    """A line of progress: updates done of all, mean training loss per member, tokens per second of all."""

    run_id: str
    label: str
    done: int
    updates: int
    tokens: int
    loss: float | None
    tokens_per_second: float
    members: int
    diverged: int
