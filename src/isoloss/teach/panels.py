"""Every panel, in the order of the slides: what measures it and what tells it."""

from collections.abc import Sequence

from isoloss.errors import InputError
from isoloss.teach.amnesia.contest.tell import BINDING, FIRST_LETTER, RANDOM_PLACE
from isoloss.teach.amnesia.reach import tell as reach_tell
from isoloss.teach.amnesia.settings import (
    BindingSettings,
    FirstLetterSettings,
    RandomPlaceSettings,
    ReachSettings,
)
from isoloss.teach.attention.right_slot import tell as right_slot_tell
from isoloss.teach.attention.settings import (
    RightSlotSettings,
    StepsSettings,
    TrainedSettings,
    UntrainedSettings,
)
from isoloss.teach.attention.steps import tell as steps_tell
from isoloss.teach.attention.trained import tell as trained_tell
from isoloss.teach.attention.untrained import tell as untrained_tell
from isoloss.teach.machine import tell as machine_tell
from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.panel import Panel, panel_of
from isoloss.teach.progression import tell as progression_tell
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.race import tell as race_tell
from isoloss.teach.race.bill import tell as bill_tell
from isoloss.teach.race.settings import BillSettings, RaceSettings
from isoloss.teach.showdown import tell as showdown_tell
from isoloss.teach.showdown.settings import ShowdownSettings

PANELS: tuple[Panel, ...] = (
    panel_of("machine", "machine", MachineSettings, "measure:measure", machine_tell),
    panel_of("amnesia", "reach", ReachSettings, "reach.measure:measure", reach_tell),
    panel_of("amnesia", "first-letter", FirstLetterSettings, "contest.measure:first_letter", FIRST_LETTER),
    panel_of("amnesia", "random-place", RandomPlaceSettings, "contest.measure:random_place", RANDOM_PLACE),
    panel_of("amnesia", "binding", BindingSettings, "contest.measure:binding", BINDING),
    panel_of("attention", "steps", StepsSettings, "steps.measure:measure", steps_tell),
    panel_of("attention", "untrained", UntrainedSettings, "untrained.measure:measure", untrained_tell),
    panel_of("attention", "trained", TrainedSettings, "trained.measure:measure", trained_tell),
    panel_of("attention", "right-slot", RightSlotSettings, "right_slot.measure:measure", right_slot_tell),
    panel_of("progression", "training", TrainingSettings, "measure:measure", progression_tell),
    panel_of("race", "race", RaceSettings, "measure:measure", race_tell),
    panel_of("race", "bill", BillSettings, "bill.measure:measure", bill_tell),
    panel_of("showdown", "showdown", ShowdownSettings, "measure:measure", showdown_tell),
)

DEMOS = ("machine", "amnesia", "attention", "training", "race", "showdown")


def panel(name: str, panels: Sequence[Panel] = PANELS, *, where: str = "") -> Panel:
    """Raises InputError for a name that no panel has."""
    by_name = {panel.name: panel for panel in panels}
    if name not in by_name:
        mend = f"use one of {', '.join(by_name)}"
        raise InputError(f"there is no panel {name!r}", where=where, mend=mend)
    return by_name[name]


def of_demo(demo: str) -> list[Panel]:
    """The panels of a demo. Raises InputError for a name that no demo has."""
    panels = [panel for panel in PANELS if panel.demo == demo]
    if not panels:
        raise InputError(
            f"there is no demo {demo!r}", mend=f"use one of {', '.join(DEMOS)}, or all of them: all"
        )
    return panels
