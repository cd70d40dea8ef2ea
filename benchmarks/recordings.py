"""Which recordings of the deck are stale, and a new stamp for those whose numbers today's code still gives.

    python benchmarks/recordings.py                says which are stale, and measures nothing
    python benchmarks/recordings.py --prove        measures the stale ones; minutes on two cores
    python benchmarks/recordings.py --prove race   the same for panels by name, stale or not

A recording is stale when the code that decides its numbers is another than the code that measured it
(isoloss.teach.provenance), even where no number changes. A proof measures twice on this machine: with the
code of the commit that last wrote the recording (--base takes another), for which it must not have been
stale, and with the code that stands here; both at the recorded settings, or at a part of them where those
take long. What both give must be equal to 12 digits, as an interval is that is rounded in another way and a
model trained in another way is not; the proof says whether it is equal to the last one. Only then the
recording gets the hash of today's code, and src/isoloss/teach/recorded/proofs.json says how it was proved.
What a clock measures is never the same twice: there the settings, the rows and all that is counted must be
equal.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "src" / "isoloss" / "teach" / "recorded"
REFERENCE = ROOT / "src" / "isoloss" / "reference"
PROOFS = RECORDED / "proofs.json"
STUDY = "study"

PARTS: dict[str, dict[str, Any]] = {
    "reach": {"seeds": 2, "strings": 16},
    "first-letter": {"lengths": [20], "rates": [1e-2], "seeds": 2, "cap": 50},
    "random-place": {"rates": [1e-2], "seeds": 2, "cap": 75},
    "binding": {"pairs": [2], "keys": [8], "rates": [1e-2], "seeds": 2, "cap": 100},
    "right-slot": {"seeds": 2, "updates": 50},
    "training": {"seeds": 2, "updates": 24, "samples": 200},
    "race": {"lengths": [16, 64], "repeats": 6},
    "bill": {"lengths": [16, 4096], "repeats": 6},
    "showdown": {"samples": 8, "tokens": 20},
}
"""What is measured instead of the recorded settings, where those would take minutes."""

CLOCKED = {"race", "bill", "machine"}
"""They measure time: their fractions are left out of the comparison."""

TIMES = {"cpu_seconds", "wall_seconds"}

STUDY_TOML = """
name = "proof"
[scale.mini]
corpus = "starter"
vocabulary = 1024
context = 128
batch_size = 4
tokens = [20480, 40960]
evaluation = { windows = 96, final_windows = 640, trace_windows = 16 }
models = [
    { family = "transformer", shapes = [{ n_layer = 2, d_model = 24, n_head = 1 }] },
    { family = "lstm", shapes = [{ n_layer = 1, d_model = 40 }] },
    { family = "looped", shapes = [{ n_layer = 1, d_model = 32, n_head = 1, recurrence = 4 }] },
]
"""
"""The smallest model of each family of the recorded study, for as many tokens as its shortest branch."""


def measure(name: str, values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a process of its own: the hash of the code that is imported here, and what it measures."""
    import secrets

    secrets.randbelow = lambda below: 0  # who is A and who is B in the tasting is drawn afresh each time
    if name == STUDY:
        return {"experiment": experiment_of_study(), "tables": measured_study(folder)}
    from isoloss.teach import panels, start

    panel = panels.panel(name)
    prepare = getattr(start, "prepare", None) or start.ready  # as older code names it
    prepare(panel)
    tables = panel.measure(panel.settings_from(values), lambda *_: None)
    return {"experiment": panel.experiment(), "tables": tables}


def measured_study(folder: Path) -> dict[str, Any]:
    import isoloss

    file = folder / "proof.toml"
    file.write_text(STUDY_TOML, "utf-8")
    study = isoloss.run(str(file), out=folder / "out", workers=1)
    return {"table": study.table().to_dicts(), "positions": study.positions().to_dicts()}


def experiment_of_study() -> str:
    try:
        from isoloss.teach.deck.study import experiment
    except ImportError as error:
        raise SystemExit(f"study: this code has no stamp of it ({error}); give a later --base") from None
    return experiment()


def comparable(name: str, tables: dict[str, Any]) -> dict[str, Any]:
    def kept(value: object) -> bool:
        return not (name in CLOCKED and isinstance(value, float))

    return {
        table: [{k: v for k, v in row.items() if k not in TIMES and kept(v)} for row in rows]
        for table, rows in tables.items()
    }


def alike(before: Any, after: Any) -> bool:
    """Equal, numbers to 12 digits."""
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=1e-12, abs_tol=1e-15)
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(alike(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(alike, before, after))
    return before == after


def difference(name: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Where two measurements first differ by more than rounding; nothing if nowhere."""
    old, new = comparable(name, old), comparable(name, new)
    if old.keys() != new.keys():
        return f"tables {', '.join(old)} became {', '.join(new)}"
    for table, rows in old.items():
        if len(rows) != len(new[table]):
            return f"{table}: {len(rows)} rows became {len(new[table])}"
        for number, (before, after) in enumerate(zip(rows, new[table], strict=True)):
            if not alike(before, after):
                return f"{table}, row {number}: {before} became {after}"
    return ""


def begin(tree: Path, name: str, values: dict[str, Any], folder: Path) -> subprocess.Popen[str]:
    """Measure with the package in ``tree``, as its own copy of this file does it, if it has one."""
    folder.mkdir(parents=True)
    script = tree / "benchmarks" / Path(__file__).name
    command = [sys.executable, str(script if script.exists() else Path(__file__)), "--measure", name]
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "OMP_NUM_THREADS": "1",
        "ISOLOSS_HOME": str(folder / "home"),
    }
    return subprocess.Popen(
        [*command, json.dumps(values), str(folder)], env=environment, stdout=subprocess.PIPE, text=True
    )


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, process.args))} failed")
    return json.loads(out.splitlines()[-1])


def unpacked(revision: str, folder: Path) -> Path:
    """The package at a commit, in a folder of its own."""
    if not folder.exists():
        archive = folder.with_suffix(".tar")
        command = ["git", "-C", str(ROOT), "archive", "-o", str(archive), revision, "src", "benchmarks"]
        subprocess.run(command, check=True)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return folder


def last_written(path: Path) -> str:
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def stamps() -> dict[str, tuple[str, str]]:
    """By name: the recorded hash and that of today's code."""
    from isoloss.teach import result
    from isoloss.teach.panels import PANELS

    proofs = json.loads(PROOFS.read_text("utf-8")) if PROOFS.exists() else {}
    recorded = {panel.name: result.read(RECORDED / f"{panel.name}.json").experiment for panel in PANELS}
    today = {panel.name: panel.experiment() for panel in PANELS} | {STUDY: experiment_of_study()}
    recorded[STUDY] = proofs.get(STUDY, {}).get("experiment", "")
    return {name: (recorded[name], today[name]) for name in today}


def settings_of(name: str) -> dict[str, Any]:
    if name == STUDY:
        return {}
    settings = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))["settings"]
    return settings | PARTS.get(name, {})


def prove(name: str, recorded: str, base: str | None, folder: Path) -> str | None:
    """How it was proved; None, said why, if it was not."""
    path = RECORDED / f"{name}.json" if name != STUDY else PROOFS if recorded else REFERENCE
    revision = base or last_written(path)
    old_tree, values = unpacked(revision, folder / revision), settings_of(name)
    processes = [
        begin(tree, name, values, folder / name / which) for which, tree in (("old", old_tree), ("new", ROOT))
    ]
    old, new = map(result_of, processes)
    if old["experiment"] != recorded:
        print(f"{name}: was stale at {revision[:12]} already; give another --base, or record it again")
        return None
    if differing := difference(name, old["tables"], new["tables"]):
        print(f"{name}: NOT the same numbers; {differing}")
        return None
    rows = sum(map(len, new["tables"].values()))
    exact = comparable(name, old["tables"]) == comparable(name, new["tables"])
    what = "equal to the last digit" if exact else "equal to 12 digits"
    what = "equal but for what is time" if name in CLOCKED else what
    part = ", ".join(f"{key} {value}" for key, value in PARTS.get(name, {}).items())
    how = f"{rows} rows {what}, by the code of {revision[:12]} and of today, on one machine"
    return how + (f"; measured with {part}" if part else "")


def stamp(name: str, experiment: str, how: str) -> None:
    from isoloss import files
    from isoloss.teach import result

    if name != STUDY:
        held = result.read(RECORDED / f"{name}.json")
        result.write(held.model_copy(update={"experiment": experiment}), RECORDED)
    proofs = json.loads(PROOFS.read_text("utf-8")) if PROOFS.exists() else {}
    proofs[name] = {"experiment": experiment, "made": result.now(), "how": how}
    files.write_json(PROOFS, dict(sorted(proofs.items())))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--prove", nargs="*", metavar="NAME", help="measure, and stamp what is the same")
    options.add_argument("--base", help="the commit whose code is known to give the recorded numbers")
    options.add_argument("--measure", nargs=3, metavar=("NAME", "SETTINGS", "FOLDER"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        name, settings, folder = given.measure
        print(json.dumps(measure(name, json.loads(settings), Path(folder))))
        return
    held = stamps()
    stale = [name for name, (recorded, today) in held.items() if recorded != today]
    print("stale: " + (", ".join(stale) or "none"))
    if given.prove is None:
        raise SystemExit(bool(stale))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in given.prove or stale:
            how = prove(name, held[name][0], given.base, Path(folder))
            failed |= how is None
            if how:
                stamp(name, held[name][1], how)
                print(f"{name}: stamped; {how}", flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
