"""What a study will cost, for people: a row for each design, and under the table what all of it takes."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from isoloss import checked, text
from isoloss.plans.cost import memories

if TYPE_CHECKING:  # they need torch, which a command that only reads does without
    from isoloss.studies.launch import DryRun
    from isoloss.studies.plan import PlannedRun

ROWS = 300
"""Of a plan that are printed: more take longer to draw than to plan, and nobody reads them."""

Column = tuple[str, Callable[[Sequence["PlannedRun"], Mapping[str, Any]], str]]
"""A head, and what stands under it for the runs of a design and the row of the first."""


def show(dry_run: "DryRun", hours: Sequence[Mapping[str, Any]], workers: int) -> None:
    from isoloss.studies.plan import designs

    rows = designs(dry_run.runs)
    Console(width=None if sys.stdout.isatty() else 140).print(table_of(dry_run, rows[:ROWS]))
    if left_out := sum(map(len, rows[ROWS:])):
        print(f"and {left_out:,} more runs: --json lists all")
    for line in lines(dry_run, hours, workers):
        print(line)


def memory_of(dry_run: "DryRun") -> str:
    """What the bytes of the plan are bytes of."""
    from isoloss.studies.estimate import machine_rate

    return "GPU memory" if dry_run.basis == machine_rate(gpu=True).basis else "RAM"


def table_of(dry_run: "DryRun", rows: "Sequence[Sequence[PlannedRun]]") -> Table:
    runs = len(dry_run.runs)
    shared = any(len(design) > 1 for design in rows)
    alike = "; those that differ only in their seed share a row" if shared else ""
    table = Table(title=f"{dry_run.study}, scale {dry_run.scale}: {text.plural(runs, 'run')}{alike}")
    columns = columns_of(dry_run)
    for head, _ in columns:
        table.add_column(head, justify="left" if head == "run" else "right", no_wrap=head == "run")
    for design in rows:
        row = design[0].as_row()
        table.add_row(*[cell(design, row) for _, cell in columns])
    return table


def columns_of(dry_run: "DryRun") -> list[Column]:
    """Executed parameters only where a run loops: elsewhere they are its parameters once more."""
    loops = any(executes_more(run.as_row()) for run in dry_run.runs)
    executed: Column = (
        "executed",
        lambda _, row: text.count(row["params_executed"]) if executes_more(row) else "",
    )
    return [
        ("run", lambda _, row: row["label"]),
        ("seeds", lambda design, _: str(len(design))),
        ("params", lambda _, row: text.count(row["params"])),
        ("total", lambda _, row: text.count(row["params_total"])),
        *([executed] if loops else []),
        ("tokens", lambda _, row: text.count(row["tokens"])),
        ("FLOPs,\n6ND", lambda _, row: text.power(row["flops_6nd"])),
        ("FLOPs,\nexact", lambda _, row: text.power(row["flops_exact"])),
        ("learning\nrate", lambda _, row: f"{row['learning_rate']:g}"),
        ("time\na run", lambda _, row: text.duration(row["seconds"])),
        (f"{memory_of(dry_run)}\na run", lambda _, row: text.size(row["memory_bytes"])),
    ]


def executes_more(row: Mapping[str, Any]) -> bool:
    return row["params_executed"] != row["params"]


def lines(dry_run: "DryRun", hours: Sequence[Mapping[str, Any]], workers: int) -> Iterator[str]:
    from isoloss.studies.plan import wall_seconds

    wall = text.duration(wall_seconds(dry_run.runs, workers))
    largest = text.size(max(run.memory_bytes for run in dry_run.runs))
    memory = f"up to {largest} of {memory_of(dry_run)} for one run"
    yield f"about {wall} on {text.plural(workers, 'worker')}, {memory}; {dry_run.basis}"
    for cost in hours:
        yield f"{hours_words(cost)}; {room_words(dry_run.runs, cost['gpu'])}"
    yield from (f"{name}: {checked.words(facts)}" for name, facts in dry_run.families.items())
    yield from (f"warning: {warning}" for warning in dry_run.warnings)


def hours_words(cost: Mapping[str, Any]) -> str:
    """'10.5 hours on one rtx4090, 32 at that price'."""
    hours, money = cost["hours"], cost["money"]
    said = text.power(hours, 1) if hours < 0.1 else in_digits(hours, 1)
    return f"{said} hours on one {cost['gpu']}" + (
        "" if money is None else f", {in_digits(money, 2)} at that price"
    )


def in_digits(value: float, decimals: int) -> str:
    """With so many decimals below 100, above with none."""
    return f"{value:,.{decimals if value < 100 else 0}f}"


def room_words(runs: "Sequence[PlannedRun]", gpu: str) -> str:
    """Do the runs fit there? Of the sizes that it is sold with none is named after one that is enough."""
    from isoloss.studies.plan import designs

    tried = [run for run, *_ in designs(runs)]
    said: list[str] = []
    for memory in memories(gpu):
        too_large, words = room_in(tried, memory)
        said.append(words)
        if not too_large:
            break
    return "; ".join(said)


def room_in(tried: "Sequence[PlannedRun]", memory: float) -> "tuple[list[PlannedRun], str]":
    """Those that do not fit however small their micro-batches are, and a sentence."""
    from isoloss.studies.gpu import SHARE, execution_on_gpu
    from isoloss.training.settings import Execution

    parts = [execution_on_gpu(run, Execution(), memory).micro_batches for run in tried]
    needed = [bytes_on(run, part, memory) for run, part in zip(tried, parts, strict=True)]
    too_large = [run for run, there in zip(tried, needed, strict=True) if there > SHARE * memory]
    place = f"{memory / 1e9:g} GB"
    if not too_large:
        many = f", with batches in up to {max(parts)} micro-batches" if max(parts) > 1 else ""
        return too_large, f"all runs fit in {place}{many}"
    largest = max(too_large, key=lambda run: run.counts.params_total)
    others = f" and {text.plural(len(too_large) - 1, 'other shape')}" if len(too_large) > 1 else ""
    return too_large, f"{largest.label}{others} would not fit in {place}, of which runs fill {SHARE:.0%}"


def bytes_on(run: "PlannedRun", micro_batches: int, memory: float) -> float:
    from isoloss.models import shape_of
    from isoloss.studies.estimate import bytes_of

    shape = shape_of(run.settings.family, run.settings.shape)
    return bytes_of(run.settings, shape, run.counts, micro_batches, memory)
