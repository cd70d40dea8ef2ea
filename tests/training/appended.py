"""The lines of a run's log, as its writer leaves them."""

import json
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[Any]:
    """What each line holds; a last line that a kill has torn is none."""
    *whole, _torn = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in whole]
