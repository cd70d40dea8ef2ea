"""What "Run all" costs: every panel of the deck at its live size, in one worker process of its server.

    python benchmarks/teaching.py            prints the table; minutes on one core
    python benchmarks/teaching.py --keep     also writes benchmarks/results/teaching.txt and the deck's budget
    python benchmarks/teaching.py --start    how long the deck takes to start, with nothing kept and again

CPU seconds of the whole process, imports and pictures included, beside those of each measurement alone. A
start ends when the page has been answered; its worker, which imports torch meanwhile, is not counted. On a
busy machine only the CPU seconds say something.
"""

import argparse
import asyncio
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from isoloss import files
from isoloss.teach import result as results
from isoloss.teach.deck.process import Worker
from isoloss.teach.panels import PANELS

HERE = Path(__file__).parent
BUDGET = HERE.parent / "src" / "isoloss" / "teach" / "budget.toml"
MOST = 90.0
MOST_TO_START = {"cold": 8.0, "warm": 3.0}


async def run_all() -> list[results.Result]:
    worker, measured = await Worker.start(), []
    for panel in PANELS:
        settings = panel.settings().model_dump(mode="json")
        async for event in worker.measure(panel.name, settings):
            if event["event"] == "failed":
                raise SystemExit(f"{panel.name}: {event['message']}")
            if event["event"] == "result":
                measured.append(results.Result.model_validate(event["result"]))
    await worker.kill()
    return measured


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start_deck(home: Path) -> tuple[float, float, int]:
    """Seconds and CPU seconds from the command to its page, and the page's bytes. ``home``: what is kept."""
    command = [sys.executable, "-m", "isoloss.cli", "deck", "--no-open"]
    begin = time.monotonic()
    with subprocess.Popen(
        command, env=os.environ | {"ISOLOSS_HOME": str(home)}, stderr=subprocess.PIPE, text=True
    ) as deck:
        line = next(line for line in deck.stderr or () if " is at http" in line)
        with urllib.request.urlopen(line.split()[-1], timeout=60) as answer:  # noqa: S310 - our own server
            size = len(answer.read())
        seconds = time.monotonic() - begin
        # User and system time of the server alone: fields 14 and 15 of proc(5).
        fields = Path(f"/proc/{deck.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        deck.send_signal(signal.SIGINT)
    return seconds, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), size


def print_starts() -> None:
    with tempfile.TemporaryDirectory() as home:
        for name, most in MOST_TO_START.items():
            seconds, cpu, size = start_deck(Path(home))
            wanted = f"at most {most:.0f} wanted"
            print(f"{name} start: {seconds:.1f} s, {cpu:.1f} CPU-seconds ({wanted}), {size:,} bytes")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keep", action="store_true")
    options.add_argument("--start", action="store_true")
    chosen = options.parse_args()
    if chosen.start:
        return print_starts()
    keep = chosen.keep
    measured = asyncio.run(run_all())
    whole = cpu_of_children()
    alone = sum(result.cpu_seconds for result in measured)
    machine = measured[0].machine
    gflops = float(measured[0].tables["rates"][0]["gflops"])
    lines = [
        f"{machine.line()}; {machine.cores} cores; {gflops:.0f} GFLOP/s on one thread; {results.now()[:10]}",
        "",
        f"{'panel':<16}{'CPU-seconds':>12}",
        *[f"{result.panel:<16}{result.cpu_seconds:>12.1f}" for result in measured],
        f"{'measuring':<16}{alone:>12.1f}",
        f"{'whole process':<16}{whole:>12.1f}   (at most {MOST:.0f} wanted)",
    ]
    print("\n".join(lines))
    if keep:
        files.write_text(HERE / "results" / "teaching.txt", "\n".join(lines) + "\n")
        rows = [f"{result.panel} = {result.cpu_seconds:.2f}" for result in measured]
        started = f"starting = {whole - alone:.2f}"
        head = [
            "# Written by benchmarks/teaching.py: CPU seconds of each panel at the deck's live size.",
            f'machine = "{machine.cpu}"',
            f'made = "{results.now()[:10]}"',
            f"gflops = {gflops:.1f}",
            "",
            "[cpu_seconds]",
        ]
        files.write_text(BUDGET, "\n".join([*head, started, *rows]) + "\n")


if __name__ == "__main__":
    main()
