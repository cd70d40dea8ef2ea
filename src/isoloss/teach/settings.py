"""What a panel may be set to: checked, bounded, described."""

from pydantic import Field

from isoloss.strict import Strict


class Settings(Strict):
    """Base of a panel's settings: every field has a default (the deck's size), bounds and a description."""


class Seeded(Settings):
    seeds: int = Field(default=3, ge=1, le=20, description="How many random seeds")
    first_seed: int = Field(default=0, ge=0, le=10_000, description="The first seed; the others follow")

    @property
    def seed_numbers(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))
