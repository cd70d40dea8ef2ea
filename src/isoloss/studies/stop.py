"""Ctrl-C and SIGTERM as a request: handlers only take note, and imports nothing that is slow."""

import signal
import threading
from collections.abc import Sequence
from typing import Self


class StopSignal:
    """Asks to checkpoint and end; ``times`` counts, so that a second may mean more than the first.

    ``last``: the number of the signal that asked. ``at_once``: nothing is to be kept yet, so that a signal
    raises KeyboardInterrupt where the program stands. As a context it gives the earlier handlers back.
    Signals come to a process's first thread alone: in another it hears nothing.
    """

    def __init__(self, numbers: Sequence[int] = (signal.SIGINT, signal.SIGTERM)) -> None:
        self.times = 0
        self.last: int | None = None
        self.at_once = False
        heard = numbers if threading.current_thread() is threading.main_thread() else ()
        self.before = [(number, signal.signal(number, self.note)) for number in heard]

    @property
    def asked(self) -> bool:
        return self.times > 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before:
            signal.signal(number, handler)

    def raise_at_once(self) -> None:
        """From here on, and for what was asked before."""
        self.at_once = True
        if self.asked:
            raise KeyboardInterrupt

    def note(self, number: int | None = None, *_: object) -> None:
        self.times, self.last = self.times + 1, number
        if self.at_once:
            raise KeyboardInterrupt
