"""Public tables: a file appears whole and with the right hash, or not at all. Only loopback is used."""

import hashlib
import socket
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from isoloss import files
from isoloss.errors import InputError, RunError
from isoloss.sources import public, runs
from isoloss.sources.public import download

CONTENT = b"N,D,loss\n1000000,20000000,4.2\n" * 4000
HASH = hashlib.sha256(CONTENT).hexdigest()

# Tables that stand in shared/data as they were published, and tables cut to the rows of ``where``.
COPIES = {
    "epoch-chinchilla": "epoch-chinchilla/svg_extracted_data.csv",
    "kyo-takano-chinchilla": "kyo-takano-chinchilla/df.csv",
    "marin-comma": "openathena-isoflops/isoflop-comma.csv",
    "marin-dclm": "openathena-isoflops/isoflop-dclm.csv",
    "marin-nemotron": "openathena-isoflops/isoflop-nemotron.csv",
    "steplaw-dense": "steplaw/dense_lr_bs_loss.csv",
    "steplaw-moe": "steplaw/moe_lr_bs_loss.csv",
}
CUT = {"openathena-isoflops": "openathena-isoflops/isoflops_transform.csv"}


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/gone":
            self.send_error(404)
        elif self.path in ("/away", "/moved"):
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/x" if self.path == "/away" else "/table.csv")
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(1000):
                    self.wfile.write(b"x" * 65536)
                self.server.sent_everything = True
            except OSError:
                pass
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if self.path == "/table.csv" else CONTENT[:5000])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.sent_everything = False
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def nothing_in(folder):
    return list(folder.iterdir()) == []


def test_a_table_arrives_whole(address, tmp_path):
    for path in ("/table.csv", "/moved"):
        target = tmp_path / "new" / f"{path[1:]}.csv"
        download(address + path, target, HASH, len(CONTENT), loopback=True)
        assert target.read_bytes() == CONTENT
        assert [file.name for file in target.parent.iterdir() if file.name.endswith(".part")] == []


@pytest.mark.parametrize(
    ("path", "sha256", "size", "says"),
    [
        ("/table.csv", "0" * 64, len(CONTENT), "is not the table"),
        ("/table.csv", HASH, len(CONTENT) - 1, "more than"),
        ("/table.csv", HASH, len(CONTENT) + 1, "is not the table"),
        ("/short", HASH, len(CONTENT), "5000 bytes"),
        ("/gone", HASH, len(CONTENT), "404"),
        ("/away", HASH, len(CONTENT), "ftp"),
    ],
)
def test_a_wrong_answer_leaves_nothing(address, tmp_path, path, sha256, size, says):
    with pytest.raises(RunError, match=says) as caught:
        download(address + path, tmp_path / "table.csv", sha256, size, loopback=True)
    assert caught.value.where.endswith(path)
    assert caught.value.mend
    assert nothing_in(tmp_path)


def test_an_endless_answer_is_cut(server, address, tmp_path):
    with pytest.raises(RunError, match="more than 1000"):
        download(address + "/endless", tmp_path / "table.csv", HASH, 1000, loopback=True)
    assert nothing_in(tmp_path)
    assert not server.sent_everything


def test_a_failed_fetch_keeps_the_file_that_was_there(address, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"before")
    with pytest.raises(RunError):
        download(address + "/table.csv", path, "0" * 64, len(CONTENT), loopback=True)
    assert path.read_bytes() == b"before"


def test_no_network(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there
        address = f"http://127.0.0.1:{free.getsockname()[1]}/table.csv"
        with pytest.raises(RunError, match="cannot be fetched") as caught:
            download(address, tmp_path / "table.csv", HASH, len(CONTENT), loopback=True)
    assert "put the file at" in caught.value.mend
    assert nothing_in(tmp_path)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1/table.csv", False),
        ("http://example.org/table.csv", True),
        ("file:///etc/passwd", True),
        ("ftp://127.0.0.1/table.csv", True),
        ("data:text/csv,a", False),
        ("table.csv", False),
    ],
)
def test_other_addresses_are_refused(url, loopback, tmp_path):
    with pytest.raises(InputError, match="https"):
        download(url, tmp_path / "table.csv", HASH, len(CONTENT), loopback=loopback)
    assert nothing_in(tmp_path)


def test_without_loopback_there_is_no_http():
    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        public._opener(loopback=False).open("http://127.0.0.1/")


def test_too_much_is_refused_before_it_starts(tmp_path):
    with pytest.raises(InputError, match="MiB"):
        download("https://127.0.0.1/x", tmp_path / "table.csv", HASH, public.MAX_BYTES + 1)


def test_fetch_takes_what_is_there_and_fetches_what_is_damaged(tmp_path, monkeypatch, capsys):
    table = public.PublicTable(
        "mine", "https://127.0.0.1/mine.csv", "MIT", "Me 2026", HASH, len(CONTENT), columns={"params": "N"}
    )
    monkeypatch.setattr(public, "tables", lambda: {"mine": table})
    fetched = []

    def stand_in(url, path, sha256, size):
        fetched.append(url)
        files.write_bytes(path, CONTENT)

    monkeypatch.setattr(public, "download", stand_in)
    path = public.fetch("mine", tmp_path)
    assert path == public.fetch("mine", tmp_path) == tmp_path / "mine.csv"
    assert len(fetched) == 1
    path.write_bytes(b"damaged")
    assert public.fetch("mine", tmp_path).read_bytes() == CONTENT
    assert len(fetched) == 2
    assert "licence MIT. Cite Me 2026." in capsys.readouterr().err


def test_the_default_folder_is_below_home(isoloss_home, monkeypatch):
    monkeypatch.setattr(public, "download", lambda url, path, sha256, size: None)
    assert public.fetch(public.names()[0]).parent == isoloss_home / "tables"


def test_unknown_and_unfetchable_names():
    with pytest.raises(InputError, match="no public table") as caught:
        public.fetch("chinchilla")
    assert "epoch-chinchilla" in caught.value.mend
    for name in set(public.tables()) - set(public.names()):
        with pytest.raises(InputError, match="cannot be fetched"):
            public.fetch(name)


def test_entries_are_complete():
    assert set(public.names()) == {*COPIES, *CUT}
    for name in public.names():
        table = public.tables()[name]
        assert table.url.startswith("https://raw.githubusercontent.com/")
        commit = table.url.split("/")[5]
        assert len(commit) == 40
        assert set(commit) <= set("0123456789abcdef")
        assert len(table.sha256) == 64
        assert 0 < table.bytes < public.MAX_BYTES
        assert table.licence
        assert table.citation
        assert {"params", "loss"} <= table.columns.keys()


@pytest.mark.parametrize("name", COPIES)
def test_hashes_are_those_of_the_published_files(run_tables, name):
    table = public.tables()[name]
    path = run_tables / COPIES[name]
    assert (files.sha256(path), path.stat().st_size) == (table.sha256, table.bytes)


@pytest.mark.parametrize(("name", "rows"), [
    ("epoch-chinchilla", 240), ("kyo-takano-chinchilla", 234), ("openathena-isoflops", 505),
    ("marin-comma", 92), ("marin-dclm", 85), ("marin-nemotron", 96), ("steplaw-dense", 1911),
    ("steplaw-moe", 708),
])  # fmt: skip
def test_each_makes_a_table_for_a_fit(run_tables, name, rows):
    table = public.tables()[name]
    runs_read = runs(run_tables / (COPIES | CUT)[name], columns=table.columns, where=table.where)
    assert runs_read.frame.height == rows
    assert [finding for finding in runs_read.findings if finding.severity == "refuse"] == []
