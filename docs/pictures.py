"""Draw docs/images/report.png, the first screen of a report: `python docs/pictures.py`, with Chromium.

The file carries the findings that it shows, by which a test knows when it is out of date.
"""

import os
import shutil
import struct
import tempfile
import zlib
from pathlib import Path

from isoloss import files, report
from isoloss.analysis.findings import Finding
from isoloss.records import reference

PICTURE = Path(__file__).parent / "images" / "report.png"
WIDTH, HEIGHT = 900, 796
END = 12
"""Bytes of the chunk that closes a PNG."""


def shot(page: Path) -> bytes:
    """The first screen of a page."""
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(page.absolute().as_uri())
        return tab.screenshot()


def words(findings: tuple[Finding, ...]) -> bytes:
    """A PNG's text chunk with the findings (PNG specification, iTXt: not compressed, no language)."""
    sentences = "\n".join(finding.sentence for finding in findings)
    chunk = b"iTXt" + b"Description" + bytes(5) + sentences.encode()
    return struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = report.write(reference.folder(reference.PREFIX), Path(folder))
        png = shot(made.path)
    files.write_bytes(PICTURE, png[:-END] + words(made.findings) + png[-END:])
