"""Every panel, in the order of the slides."""

from isoloss.errors import InputError
from isoloss.teach.amnesia.panels import PANELS as AMNESIA
from isoloss.teach.attention.panels import PANELS as ATTENTION
from isoloss.teach.machine.panels import PANELS as MACHINE
from isoloss.teach.panel import Panel
from isoloss.teach.progression.panels import PANELS as PROGRESSION
from isoloss.teach.race.panels import PANELS as RACE
from isoloss.teach.showdown.panels import PANELS as SHOWDOWN

PANELS: tuple[Panel, ...] = (*MACHINE, *AMNESIA, *ATTENTION, *PROGRESSION, *RACE, *SHOWDOWN)

DEMOS = ("machine", "amnesia", "attention", "training", "race", "showdown")


def panel(name: str) -> Panel:
    """Raises InputError for a name that no panel has."""
    for one in PANELS:
        if one.name == name:
            return one
    names = ", ".join(one.name for one in PANELS)
    raise InputError(f"there is no panel {name!r}", mend=f"use one of {names}")


def of_demo(demo: str) -> list[Panel]:
    """The panels of a demo. Raises InputError for a name that no demo has."""
    found = [one for one in PANELS if one.demo == demo]
    if not found:
        raise InputError(f"there is no demo {demo!r}", mend=f"use one of {', '.join(DEMOS)}")
    return found
