"""The only module that writes to disk, and the one that unpacks what others wrote.

A reader must never meet half a file, whenever the writer is killed:

* a whole file goes to a temporary neighbour, is flushed to the disk and renamed over the target;
* a whole folder is built beside its target and renamed into place;
* a log grows by one ``os.write`` per line, so that only its last line can be torn, which the next writer
  cuts off;
* a claim is an advisory lock that the kernel releases when its holder dies: nothing goes stale.
"""

import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from isoloss.errors import InputError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


def home() -> Path:
    """Where corpora and fetched tables live: ISOLOSS_HOME, else the user's data folder."""
    if named := os.environ.get("ISOLOSS_HOME"):
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "isoloss"


def shipped_toml(package: str, name: str) -> dict[str, Any]:
    """The values of a TOML file that comes with ``package``."""
    return tomllib.loads(resources.files(package).joinpath(name).read_text("utf-8"))


def safe_child(folder: Path, name: str) -> Path:
    """``folder/name`` for a plain name: no separators, no leading dot, no link out of the folder.

    Raises InputError otherwise.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a usable name",
            mend="use 1 to 128 of a-z, 0-9, '.', '_', '-', not starting with '.'",
        )
    child = folder / name
    if child.is_symlink():
        raise InputError("is a symbolic link", where=str(child), mend="replace it by the folder itself")
    return child


def sync_folder(folder: Path) -> None:
    """Make renames in ``folder`` survive a power loss (a no-op where folders cannot be opened)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder and those above it. Raises InputError where a file is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(
            "no folder can be made: a file is in the way", where=error.filename, mend="name another place"
        ) from None


def try_folder(path: Path) -> None:
    """Make a folder as ``make_folder`` and take it away again. Raises OSError where it cannot be made."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    finally:
        for folder in new:
            with suppress(OSError):  # not there, or another process has begun in it
                folder.rmdir()


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write(temporary path)``, then move the result over ``path`` in one step.

    Raises InputError if ``path`` is there and is no regular file: a device or a folder must not be replaced.
    """
    if path.exists() and not path.is_file():
        raise InputError("is no regular file", where=str(path), mend="name a file to write")
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def new_file(path: Path, write: Callable[[Path], object]) -> None:
    """As ``replace_file``, of a path that is not there yet. Raises InputError for one that is."""
    _refuse_existing(path)
    replace_file(path, write)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise InputError("exists already", where=str(path), mend="remove it first, or choose another name")


def write_bytes(path: Path, data: bytes) -> None:
    replace_file(path, lambda temporary: temporary.write_bytes(data))


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Strict JSON: NaN and infinity are refused, since they would come back as something else."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def read_bytes(path: Path, most: int = 2**28) -> bytes:
    """What a plain file of at most ``most`` bytes holds: devices and pipes may never end.

    Raises InputError for any other path.
    """
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "there is no such file"
            raise InputError(what, where=str(path), mend="check the path")
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        mend = "check its permissions"
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), mend=mend) from None
    if len(data) > most:
        raise InputError(f"has more than {most:,} bytes", where=str(path), mend="name the right file")
    return data


def read_json(path: Path, *, nan: bool = False, mend: str = "delete it and run again") -> Any:
    """The value in ``path``. Raises InputError if it is not strict JSON: NaN and infinity are not, but with
    ``nan``, as others write them."""
    try:
        return json.loads(read_bytes(path).decode("utf-8"), parse_constant=None if nan else _refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})", where=str(path), mend=mend) from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def unpack(path: Path, max_bytes: int, *, mend: str) -> bytes:
    """The bytes of a plain, ``.gz``, ``.xz`` or ``.zst`` file, unpacked.

    Stops at ``max_bytes``, so that a small file that unpacks to anything cannot fill the memory.
    Raises InputError for a file that is unreadable, damaged, cut off or larger; ``mend`` is for the larger.
    """
    data = bytearray()
    try:
        with open(path, "rb") as file:
            for block in _blocks(file, path.suffix.lower()):
                data += block
                if len(data) > max_bytes:
                    what = f"holds more than {max_bytes:,} bytes once unpacked"
                    raise InputError(what, where=str(path), mend=mend)
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), mend="check the path") from None
    except (OSError, ValueError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
        raise InputError(
            f"cannot be read ({error})", where=str(path), mend="check its permissions, or fetch it again"
        ) from None
    return bytes(data)


def _blocks(file: BinaryIO, suffix: str) -> Iterator[bytes]:
    if suffix == ".zst":
        yield from _unpack_zstandard(file)
        return
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(suffix)
    stream = opener(file) if opener else file
    while block := stream.read(2**20):
        yield block


def _unpack_zstandard(file: BinaryIO) -> Iterator[bytes]:
    """All frames of a file. The library's own reader takes a cut-off frame for a whole one; this raises."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    # 4 KiB of zstandard unpack to at most about 128 MiB: the size is checked between steps.
    while block := file.read(2**12):
        while block:
            if unpacker.eof:
                unpacker = zstandard.ZstdDecompressor().decompressobj()
            yield unpacker.decompress(block)
            block = unpacker.unused_data if unpacker.eof else b""
    if not unpacker.eof:
        raise EOFError("it ends inside a compressed frame")


def decode(data: bytes, where: object) -> str:
    """UTF-8 text without a byte order mark. Raises InputError naming the line and byte that are none."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not UTF-8: byte {data[error.start]:#04x} at offset {error.start}",
            where=f"{where}, line {line}",
            mend=f"save it as UTF-8{_encoding(data)}",
        ) from None


def _encoding(data: bytes) -> str:
    """How to convert text that is not UTF-8, where its bytes tell; a wrong guess would damage it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ", for example: iconv -f utf-16 -t utf-8"
    high = {byte for byte in data if byte >= 0x80}
    letters = b"\x80\x82\x84\x85\x8a\x8c\x8e\x91\x92\x93\x94\x95\x96\x97\x99\x9a\x9c\x9e\x9f"
    if high & set(range(0x80, 0xA0)) - set(letters):  # signs that Western text has not
        return " from the editor that wrote it"
    return f", for example: iconv -f {'cp1252' if min(high) < 0xA0 else 'latin1'} -t utf-8"


def json_objects(
    text: str, path: Path, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of each line that is not blank; ``pairs`` is json's ``object_pairs_hook``.

    Raises InputError naming the line that is no JSON object.
    """
    # Only "\n" ends a line: str.splitlines would also cut at characters that JSON strings may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line, object_pairs_hook=pairs)
        except (ValueError, RecursionError) as error:
            raise InputError(f"is not JSON ({error})", where=where, mend="mend or remove that line") from None
        if not isinstance(row, dict):
            raise InputError("is not a JSON object", where=where, mend="write one object a line")
        yield number, row


@contextmanager
def new_folder(path: Path) -> Generator[Path, None, None]:
    """A folder to fill; it takes its place under ``path`` only if the block ends well.

    Raises InputError if ``path`` exists when the block ends.
    """
    make_folder(path.parent)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield temporary
        _refuse_existing(path)
        os.chmod(temporary, 0o755)  # noqa: S103 - as mkdir would have made it
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)


@contextmanager
def copy_of(path: Path) -> Generator[Path, None, None]:
    """A copy of a file for a library that may write to what it opens; gone with the block."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copyfile(path, copy)
        yield copy


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line with a single write, so that a kill can tear only the last line.

    A torn line left by an earlier writer is cut off first. One writer at a time: hold the claim.
    """
    data = (json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        written = os.read(handle, os.fstat(handle).st_size)
        end = written.rfind(b"\n") + 1
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        if os.write(handle, data) < len(data):  # a disk that fills up takes part of it without a word
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)


@contextmanager
def claim(path: Path, *, wait_seconds: float = 0.0) -> Generator[bool, None, None]:
    """Hold ``path`` exclusively; yields False if another live process holds it after ``wait_seconds``."""
    from filelock import FileLock, Timeout  # slow to import, and reading needs none

    make_folder(path.parent)
    lock = FileLock(path, timeout=wait_seconds, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        what = "its file system has no locks, by which processes keep off each other's runs"
        mend = "keep the study on one that has flock: a local disk, NFS 4, Lustre mounted with flock"
        raise InputError(what, where=str(path.parent), mend=mend) from None
    try:
        yield True
    finally:
        lock.release()


def remove_leftovers(folder: Path) -> None:
    """Delete what killed writers left in ``folder``. Call it only while holding the folder's claim."""
    for leftover in folder.glob(".*.part"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_of(value: Any) -> str:
    """sha256 of the canonical JSON of ``value``: the identity of a set of settings."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()
