"""What this machine's processor is. Imports nothing."""

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def name() -> str:
    """The model as Linux tells it, else what Python knows."""
    lines = _CPUINFO.read_text("utf-8").splitlines() if _CPUINFO.is_file() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
