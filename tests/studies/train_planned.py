"""``runner.run`` of a plan as ``launch`` calls it, for plans that no command would make."""

import io

from rich.console import Console

from isoloss.studies import runner
from isoloss.studies.stop import StopSignal


def train(study, scale, runs, folder, engine=None, *, console=None, family_files=(), execution=None):
    """Of the scale ``scale``, the study's ``mini``; by default two processes of this machine."""
    with StopSignal() as stop:
        return runner.run(
            study,
            "mini",
            scale,
            runs,
            folder,
            engine=engine or runner.local_engine(scale.device, 2, scale.ranks),
            family_files=family_files,
            execution=execution or scale.execution,
            origin={},
            console=console or Console(file=io.StringIO()),
            stop=stop,
        )
