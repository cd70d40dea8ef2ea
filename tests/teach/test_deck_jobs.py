"""The deck's jobs: real processes that measure nothing, so that only the handling is tested."""

import asyncio
import os
import sys

import pytest
from fake_panels import COMMAND, HOSTILE, LIGHT, PANELS, UNCAPPED

from isoloss.errors import InputError, Refusal
from isoloss.teach.deck import process
from isoloss.teach.deck.jobs import Jobs, JobState
from isoloss.teach.deck.process import Worker, WorkerDied

LONG = {"seconds": 500.0}


async def until(true, seconds=20.0):
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


def state(jobs, name="quick"):
    return jobs.states[name].state


def in_a_loop(test, *, command=LIGHT, panels=PANELS):
    """Run a coroutine over fresh jobs, and close them whatever happens."""

    async def whole():
        jobs = Jobs(panels, command=command)
        try:
            return await test(jobs)
        finally:
            await jobs.close()

    return asyncio.run(whole())


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(jobs, name="quick"):
    return int(jobs.states[name].text.rsplit(" ", 1)[1])


def test_a_job_streams_and_finishes_and_its_process_serves_the_next_one():
    async def go(jobs):
        page = jobs.join()
        jobs.run("quick", {"prompt": "one"})
        await until(lambda: state(jobs) == "done")
        heard = [page.get_nowait() for _ in range(page.qsize())]
        first = jobs.states["quick"].result
        jobs.run("quick", {"prompt": "two"})
        assert jobs.states["quick"].html == "<p>one</p>"  # kept until a newer one comes
        await until(lambda: state(jobs) == "done")
        return heard, first, jobs.states["quick"]

    heard, first, last = in_a_loop(go)
    assert [message["state"] for message in heard] == ["queued", "running", "running", "running", "done"]
    assert [message.get("html") for message in heard] == [None, None, None, "<p>so far</p>", "<p>one</p>"]
    assert last.html == "<p>two</p>"
    assert last.result == first


def test_a_page_that_comes_late_sees_how_things_stand():
    async def go(jobs):
        jobs.run("quick", {"prompt": "one"})
        await until(lambda: state(jobs) == "done")
        return jobs.join().get_nowait()

    message = in_a_loop(go)
    assert (message["panel"], message["state"], message["html"]) == ("quick", "done", "<p>one</p>")


def test_cancelling_ends_the_process_and_the_next_job_gets_a_new_one():
    async def go(jobs):
        jobs.run("quick", LONG)
        await until(lambda: "half way" in jobs.states["quick"].text)
        pid = pid_of(jobs)
        assert is_there(pid)
        jobs.cancel("quick")
        await until(lambda: state(jobs) == "cancelled")
        assert not is_there(pid)
        jobs.run("quick", {})
        await until(lambda: state(jobs) == "done")
        return pid, jobs.states["quick"].result["pid"]

    before, after = in_a_loop(go)
    assert before != after


def test_a_job_may_be_cancelled_before_it_begins():
    async def go(jobs):
        jobs.run("quick", LONG)
        jobs.cancel("quick")  # its task has not taken its first step yet
        jobs.run("second", {})
        jobs.run("capped", {})
        jobs.cancel("capped")  # still waiting in the queue
        await until(lambda: state(jobs) == "cancelled" and state(jobs, "second") == "done")
        return state(jobs, "capped")

    assert in_a_loop(go) == "cancelled"


def test_a_job_cancelled_while_its_process_starts_leaves_none(tmp_path):
    """Cancelled after any number of the event loop's steps, some of them after the process began."""
    begin = ("/bin/sh", "-c", f"touch {tmp_path}/$$; exec sleep 9")

    async def go(jobs):
        for steps in range(24):
            jobs.run("quick", {})
            for _ in range(steps):
                await asyncio.sleep(0 if steps < 12 else 0.001)
            jobs.cancel("quick")
            await until(lambda: state(jobs) == "cancelled")
        return [int(path.name) for path in tmp_path.iterdir()]

    begun = in_a_loop(go, command=begin)
    assert begun
    assert not any(is_there(pid) for pid in begun)


def test_a_dead_process_is_an_error_with_its_last_words_and_the_deck_lives_on():
    async def go(jobs):
        jobs.run("quick", {"end": "die"})
        await until(lambda: state(jobs) == "failed")
        words = jobs.states["quick"].text
        jobs.run("quick", {})
        await until(lambda: state(jobs) == "done")
        return words

    assert "out of memory, says the kernel" in in_a_loop(go)


@pytest.mark.parametrize(("end", "words"), [("nonsense", "JSONDecodeError"), ("raise", "it met a wall")])
def test_a_failure_is_told(end, words):
    async def go(jobs):
        jobs.run("quick", {"end": end})
        await until(lambda: state(jobs) == "failed")
        return jobs.states["quick"].text

    assert words in in_a_loop(go)


def test_a_worker_that_was_warmed_takes_the_first_job():
    async def go(jobs):
        await jobs.warm()
        pid = jobs._worker._process.pid
        jobs.run("quick", {})
        await until(lambda: state(jobs) == "done")
        return pid, jobs.states["quick"].result["pid"]

    warmed, measured = in_a_loop(go)
    assert warmed == measured

    async def both(jobs):
        jobs.run("quick", {})
        await asyncio.gather(jobs.warm(), jobs.warm())
        await until(lambda: state(jobs) == "done")
        return jobs._worker._process.pid, jobs.states["quick"].result["pid"]

    one, same = in_a_loop(both)
    assert one == same, "asked for at once, it is started once"


def test_a_worker_that_does_not_start_is_told():
    async def go(jobs):
        jobs.run("quick", {})
        await until(lambda: state(jobs) == "failed")
        return jobs.states["quick"].text

    assert "No such file" in in_a_loop(go, command=("/no/such/program",))
    assert "it left with code 3" in in_a_loop(go, command=(sys.executable, "-c", "import sys; sys.exit(3)"))


def test_a_job_over_its_cap_is_ended_and_says_so():
    async def go(jobs):
        jobs.run("capped", LONG)
        await until(lambda: state(jobs, "capped") == "failed")
        return jobs.states["capped"].text

    assert "more than its cap of 1 seconds" in in_a_loop(go)


def test_a_second_cancel_does_not_break_off_the_killing():
    async def go(jobs):
        jobs.run("quick", LONG)
        await until(lambda: "half way" in jobs.states["quick"].text)
        pid = pid_of(jobs)
        for _ in range(3):
            jobs.cancel("quick")
            await asyncio.sleep(0)
        await until(lambda: not jobs.active("quick"))
        return is_there(pid)  # killed and fetched home, or it would still be there as a zombie

    assert not in_a_loop(go)


def test_one_runs_at_a_time_in_the_order_asked_for():
    async def go(jobs):
        seen = []
        for name in ("quick", "second", "taste"):
            jobs.run(name, {"seconds": 0.1})
        while any(jobs.active(name) for name in jobs.panels):
            seen.append(tuple(name for name in jobs.states if state(jobs, name) == "running"))
            await asyncio.sleep(0.005)
        return [running for running in dict.fromkeys(seen) if running]

    assert in_a_loop(go) == [("quick",), ("second",), ("taste",)]


def test_run_all_queues_each_panel_once():
    async def go(jobs):
        jobs.run("quick", {"prompt": "mine", "seconds": 0.3})
        jobs.run_all()
        jobs.run_all()
        await until(lambda: not any(jobs.active(name) for name in jobs.panels))
        return {name: state(jobs, name) for name in jobs.panels}, jobs.states["quick"].html

    states, html = in_a_loop(go, panels=UNCAPPED)
    assert set(states) == {panel.name for panel in UNCAPPED}
    assert set(states.values()) == {"done"}
    assert html == "<p>mine</p>"


def test_a_panel_under_way_and_settings_it_does_not_take_are_refused():
    async def go(jobs):
        jobs.run("quick", LONG)
        with pytest.raises(Refusal, match="under way"):
            jobs.run("quick", {})
        for values in ({"points": 10**9}, {"points": "4"}, {"poker": 1}, {"prompt": "x" * 41}):
            with pytest.raises(InputError, match="panel second"):
                jobs.run("second", values)
        return "second" in jobs.states

    assert in_a_loop(go) is False


def test_closing_ends_every_process():
    async def go(jobs):
        jobs.run("second", {})
        await until(lambda: state(jobs, "second") == "done")
        jobs.run("quick", LONG)
        await until(lambda: "half way" in jobs.states["quick"].text)
        return pid_of(jobs)

    async def idle(jobs):
        jobs.run("quick", {})
        await until(lambda: state(jobs) == "done")
        return jobs.states["quick"].result["pid"]

    assert [is_there(in_a_loop(closed)) for closed in (go, idle)] == [False, False]


def test_a_page_that_lags_far_behind_is_let_go():
    async def go(jobs):
        page = jobs.join()
        jobs.run("second", LONG)
        for _ in range(600):
            jobs.run("quick", {})
            jobs.cancel("quick")
        return jobs.watched, [page.get_nowait() for _ in range(page.qsize())][-1]

    watched, last = in_a_loop(go)
    assert watched is False
    assert last is None


def test_a_worker_that_left_before_it_got_its_order_says_its_last_words():
    async def go(code):
        worker = await Worker.start((sys.executable, "-c", code))
        await worker._process.wait()
        with pytest.raises(WorkerDied) as died:
            await anext(worker.measure("quick", {}))
        await worker.kill()
        return str(died.value)

    assert asyncio.run(go("raise SystemExit(3)")) == "it left with code 3"
    assert asyncio.run(go("raise SystemExit('no memory')")) == "no memory"


@pytest.mark.parametrize("command", [LIGHT, COMMAND])
def test_a_worker_ends_with_its_stdin_in_the_middle_of_a_job(command):
    async def go():
        worker = await Worker.start(command)
        events = worker.measure("quick", {"end": "well", **LONG})
        await anext(events)
        worker._process.stdin.close()
        async with asyncio.timeout(20):
            with pytest.raises(WorkerDied, match="it left with code 0"):
                async for _ in events:
                    pass
        await worker.kill()

    asyncio.run(go())


def test_the_real_worker_measures_tells_and_survives_an_error():
    """The package's own worker, with panels of this test: its markup, its errors, a library that prints."""

    async def go(jobs):
        jobs.run("quick", {"loud": True, "prompt": HOSTILE[:40], "seconds": 2.0})
        await until(lambda: jobs.states["quick"].partial is not None, 60)
        partial = jobs.states["quick"].partial
        await until(lambda: state(jobs) == "done", 60)
        first = jobs.states["quick"]
        jobs.run("second", {"end": "raise"})
        await until(lambda: state(jobs, "second") == "failed", 60)
        failed = jobs.states["second"].text
        jobs.run("second", {})
        await until(lambda: state(jobs, "second") == "done", 60)
        return partial, first, failed

    partial, first, failed = in_a_loop(go, command=COMMAND)
    assert "so-far" in partial
    assert "<svg" in partial
    assert "LIVE" in first.html
    assert "EXACT" in first.html
    assert "n = 2,000 unseen strings · 3 seeds · Wilson interval" in first.html
    assert "<script" not in first.html
    assert "&lt;script&gt;" in first.html
    assert first.result["sentences"][0]["key"] == "top"
    # It slept, and pictures on the way are not counted.
    assert first.result["cpu_seconds"] < first.result["wall_seconds"] / 10
    assert "ValueError: the measurement met a wall" in failed


def test_a_run_that_is_stopped_keeps_what_it_measured_and_the_next_one_runs_to_its_end():
    async def go(jobs):
        jobs.run("timed", {"points": 50, "seconds": 100.0})
        await until(lambda: jobs.states["timed"].done > 0, 60)
        await jobs.stop("timed")
        await until(lambda: state(jobs, "timed") == "done", 60)
        stopped = jobs.states["timed"].result
        jobs.run("timed", {"points": 3})
        await until(lambda: state(jobs, "timed") == "done", 60)
        return stopped, jobs.states["timed"].result

    stopped, whole = in_a_loop(go, command=COMMAND)
    assert 0 < len(stopped["tables"]["points"]) < 2000
    assert stopped["sentences"][1]["text"] == f"There are {len(stopped['tables']['points'])} points."
    assert len(whole["tables"]["points"]) == 3, "control: the stop was for one run"


def test_what_cannot_be_told_by_half_is_not_stopped():
    async def go(jobs):
        jobs.run("second", LONG)
        await until(lambda: state(jobs, "second") == "running")
        with pytest.raises(Refusal, match="told whole or not at all"):
            await jobs.stop("second")
        await jobs.stop("timed")  # nothing runs there, nothing happens

    in_a_loop(go)


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_run_that_does_not_end_well_gives_back_what_was_measured(how):
    jobs = Jobs(PANELS)
    jobs.states["quick"] = JobState("quick", "running", html="<p>kept</p>", result={"panel": "quick"})
    page = jobs.join()
    assert page.get_nowait()["html"] == "<p>kept</p>"
    jobs._handle("quick", {"event": "partial", "html": "<p>half</p>"})
    assert page.get_nowait()["html"] == "<p>half</p>"
    jobs._end("quick", how, how)
    last = page.get_nowait()
    assert (last["state"], last["html"], last["result"]) == (how, "<p>kept</p>", {"panel": "quick"})
    assert jobs.join().get_nowait()["html"] == "<p>kept</p>", "after a reload too"


def test_a_killed_process_is_told_in_words():
    assert process.ended(-9) == "it was killed by SIGKILL: often the memory of the machine was full"
    assert process.ended(-15) == "it was killed by SIGTERM"
