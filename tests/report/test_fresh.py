"""A report of the same records is left as it is; any change of them makes a new one."""

import json

import pytest
import story

from isoloss import report


@pytest.fixture
def folder(tmp_path):
    return story.write(tmp_path / "study", story.FEW)


def test_a_true_report_is_not_written_again(folder):
    first = report.write(folder)
    assert first.written
    page = first.path.stat()
    second = report.write(folder)
    assert not second.written
    assert second.path.stat().st_mtime_ns == page.st_mtime_ns
    assert second.figures == first.figures
    told = [(f.key, f.title, f.sentence, f.caveats) for f in first.findings]
    assert [(f.key, f.title, f.sentence, f.caveats) for f in second.findings] == told
    # Pairs come back as lists, which is all that JSON knows.
    numbers = [json.loads(json.dumps(dict(f.numbers))) for f in first.findings]
    assert [dict(f.numbers) for f in second.findings] == numbers


@pytest.mark.parametrize("pattern", ["study.json", "runs/*/record.json"])
def test_a_changed_study_makes_a_new_report(folder, pattern):
    assert report.write(folder).written
    path = next(folder.glob(pattern))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert report.write(folder).written


@pytest.mark.parametrize("damage", ["", "{}", "[1", '{"made_of": 3}'])
def test_a_damaged_memory_makes_a_new_report(folder, damage):
    result = report.write(folder)
    (result.path.parent / "report.json").write_text(damage)
    assert report.write(folder).written
    result.path.unlink()
    assert report.write(folder).written
