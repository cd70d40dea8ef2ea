"""From a command's words to panels with settings: what fits is taken, what does not is named."""

import pytest
import torch

from isoloss.errors import InputError
from isoloss.teach import panels, start
from isoloss.teach.settings import Seeded


def selected(name, *changes, only=None, seeds=None, full=False):
    return start.select_panels(name, only=only, seeds=seeds, changes=changes, full=full)


def values(pairs):
    return {panel.name: settings.model_dump() for panel, settings in pairs}


def test_a_demo_is_all_its_panels_at_the_decks_sizes():
    pairs = selected("amnesia")
    assert [panel.name for panel, _ in pairs] == ["reach", "first-letter", "random-place", "binding"]
    assert all(settings == panel.settings() for panel, settings in pairs)
    assert [panel.name for panel, _ in selected("all")] == [panel.name for panel in panels.PANELS]


def test_a_change_goes_to_every_panel_that_has_the_setting_and_to_no_other():
    changed = values(selected("amnesia", "cap=60", "every=20"))
    assert [changed[name]["cap"] for name in ("first-letter", "random-place", "binding")] == [60] * 3
    assert changed["reach"] == values(selected("amnesia"))["reach"]


def test_the_last_of_two_changes_holds_and_lists_are_toml():
    taken = values(selected("amnesia", "lengths=[8]", "lengths = [12, 16]", only="first-letter"))
    assert list(taken["first-letter"]["lengths"]) == [12, 16]


@pytest.mark.parametrize("seeds", [1, 2, 10**6])
def test_seeds_become_the_nearest_number_that_each_panel_takes(seeds):
    seen = set()
    for panel, settings in selected("all", seeds=seeds):
        if not issubclass(panel.settings, Seeded):
            continue
        bounds = panel.settings.model_json_schema()["properties"]["seeds"]
        assert settings.seeds == sorted((bounds["minimum"], seeds, bounds["maximum"]))[1]
        seen.add(panel.name)
    assert {"reach", "first-letter", "race"} & seen, "control: some panels have seeds"


def test_a_change_of_seeds_by_name_goes_before_the_option():
    assert values(selected("amnesia", "seeds=5", only="reach", seeds=2))["reach"]["seeds"] == 5


def test_full_settings_are_those_of_the_recording_and_changes_go_over_them():
    panel = panels.panel("first-letter")
    full = values(selected("amnesia", only="first-letter", full=True))["first-letter"]
    assert full == panel.settings_from(panel.full).model_dump()
    assert full != values(selected("amnesia", only="first-letter"))["first-letter"]
    smaller = values(selected("amnesia", "batch=4", only="first-letter", full=True))["first-letter"]
    assert smaller == full | {"batch": 4}


@pytest.mark.parametrize(
    ("name", "changes", "only", "what", "mend"),
    [
        ("amnesia", (), "race", "demo amnesia has no panel 'race'", "use one of reach, first-letter"),
        ("all", (), "nothing", "demo all has no panel 'nothing'", "its panels"),
        ("amnesai", (), None, "there is no demo 'amnesai'", "use one of machine, amnesia"),
        ("amnesia", ("widht=32",), None, "there is no setting 'widht'", "amnesia takes batch, cap"),
        ("amnesia", ("width",), None, "'width' is not KEY=VALUE", "--set width=32"),
        ("amnesia", ("=3",), None, "'=3' is not KEY=VALUE", "--set width=32"),
        (
            "amnesia",
            ("cap=many",),
            None,
            "Most updates of training (cap) takes a whole number, got 'many'",
            "change it",
        ),
        ("amnesia", ("cap=0",), None, "Most updates of training (cap) takes at least 1, got 0", "change it"),
        ("amnesia", ("lengths=[]",), None, "(lengths) takes a list of at least 1, got", "change it"),
        ("amnesia", ("widths=[30]",), "binding", "(widths) takes multiples of 4, got 30", "change it"),
        ("showdown", (f"prompt={'x' * 600}",), None, "(prompt) takes at most 500 characters", "change it"),
        ("machine", ("size=64.5",), None, "takes a whole number, got 64.5", "change it"),
        ("amnesia", ("cap=10000", "seeds=20", "batch=256"), None, "times the work that is allowed", ""),
    ],
)
def test_what_does_not_fit_is_refused_and_says_what_would(name, changes, only, what, mend):
    with pytest.raises(InputError) as caught:
        selected(name, *changes, only=only)
    assert what in caught.value.what
    assert mend in caught.value.mend
    assert caught.value.exit_code == 2


def test_what_is_no_number_is_refused_in_words():
    with pytest.raises(InputError, match=r"\(rates\) takes a number that is not infinite, got nan"):
        panels.panel("binding").settings_from({"rates": [float("nan")]})


def test_names_of_panels_and_demos_lead_to_each_other():
    for panel in panels.PANELS:
        assert panels.panel(panel.name) is panel
        assert panel in panels.of_demo(panel.demo)
    assert {panel.demo for panel in panels.PANELS} == set(panels.DEMOS)
    with pytest.raises(InputError, match="there is no panel 'rcae'") as caught:
        panels.panel("rcae")
    assert "race" in caught.value.mend


def test_a_process_is_made_ready_with_the_panels_threads():
    before = torch.get_num_threads()
    try:
        start.prepare(panels.panel("reach"))
        assert torch.get_num_threads() == panels.panel("reach").threads == 1
    finally:
        torch.set_num_threads(before)


def test_a_prompt_that_looks_like_a_number_is_a_prompt():
    ((_, settings),) = selected("showdown", "prompt=1984", "tokens=20")
    assert (settings.prompt, settings.tokens) == ("1984", 20)
    ((_, settings),) = selected("showdown", 'prompt="in quotes"')
    assert settings.prompt == "in quotes"


def test_an_unknown_demo_is_told_of_all():
    with pytest.raises(InputError, match="or all of them: all"):
        selected("foo")
