"""Every panel that ships, live at its smallest sizes: finished, then cancelled; what was measured stays."""

import asyncio

from isoloss.teach import result
from isoloss.teach.deck.jobs import Jobs
from isoloss.teach.panels import PANELS

TRAINED = {"seeds": 1, "cap": 10, "every": 5, "batch": 4}
SMALL = {
    "machine": {"size": 64, "repeats": 3},
    "reach": {"seeds": 1, "length": 8, "width": 8, "strings": 2},
    "first-letter": TRAINED,
    "random-place": TRAINED,
    "binding": TRAINED | {"pairs": [2], "keys": [8]},
    "steps": {"sentence": "a small model"},
    "untrained": {"seeds": 2, "sentence": "a small model", "d_model": 4},
    "trained": {},
    "right-slot": {"seeds": 1, "pairs": 2, "keys": 4, "values": 4, "updates": 10, "every": 5, "batch": 8},
    "training": {"seeds": 1, "updates": 10, "d_model": 8, "samples": 200},
    "race": {"lengths": [16, 32], "d_model": 32, "batch": 1, "gpu": False, "budget_seconds": 1.0},
    "bill": {"lengths": [16, 32], "d_model": 32, "repeats": 6, "tokens": 1},
    "showdown": {"tokens": 8, "samples": 2},
}
LONG = {"cap": 2_000, "every": 20, "seeds": 5}


async def until(true):
    async with asyncio.timeout(240):
        while not true():
            await asyncio.sleep(0.02)


async def cancelled(jobs, name):
    jobs.cancel(name)
    await until(lambda: not jobs.active(name))


async def finished_then_cancelled():
    """What each panel showed when it had finished, and after it was cancelled; what one showed on its way."""
    jobs = Jobs(PANELS)
    try:
        for name, values in SMALL.items():
            jobs.run(name, values)
        await until(lambda: not any(map(jobs.active, SMALL)))
        first = {name: (one.state, one.text, one.html, one.result) for name, one in jobs.states.items()}
        jobs.run("first-letter", LONG)
        await until(lambda: jobs.states["first-letter"].partial is not None)
        underway = jobs.states["first-letter"].message(output=True)["html"]
        await cancelled(jobs, "first-letter")
        for name, values in SMALL.items():
            jobs.run(name, values)
            await until(lambda name=name: jobs.states[name].state == "running")
            await cancelled(jobs, name)
        last = {name: (one.state, one.html, one.result) for name, one in jobs.states.items()}
        return first, underway, last
    finally:
        await jobs.close()


def test_every_panel_finishes_and_a_cancelled_run_keeps_what_it_measured():
    assert list(SMALL) == [panel.name for panel in PANELS]
    first, underway, last = asyncio.run(finished_then_cancelled())
    assert {name: text for name, (state, text, *_) in first.items() if state != "done"} == {}
    for name, (_, _, html, measured) in first.items():
        assert result.Result.model_validate(measured).panel == name
        assert 'data-part="headline"' in html, name
        assert "so-far" not in html, name
    assert "so-far" in underway
    assert {name: state for name, (state, *_) in last.items() if state != "cancelled"} == {}
    assert {name: kept for name, (_, *kept) in last.items()} == {
        name: kept for name, (_, _, *kept) in first.items()
    }
