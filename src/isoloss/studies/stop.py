"""Ctrl-C and SIGTERM as a request: handlers only take note, and imports nothing that is slow."""

import signal
from typing import Self


class StopSignal:
    """Asks to checkpoint and end; ``times`` counts, so that a second may mean more than the first.

    As a context it gives the earlier handlers back.
    """

    def __init__(self) -> None:
        self.times = 0
        numbers = (signal.SIGINT, signal.SIGTERM)
        self.before = [(number, signal.signal(number, self.note)) for number in numbers]

    @property
    def asked(self) -> bool:
        return self.times > 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before:
            signal.signal(number, handler)

    def note(self, *_: object) -> None:
        self.times += 1
