"""What this machine can do, and how long all the other panels will take on it."""

from isoloss.teach.settings import Settings, described


@described("machine", "machine")
class MachineSettings(Settings):
    size: int
    repeats: int
