"""Every panel, in the order of the slides: what measures it and what tells it.

What measures needs torch, and is imported when it is called.
"""

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
from isoloss.teach.attention.settings import RightSlotSettings, StepsSettings, UntrainedSettings
from isoloss.teach.attention.steps import tell as steps_tell
from isoloss.teach.attention.untrained import tell as untrained_tell
from isoloss.teach.machine import tell as machine_tell
from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.panel import Panel, Report, described
from isoloss.teach.progression import tell as progression_tell
from isoloss.teach.progression.settings import TrainingSettings
from isoloss.teach.race import tell as race_tell
from isoloss.teach.race.bill import tell as bill_tell
from isoloss.teach.race.settings import BillSettings, RaceSettings
from isoloss.teach.result import Tables
from isoloss.teach.showdown import tell as showdown_tell
from isoloss.teach.showdown.settings import ShowdownSettings


def measure_machine(settings: MachineSettings, report: Report) -> Tables:
    from isoloss.teach.machine.measure import measure

    return measure(settings, report)


def measure_reach(settings: ReachSettings, report: Report) -> Tables:
    from isoloss.teach.amnesia.reach.measure import measure

    return measure(settings, report)


def measure_first_letter(settings: FirstLetterSettings, report: Report) -> Tables:
    from isoloss.teach.amnesia.contest.measure import first_letter

    return first_letter(settings, report)


def measure_random_place(settings: RandomPlaceSettings, report: Report) -> Tables:
    from isoloss.teach.amnesia.contest.measure import random_place

    return random_place(settings, report)


def measure_binding(settings: BindingSettings, report: Report) -> Tables:
    from isoloss.teach.amnesia.contest.measure import binding

    return binding(settings, report)


def measure_steps(settings: StepsSettings, report: Report) -> Tables:
    from isoloss.teach.attention.steps.measure import measure

    return measure(settings, report)


def measure_untrained(settings: UntrainedSettings, report: Report) -> Tables:
    from isoloss.teach.attention.untrained.measure import measure

    return measure(settings, report)


def measure_right_slot(settings: RightSlotSettings, report: Report) -> Tables:
    from isoloss.teach.attention.right_slot.measure import measure

    return measure(settings, report)


def measure_training(settings: TrainingSettings, report: Report) -> Tables:
    from isoloss.teach.progression.measure import measure

    return measure(settings, report)


def measure_race(settings: RaceSettings, report: Report) -> Tables:
    from isoloss.teach.race.measure import measure

    return measure(settings, report)


def measure_bill(settings: BillSettings, report: Report) -> Tables:
    from isoloss.teach.race.bill.measure import measure

    return measure(settings, report)


def measure_showdown(settings: ShowdownSettings, report: Report) -> Tables:
    from isoloss.teach.showdown.measure import measure

    return measure(settings, report)


PANELS: tuple[Panel, ...] = (
    described("machine", "machine", MachineSettings, measure_machine, machine_tell),
    described("amnesia", "reach", ReachSettings, measure_reach, reach_tell),
    described("amnesia", "first-letter", FirstLetterSettings, measure_first_letter, FIRST_LETTER),
    described("amnesia", "random-place", RandomPlaceSettings, measure_random_place, RANDOM_PLACE),
    described("amnesia", "binding", BindingSettings, measure_binding, BINDING),
    described("attention", "steps", StepsSettings, measure_steps, steps_tell),
    described("attention", "untrained", UntrainedSettings, measure_untrained, untrained_tell),
    described("attention", "right-slot", RightSlotSettings, measure_right_slot, right_slot_tell),
    described("progression", "training", TrainingSettings, measure_training, progression_tell),
    described("race", "race", RaceSettings, measure_race, race_tell),
    described("race", "bill", BillSettings, measure_bill, bill_tell),
    described("showdown", "showdown", ShowdownSettings, measure_showdown, showdown_tell),
)

DEMOS = ("machine", "amnesia", "attention", "training", "race", "showdown")


def panel(name: str) -> Panel:
    """Raises InputError for a name that no panel has."""
    for panel in PANELS:
        if panel.name == name:
            return panel
    names = ", ".join(panel.name for panel in PANELS)
    raise InputError(f"there is no panel {name!r}", mend=f"use one of {names}")


def of_demo(demo: str) -> list[Panel]:
    """The panels of a demo. Raises InputError for a name that no demo has."""
    panels = [panel for panel in PANELS if panel.demo == demo]
    if not panels:
        raise InputError(f"there is no demo {demo!r}", mend=f"use one of {', '.join(DEMOS)}")
    return panels
