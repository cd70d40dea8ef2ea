"""What this machine's processor is. Imports nothing heavy."""

import platform
from importlib import metadata
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def name() -> str:
    """The model as Linux tells it, else what Python knows."""
    lines = _CPUINFO.read_text("utf-8").splitlines() if _CPUINFO.is_file() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def with_versions(*packages: str) -> str:
    """'AMD EPYC, Python 3.11.7, numpy 2.4.6': what a measured number stands on."""
    versions = (f"{package} {metadata.version(package)}" for package in packages)
    return ", ".join([name(), f"Python {platform.python_version()}", *versions])
