"""Logs as one loss table: the contract's columns, and for each number where it came from."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isoloss import files, text
from isoloss.errors import InputError
from isoloss.laws import form
from isoloss.records.table import COLUMNS
from isoloss.sources.columns import runs
from isoloss.sources.derive import derive, rules
from isoloss.sources.endings import contract_status
from isoloss.sources.logs.readers import frame
from isoloss.sources.naming import COUNTED, SYNONYMS, candidates, header, loss_unit, plain
from isoloss.sources.read import FAILURES, read

NOT_LOGGED = ("label", "loss_expected", "entropy", "loss_total", "diverged_step", "reason")
CONTRACT = {name: kind for name, kind in COLUMNS.items() if name not in NOT_LOGGED} | {
    "flops": pl.Float64, "planned_steps": pl.Int64, "origin": pl.String, "rules": pl.String,
}  # fmt: skip
"""The contract's columns; FLOPs as the tracker counted them, steps planned; ``origin`` names the file of a
row, ``rules`` the key or the rule behind each column."""

_DERIVED = ("batch_tokens", "tokens", "params", "bits_per_byte")
_TRAINING = ("loss", "L", "final_loss")
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|eval|evaluation|test|heldout|dev)(_|$)")


_WAYS = {
    "params": "give --table with the runs' sizes, --column params=KEY or --value params=NUMBER",
    "tokens": "give --column tokens=KEY, or --value batch_tokens=NUMBER to multiply with steps",
    "loss": "no evaluation",
}
FEWEST_VALUES, LEAST_SPAN = 3, 3.2
"""Of N and of D, from which an exponent is fitted; the span is half a decade."""


@dataclass(frozen=True)
class LossTable:
    """``frame``: the columns of ``CONTRACT``. ``columns``: our name -> the key or the rule behind it.

    ``doubts``: what the checks of a table found.
    """

    frame: pl.DataFrame
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def lacks(self) -> list[str]:
        """Of what most laws need, what some rows are without."""
        return [name for name in ("params", "tokens", "loss") if self.frame[name].has_nulls()]

    def lines(self) -> Iterator[str]:
        """How much was read, and from which key or by which rule each column is."""
        runs = self.frame["run_id"].n_unique() if self.frame["run_id"].count() else self.frame.height
        yield f"{text.plural(runs, 'run')}, {text.plural(self.frame.height, 'row')}"
        yield from (f"{name}: {key}" for name, key in self.columns.items())
        yield from (f"note: {note}" for note in self.notes)
        for name in self.lacks:
            if name == "params" and self.by_total and not self.frame["params_total"].has_nulls():
                continue
            count = self.frame[name].null_count()
            in_bits = name == "loss" and self.frame["bits_per_byte"].count()
            way = "bits per byte become a loss with --bytes-per-token" if in_bits else _WAYS[name]
            yield f"note: {name} is empty in {text.plural(count, 'row')}: {way}"

    @property
    def by_total(self) -> bool:
        """Is all that is known of sizes the parameters with embeddings?"""
        return not self.frame["params"].count() and self.frame["params_total"].count() > 0

    def next_step(self, path: Path | None) -> str:
        """The command that fits what is there, or by how much it is too little for one."""
        size = "params_total" if self.by_total else "params"
        in_bits = not self.frame["loss"].count() and self.frame["bits_per_byte"].count()
        loss = "bits_per_byte" if in_bits else "loss"
        law = form("chinchilla")
        used = self.frame.select(pl.col(size, "tokens", loss).cast(pl.Float64, strict=False))
        used = used.filter(pl.all_horizontal(pl.all().is_between(0, math.inf, closed="none")))
        points, needed = used.select(size, "tokens").n_unique(), len(law.parameters) + 1
        values = [np.unique(used[name].to_numpy()) for name in (size, "tokens")]
        if points < needed or any(len(x) < FEWEST_VALUES or x[-1] < LEAST_SPAN * x[0] for x in values):
            sizes, lengths = map(len, values)
            return (
                f"Next: more runs. A law of N and D needs a loss at {needed} different points, with "
                f"{FEWEST_VALUES} sizes N and {FEWEST_VALUES} numbers of tokens D, the largest of each at "
                f"least {LEAST_SPAN} times the smallest; here: {text.plural(points, 'point')}, "
                f"{text.plural(sizes, 'size')}, {lengths} of tokens."
            )
        options = (" --count params_total" if self.by_total else "") + (f" --loss {loss}" if in_bits else "")
        return f"Next: isoloss fit {path} --law chinchilla{options}"

    def summary(self) -> dict[str, Any]:
        return {
            "rows": self.frame.height,
            "runs": self.frame["run_id"].n_unique(),
            "columns": dict(self.columns),
            "empty": {name: self.frame[name].null_count() for name in self.lacks},
            "notes": list(self.notes),
            "warnings": list(self.doubts),
        }


def loss_table(
    source: str,
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
    table: str | Path | None = None,
    last: bool = False,
    pattern: str | None = None,
    bytes_per_token: float | None = None,
) -> LossTable:
    """The runs that ``source`` logged in ``path``, a row an evaluation.

    ``columns``: our name -> the log's key, where the well-known names do not tell. ``values``: our name -> a
    number that holds for all runs and that no file says. ``table``: a table with a row a run, by its name,
    for sizes that the log lacks. ``last`` keeps the last evaluation of each run. ``pattern`` names that of
    text logs.

    A run without an evaluation has one row without a loss. Raises InputError for a log that cannot be read,
    and where no key, or more than one, could be the loss.
    """
    path = str(path)
    logged, notes = frame(source, path, pattern)
    if table is not None:
        logged = _with_sizes(logged, read(table), str(table))
    taken = dict(columns or {})
    for name, value in (values or {}).items():
        taken[name] = f"--value {name}"
        logged = logged.with_columns(pl.lit(float(value)).alias(taken[name]))
    key = _loss_key(logged, taken, path)
    taken["bits_per_byte" if loss_unit(key) == "bits per byte" else "loss"] = key
    if "batch_sequences" in logged.columns:  # a name that no table is searched for
        taken.setdefault("batch_sequences", "batch_sequences")
    names = candidates("run_id", logged.columns)
    if source != "csv" and "run_id" in logged.columns:
        taken.setdefault("run_id", "run_id")
        logged = _evaluations(logged, key, last)
    elif last and names:
        raise InputError("a table with a row a run has no last rows", where="--last", mend="leave it out")
    run_table = runs(
        logged, columns=taken, needed=[name for name in ("loss", "bits_per_byte") if name in taken]
    )
    whole, derived = run_table.frame, dict[str, str]()
    in_force = rules(bytes_per_token=bytes_per_token)
    for name in _DERIVED if "loss" in taken else ("loss", *_DERIVED):
        if step := derive(name, whole, in_force):
            whole, derived = step[0], derived | step[1]
    behind = {name: _in_its_unit(name, column) for name, column in run_table.columns.items()}
    behind = {{"steps": "step"}.get(name, name): key for name, key in behind.items()}
    behind |= {name: rule.partition(" = ")[2] for name, rule in derived.items()}
    notes += [note for note in run_table.source["notes"] if " is the column " not in note]
    return LossTable(
        _in_contract(whole, logged["origin"], behind, Path(path).name, run_table.loss_unit),
        behind,
        tuple(notes),
        tuple(issue.message for issue in run_table.findings),
    )


def _with_sizes(logged: pl.DataFrame, table: pl.DataFrame, where: str) -> pl.DataFrame:
    """``logged`` with the columns of a table with a row a run. Raises InputError where names do not meet."""
    names = candidates("run_id", table.columns)
    ordered = sorted(names, key=lambda name: SYNONYMS["run_id"].index(plain(name)))
    keys = [key for key in ordered if table[key].cast(pl.String).is_in(logged["run_id"].to_list()).any()]
    if not keys:
        some = ", ".join(map(repr, logged["run_id"].unique().sort()[:4]))
        mend = "give it a column run_id with these names"
        raise InputError(f"names no run of the log ({some}, ...)", where=where, mend=mend)
    key = keys[0]
    if table[key].is_duplicated().any():
        raise InputError(f"names a run twice in {key}", where=where, mend="keep one row a run")
    lacks = [name for name in table.columns if name not in (*logged.columns, *names)]
    joined = table.select(pl.col(key).cast(pl.String).alias("run_id"), *lacks)
    return logged.join(joined, on="run_id", how="left", maintain_order="left")


def _loss_key(logged: pl.DataFrame, taken: dict[str, str], where: str) -> str:
    """The key of the loss: as told, else the one that is measured on held-out text, else the only one."""
    if name := taken.pop("loss", None):
        if name not in logged.columns:
            keys = [key for key in logged.columns if "loss" in key.lower() or "bpb" in key.lower()]
            raise InputError(f"there is no key {name!r}", where=where, mend=_choose(keys or logged.columns))
        return name
    filled = [name for name in logged.columns if logged[name].null_count() < logged.height]
    known = [key for key in filled if key not in taken.values()]
    losses = candidates("loss", known)
    held_out = [key for key in losses if plain(key) not in _TRAINING] or [
        key for key in known if "loss" in plain(key) and _HELD_OUT.search(plain(key))
    ]
    for keys in (held_out, losses, candidates("bits_per_byte", known)):
        if len(keys) > 1:
            raise InputError("logs several losses", where=where, mend=_choose(keys))
        if keys:
            return keys[0]
    keys = [key for key in known if "loss" in key.lower()]
    raise InputError("logs no loss on held-out text", where=where, mend=_choose(keys or known))


def _in_its_unit(name: str, column: str) -> str:
    factor = header(column).factor if name in COUNTED else 1
    return column if factor == 1 else f"{column} times {factor:g}"


def _choose(keys: list[str]) -> str:
    return f"name one, --loss KEY: {', '.join(map(repr, keys[:12]))}"


def _evaluations(logged: pl.DataFrame, key: str, last: bool) -> pl.DataFrame:
    """Rows with a loss, in the order of steps; of a run without any its last row."""
    order = ["step"] if "step" in logged.columns else []
    logged = logged.with_row_index(" run").with_columns(pl.col(" run").min().over("run_id"))
    logged = logged.sort(" run", *order, maintain_order=True, nulls_last=True).drop(" run")
    has = pl.col(key).is_not_null()
    final = pl.int_range(pl.len()).reverse().over("run_id") == 0
    kept = logged.filter(has | (final & ~has.any().over("run_id")))
    return kept.filter(pl.int_range(pl.len()).reverse().over("run_id") == 0) if last else kept


def _in_contract(
    table: pl.DataFrame, origin: pl.Series, behind: Mapping[str, str], study: str, unit: str
) -> pl.DataFrame:
    table = table.rename({"steps": "step"}, strict=False)
    origin = origin.gather(table["row"] - 1)
    constants = {"study": study, "rules": "; ".join(f"{name}: {key}" for name, key in behind.items())}
    if {"params", "tokens"} <= set(table.columns):
        table = table.with_columns((6 * pl.col("params") * pl.col("tokens")).alias("flops_6nd"))
    if "status" in table.columns:
        table = table.with_columns(contract_status(table["status"]).alias("status"))
    if unit == "perplexity":
        table = table.with_columns(pl.col("loss").log())
    elif unit not in ("nats per token", "bits per byte") and "loss" in table.columns:
        raise InputError(
            f"{behind['loss']} is in {unit}, the loss table in nats per token",
            mend="give a loss in nats per token, or bits per byte with --bytes-per-token",
        )
    table = table.with_columns(origin, *(pl.lit(value).alias(name) for name, value in constants.items()))
    return pl.DataFrame(
        [
            _typed(table[name], kind).alias(name)
            if name in table.columns
            else pl.Series(name, [None] * table.height, dtype=kind)
            for name, kind in CONTRACT.items()
        ]
    )


def _typed(series: pl.Series, kind: Any) -> pl.Series:
    """As the contract has it; as it is where its values do not fit."""
    try:
        whole = kind == pl.Int64 and series.dtype == pl.Float64
        return (series.round() if whole else series).cast(kind)
    except FAILURES:
        return series


def check_name(path: Path) -> None:
    """Raises InputError for the name of a file that is neither Parquet nor CSV."""
    if path.suffix not in (".parquet", ".csv"):
        mend = "end its name in .parquet or .csv"
        raise InputError("is neither Parquet nor CSV", where=str(path), mend=mend)


def write(table: pl.DataFrame, path: Path) -> None:
    """As Parquet or CSV, by the name of the file, in one step. Raises InputError as ``check_name`` does."""
    check_name(path)
    files.replace_file(path, table.write_csv if path.suffix == ".csv" else table.write_parquet)
