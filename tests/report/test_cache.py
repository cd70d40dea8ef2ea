"""A report of the same records is left as it is; any change of them makes a new one."""

import json
import shutil

import pytest
import story
import telling

from isoloss import files, report
from isoloss.report import cache


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A study's folder, and the result of the first report on it."""
    folder = telling.write(tmp_path_factory.mktemp("fresh") / "study", story.FEW)
    return folder, report.write(folder)


@pytest.fixture
def copy(written, tmp_path):
    return shutil.copytree(written[0], tmp_path / "study")


def test_a_true_report_is_not_written_again(written):
    folder, first = written
    assert first.written
    page = first.path.stat()
    second = report.write(folder)
    assert not second.written
    assert second.path.stat().st_mtime_ns == page.st_mtime_ns
    assert second.figures == first.figures
    findings = [(f.key, f.title, f.sentence, f.caveats) for f in first.findings]
    assert [(f.key, f.title, f.sentence, f.caveats) for f in second.findings] == findings
    # Pairs come back as lists, which is all that JSON knows.
    numbers = [json.loads(json.dumps(dict(f.numbers))) for f in first.findings]
    assert [dict(f.numbers) for f in second.findings] == numbers


PATTERNS = ["study.json", "runs/*/record.json", "runs/*/positions.parquet", "runs/*/curve.parquet"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_changed_study_has_no_true_report(copy, pattern):
    made_of = cache.fingerprint(copy)
    assert cache.stored(copy / "report", made_of) is not None
    path = next(copy.glob(pattern))
    path.write_bytes(path.read_bytes() + b" ")
    assert cache.fingerprint(copy) != made_of
    assert cache.stored(copy / "report", cache.fingerprint(copy)) is None


@pytest.mark.parametrize("name", ["deck.css", "settings.toml", "recorded.json", "notes.txt"])
def test_the_code_is_another_when_a_file_of_the_package_changes(tmp_path, name):
    files.write_text(tmp_path / "room" / name, "p {}")
    before = cache.code_in(tmp_path)
    assert cache.code_in(tmp_path) == before
    files.write_text(tmp_path / "room" / name, "p { }")
    assert cache.code_in(tmp_path) != before


@pytest.mark.parametrize("damage", ["", "{}", "[1", '{"made_of": 3}', None])
def test_a_damaged_memory_is_no_true_report(copy, damage):
    made_of = cache.fingerprint(copy)
    if damage is None:
        next((copy / "report" / "figures").glob("*.svg")).unlink()
    else:
        (copy / "report" / "report.json").write_text(damage)
    assert cache.stored(copy / "report", made_of) is None
