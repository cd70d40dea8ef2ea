"""What "Run all" costs: every panel of the deck at its live size, in one worker process of its server.

    python benchmarks/teaching.py            prints the table; minutes on one core
    python benchmarks/teaching.py --keep     also writes benchmarks/results/teaching.txt and the deck's budget

CPU seconds of the whole process, imports and pictures included, beside those of each measurement alone.
"""

import argparse
import asyncio
import resource
from pathlib import Path

from isoloss import files
from isoloss.teach import result as results
from isoloss.teach.deck.process import Worker
from isoloss.teach.panels import PANELS

HERE = Path(__file__).parent
BUDGET = HERE.parent / "src" / "isoloss" / "teach" / "budget.toml"
MOST = 90.0


async def run_all() -> list[results.Result]:
    worker, found = await Worker.start(), []
    for panel in PANELS:
        settings = panel.settings().model_dump(mode="json")
        async for event in worker.measure(panel.name, settings):
            if event["event"] == "failed":
                raise SystemExit(f"{panel.name}: {event['message']}")
            if event["event"] == "result":
                found.append(results.Result.model_validate(event["result"]))
    await worker.kill()
    return found


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keep", action="store_true")
    keep = options.parse_args().keep
    found = asyncio.run(run_all())
    whole = cpu_of_children()
    alone = sum(result.cpu_seconds for result in found)
    machine = found[0].machine
    gflops = float(found[0].tables["rates"][0]["gflops"])
    lines = [
        f"{machine.line()}; {machine.cores} cores; {gflops:.0f} GFLOP/s on one thread; {results.now()[:10]}",
        "",
        f"{'panel':<16}{'CPU-seconds':>12}",
        *[f"{result.panel:<16}{result.cpu_seconds:>12.1f}" for result in found],
        f"{'measuring':<16}{alone:>12.1f}",
        f"{'whole process':<16}{whole:>12.1f}   (at most {MOST:.0f} wanted)",
    ]
    print("\n".join(lines))
    if keep:
        files.write_text(HERE / "results" / "teaching.txt", "\n".join(lines) + "\n")
        rows = [f"{result.panel} = {result.cpu_seconds:.2f}" for result in found]
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
