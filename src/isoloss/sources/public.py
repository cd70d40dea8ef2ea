"""Public tables of runs, fetched from the repositories that publish them and checked against a hash.

The tables are not part of isoloss: some state no licence. ``public.toml`` names each one's address, sha256,
licence and citation.
"""

import contextlib
import hashlib
import http.client
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from isoloss import files
from isoloss.errors import InputError, RunError

MAX_BYTES = 1 << 26
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class PublicTable:
    """A table that others publish. ``reason``: why it cannot be fetched; then only ``url`` says where it is.

    ``columns`` and ``where`` are arguments for ``sources.runs``.
    """

    name: str
    url: str
    licence: str
    citation: str
    sha256: str = ""
    bytes: int = 0
    note: str = ""
    where: str | None = None
    reason: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """Licence and citation, in a sentence each."""
        return f"{self.name}: licence {self.licence}. Cite {self.citation}."


@cache
def tables() -> Mapping[str, PublicTable]:
    """Every public table that is known, by name, also those that cannot be fetched."""
    entries = files.shipped_toml("isoloss.sources", "public.toml")
    return MappingProxyType({name: PublicTable(name, **entry) for name, entry in entries.items()})


def names() -> tuple[str, ...]:
    """The tables that ``fetch`` can fetch."""
    return tuple(name for name, table in tables().items() if not table.reason)


def fetch(name: str, folder: Path | None = None) -> Path:
    """The path of a public table: in ``folder`` if it is there with the right hash, else fetched to there.

    The default folder is HOME/tables, with HOME as for corpora: the variable ISOLOSS_HOME, else ``isoloss``
    in the user's data folder. Licence and citation go to stderr.

    Raises InputError for an unknown name or a table that cannot be fetched, RunError if the network, the
    server or the content fails; then no file appears.
    """
    table = tables().get(name)
    if table is None:
        raise InputError(f"there is no public table {name!r}", mend=f"choose one of {', '.join(names())}")
    if table.reason:
        raise InputError(
            f"{name} cannot be fetched: {table.reason}", where=table.url, mend="write it out as CSV yourself"
        )
    path = (folder or files.home() / "tables") / f"{name}.csv"
    print(table.about, file=sys.stderr)
    if not (path.is_file() and files.sha256(path) == table.sha256):
        download(table.url, path, table.sha256, table.bytes)
    return path


def download(url: str, path: Path, sha256: str, size: int, *, loopback: bool = False) -> None:
    """``size`` bytes from ``url`` to ``path``, which appears whole and with the right hash or not at all.

    https only, through redirects too; ``loopback`` allows http to this machine. Raises InputError for another
    address, RunError for a network that is not there, an answer that is not 200, or content that differs.
    """
    _check_address(url, loopback)
    if size > MAX_BYTES:
        raise InputError(f"{size} bytes are more than {MAX_BYTES >> 20} MiB", where=url)
    try:
        with contextlib.closing(_opener(loopback).open(fullurl=url, timeout=_TIMEOUT_SECONDS)) as answer:
            data = answer.read(size + 1)  # one byte more shows that it is too long
    except urllib.error.HTTPError as error:
        with error:
            raise RunError(
                f"the server answers {error.code} {error.reason}",
                where=url,
                mend="the table has moved; look for a newer isoloss",
            ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise RunError(
            f"cannot be fetched ({reason})",
            where=url,
            mend=f"check the network, or put the file at {path} yourself",
        ) from None
    digest = hashlib.sha256(data).hexdigest()
    if len(data) != size or digest != sha256:
        length = f"more than {size}" if len(data) > size else len(data)
        raise RunError(
            f"is not the table that was published: {length} bytes with sha256 {digest[:16]}..., "
            f"expected {size} with {sha256[:16]}...",
            where=url,
            mend="try again; if it stays so, look for a newer isoloss",
        )
    try:
        files.write_bytes(path, data)
    except OSError as error:
        raise RunError(
            f"cannot be written ({error.strerror})", where=str(path), mend="name a folder"
        ) from None


def _check_address(url: str, loopback: bool) -> None:
    parts = urllib.parse.urlsplit(url)
    here = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme == "https" or (loopback and parts.scheme == "http" and here):
        return
    raise InputError("is no https address", where=url, mend="give one that starts with https://")


def _opener(loopback: bool) -> urllib.request.OpenerDirector:
    """An opener for https alone: a redirect to http:, ftp: or file: meets no handler."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler() if loopback else urllib.request.ProxyHandler(),
    ):
        opener.add_handler(handler)
    return opener
