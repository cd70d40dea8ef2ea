"""Who is ahead of whom, in one way: by an interval of the difference, or not clearly, or not to be told."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from isoloss.stats import Interval
from isoloss.teach.result import Family
from isoloss.text import capital

FEW_SEEDS = 3
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}


class Claim(NamedTuple):
    """One sentence: what stands behind it, its short form for the room, who is ahead, by how much."""

    text: str
    short: str
    ahead: Family = ""
    lead: str = ""


def family_of(side: str | None) -> Family:
    """Of a side's name: an LSTM by any start is an LSTM."""
    return "LSTM" if side and "LSTM" in side else "Transformer" if side else ""


@dataclass(frozen=True)
class Versus:
    """``a`` against ``b``: the difference a - b, None or without an interval where one seed gives none.

    ``better``: the larger number or the smaller. ``number`` writes one, times ``scale``. ``of``: what the
    difference is over.
    """

    a: str
    b: str
    difference: Interval | None
    better: Literal["more", "less"] = "more"
    number: str = ",.0f"
    scale: float = 1.0
    of: str = "seeds"

    @property
    def sign(self) -> int | None:
        """1: ``a`` is ahead, -1: ``b`` is, 0: neither clearly is; None where nothing is known."""
        sign = None if self.difference is None else self.difference.sign
        return sign if sign is None or self.better == "more" else -sign

    @property
    def winner(self) -> str | None:
        return {1: self.a, -1: self.b}.get(self.sign or 0)

    @property
    def loser(self) -> str | None:
        return {1: self.b, -1: self.a}.get(self.sign or 0)

    @property
    def few(self) -> str:
        """ "'three seeds are too few to tell': so few that leave it open give no interval; else empty."""
        if self.sign != 0 or self.difference is None or self.difference.n > FEW_SEEDS:
            return ""
        return f"{NUMBERS[self.difference.n]} {self.of} are too few to tell"

    def clause(self, unit: str, basis: str) -> str:
        """The difference in this unit with its interval: by how much the winner leads, else with its sign."""
        if self.difference is None or self.sign is None:
            return "one seed a side gives no interval and no verdict"
        difference, number = self.difference, self.number if self.winner else f"+{self.number}"
        values = [self.scale * value for value in (difference.value, difference.low, difference.high)]
        if self.winner:
            values = [abs(values[0]), *sorted(map(abs, values[1:]))]
        value, low, high = (format(value, number) for value in values)
        return f"{value} {unit} (95% t interval {low} to {high}, {basis})"

    def short(self, won: str, undecided: str = "No clear difference.") -> str:
        """For the room: ``won`` with {winner} and {loser}; a few seeds that leave it open are called few."""
        if self.sign is None:
            return "One seed is too few to tell."
        if self.winner is None:
            return f"{capital(self.few)}." if self.few else undecided
        return won.format(winner=self.winner, loser=self.loser)

    def sentence(self, won: str, undecided: str, *, few: str = "", wins: str = "is ahead of") -> str:
        """``won``: what follows on the winner's name; ``undecided``, or ``few`` of a few seeds: on both."""
        if self.sign is None:
            return f"{self.a} against {self.b}: {self.clause('', '')}."
        if self.few:
            return f"{capital(self.few)} {self.a} from {self.b}{few}."
        if self.winner is None:
            return f"No clear difference between {self.a} and {self.b}{undecided}."
        return f"{self.winner} {wins} {self.loser}: {won}."
