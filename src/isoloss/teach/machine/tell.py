"""What the calibration says."""

from collections.abc import Sequence

from isoloss.figures.figure import Figure
from isoloss.teach import budget
from isoloss.teach.machine.settings import MachineSettings
from isoloss.teach.result import Basis, Row, Sentence, Tables


def basis(settings: MachineSettings, tables: Tables) -> Basis:
    return Basis(n=settings.repeats, units="repeats", interval="median, lowest to highest")


def sentences(settings: MachineSettings, tables: Tables) -> list[Sentence]:
    single, *more = tables["rates"]
    text = f"One thread multiplies matrices at {_rate(single)}."
    if more:
        text += f" {more[-1]['threads']} threads: {_rate(more[-1])}."
    sentences = [Sentence(key="rate", text=text)]
    cost = budget.recorded()
    if cost is not None:
        here = cost.total * cost.gflops / float(single["gflops"])
        sentences.append(
            Sentence(
                key="run-all",
                text=f"Every panel of this deck took {cost.total:.0f} CPU-seconds on a core that did "
                f"{cost.gflops:.0f} GFLOP/s ({cost.machine}, {cost.made}); expect about {here:.0f} here.",
            )
        )
    return sentences


def _rate(row: Row) -> str:
    return f"{row['gflops']:.0f} GFLOP/s ({row['low']:.0f} to {row['high']:.0f}, {row['n']} repeats)"


def figures(settings: MachineSettings, tables: Tables) -> Sequence[Figure]:
    return []


def lines(settings: MachineSettings, tables: Tables) -> list[str]:
    return [f"{row['threads']} thread(s): {_rate(row)}" for row in tables["rates"]]
