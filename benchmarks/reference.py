"""Train the reference studies in parts, and copy what is finished into the package.

    python benchmarks/reference.py                    all four at the evening scale: hours on two cores
    python benchmarks/reference.py --minutes 9        no longer than that; call it again to go on
    python benchmarks/reference.py --out runs --ship  only copy what --out holds

Every run resumes from its own folder under --out. On a GPU the same command trains the same runs there. What
is copied of a run is its record, losses on the same targets, and training curve; not the losses of every
position of plain windows, which no figure reads beside them and which are nine tenths of the bytes.
"""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from isoloss import files
from isoloss.records import load
from isoloss.records.reference import FOLDER
from isoloss.records.store import CURVE, SLIDING, run_folder
from isoloss.training.recipe import swept

STUDIES = ("architectures", "shape", "context", "looped")
STOPPING = 20.0
"""Seconds that a stopped study gets for its checkpoints."""


def main() -> int:
    given = arguments()
    end = time.monotonic() + 60 * given.minutes
    for study in given.study or STUDIES:
        folder = given.out / Path(study).stem
        if not given.ship and not train(study, folder, given, end):
            print(f"{folder}: stopped, or not all runs ended; call this again to go on")
            return 1
        ship(folder, given.package / Path(study).stem)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", action="append", help="a study's name or file; default: the four")
    parser.add_argument("--scale", default="evening")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where runs are trained and resumed")
    parser.add_argument("--package", type=Path, default=FOLDER, help="where finished ones are copied to")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="KEY=VALUE")
    parser.add_argument("--ship", action="store_true", help="train nothing, only copy")
    return parser.parse_args()


def train(study: str, folder: Path, given: argparse.Namespace, end: float) -> bool:
    """Whether every run has ended. A study that is stopped in the middle keeps its checkpoints."""
    changes = [word for change in given.changes for word in ("--set", change)]
    command = [
        sys.executable,
        "-m",
        "isoloss.cli",
        "run",
        study,
        "--scale",
        given.scale,
        "--out",
        str(folder),
    ]
    running = subprocess.Popen([*command, *changes])
    try:
        left = end - time.monotonic() - STOPPING
        return running.wait(None if left == float("inf") else max(0.0, left)) == 0
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(STOPPING)
        except subprocess.TimeoutExpired:
            running.kill()  # the last checkpoint stands
        return False


def ship(folder: Path, package: Path) -> None:
    """Copy the plan and every finished run; those of another plan are removed."""
    study = load(folder)
    planned = {run["run_id"] for run in study.plan["runs"]}
    for old in package.glob("runs/*"):
        if old.name not in planned:
            files.remove_folder(old)
    plan = {"swept": swept(), **study.plan}  # plans of before do not say it
    files.write_json(package / "study.json", plan)
    for record in study.records:
        source, place = run_folder(folder, record.run_id), run_folder(package, record.run_id)
        kept = {name: record.files[name] for name in (CURVE, SLIDING) if name in record.files}
        for name in kept:
            files.write_bytes(place / name, (source / name).read_bytes())
        files.write_json(place / "record.json", record.sealed(files=kept).model_dump(mode="json"))
    print(f"{package}: {len(study.records)} of {len(study.plan['runs'])} runs")


if __name__ == "__main__":
    raise SystemExit(main())
