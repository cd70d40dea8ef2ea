"""Which folders are watched: those that were named, else the studies that lie here."""

from collections.abc import Sequence
from pathlib import Path

from isoloss.errors import InputError
from isoloss.records import reference

PLACES = ("studies", "runs")


def studies(named: Sequence[str]) -> list[Path]:
    """The folders of the named studies, or of all under ``studies`` and ``runs`` here, the newest first.

    An empty folder is a study that has not been planned yet. Raises InputError for one that is not there or
    holds something else, and where nothing is named and nothing lies here.
    """
    if named:
        return [folder_of(name) for name in dict.fromkeys(named)]
    paths = [path for place in PLACES for path in Path(place).glob("*/study.json")]
    if not paths:
        raise InputError(
            "there is no study here",
            where=" and ".join(f"./{place}" for place in PLACES),
            mend="name a study's folder, or start one: isoloss run architectures",
        )
    return [path.parent for path in sorted(paths, key=lambda path: -path.stat().st_mtime)]


def folder_of(name: str) -> Path:
    folder = Path(name)
    if not folder.exists() and reference.is_name(name):
        return reference.folder(name)
    if not folder.exists():
        mend = "check the path; of a study that has yet to begin make the empty folder first"
        raise InputError("there is no such folder", where=name, mend=mend)
    if not folder.is_dir():
        raise InputError("is not a folder", where=name, mend="give the folder that `isoloss run` wrote")
    if not (folder / "study.json").is_file() and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise InputError(
            "holds no study (no study.json)", where=name, mend="give the folder that `isoloss run` wrote"
        )
    return folder
