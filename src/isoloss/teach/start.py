"""From a command's words to panels with settings, and a process made ready to measure."""

from collections.abc import Sequence
from typing import Any

from isoloss.errors import InputError
from isoloss.strict import key_and_value
from isoloss.teach import panels
from isoloss.teach.panel import Panel
from isoloss.teach.settings import Seeded, Settings


def select_panels(
    name: str, *, only: str | None, seeds: int | None, changes: Sequence[str], full: bool
) -> list[tuple[Panel, Settings]]:
    """The panels of a demo ("all": of every one) with their settings.

    A change must fit at least one of them; those that have no such setting keep theirs. A number of seeds
    that a panel does not take becomes the nearest that it does. Raises InputError.
    """
    selected = list(panels.PANELS) if name == "all" else panels.of_demo(name)
    if only is not None:
        selected = [panel for panel in selected if panel.name == only]
        if not selected:
            names = ", ".join(panel.name for panel in panels.of_demo(name)) if name != "all" else "its panels"
            raise InputError(
                f"demo {name} has no panel {only!r}", where="--panel", mend=f"use one of {names}"
            )
    values = dict(key_and_value(change, example="--set width=32") for change in changes)
    written = (change.partition("=") for change in changes)
    texts = {key.strip(): text for key, _, text in written if not isinstance(values[key.strip()], str)}
    known = {key for panel in selected for key in panel.settings.model_fields}
    if unknown := sorted(values.keys() - known):
        mend = f"{name} takes {', '.join(sorted(known))}"
        raise InputError(f"there is no setting {unknown[0]!r}", where="--set", mend=mend)
    return [(panel, settings_of(panel, values | texts_of(panel, texts), seeds, full)) for panel in selected]


def texts_of(panel: Panel, texts: dict[str, str]) -> dict[str, str]:
    """Texts that TOML takes for something else, as they were written: a prompt like 1984 is a prompt."""
    parts = panel.settings.model_json_schema()["properties"]
    return {key: text for key, text in texts.items() if parts.get(key, {}).get("type") == "string"}


def settings_of(panel: Panel, values: dict[str, Any], seeds: int | None, full: bool) -> Settings:
    changes = {key: value for key, value in values.items() if key in panel.settings.model_fields}
    if seeds is not None and issubclass(panel.settings, Seeded):
        bounds = panel.settings.model_json_schema()["properties"]["seeds"]
        changes = {"seeds": max(bounds["minimum"], min(seeds, bounds["maximum"]))} | changes
    return panel.settings_from((panel.full if full else {}) | changes)


def warm() -> None:
    """Import what measuring needs, before anybody waits for it."""
    import torch

    torch.set_num_threads(1)


def prepare(panel: Panel) -> None:
    """Threads and memory of this process, as the deck's workers have them."""
    import torch

    from isoloss.training.device import prepare_cpu

    torch.set_num_threads(panel.threads)
    prepare_cpu()
