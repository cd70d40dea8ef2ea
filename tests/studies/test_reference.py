"""Reference studies: trained in parts, copied without what no figure reads, and read like any study."""

import subprocess
import sys
from pathlib import Path

import pytest

from isoloss.analysis.findings import findings
from isoloss.errors import InputError
from isoloss.records import load, reference

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reference.py"


def train(study, out, package, *options):
    command = [
        sys.executable,
        SCRIPT,
        "--study",
        study,
        "--scale",
        "mini",
        "--out",
        out,
        "--package",
        package,
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout


def test_a_study_stopped_by_the_clock_goes_on_and_is_shipped(tiny, study_file, study_text, tmp_path):
    study = study_file(text=study_text.replace("final_windows = 8", "final_windows = 8, targets = 64"))
    folder, package = tmp_path / "runs", tmp_path / "package"
    other = package / study.stem / "runs" / "of-another-plan"
    code, stdout = train(study, folder, package, "--minutes", "0")
    assert code == 1
    assert "call this again" in stdout
    assert not package.exists()
    other.mkdir(parents=True)
    code, stdout = train(study, folder, package)
    assert code == 0, stdout
    whole, shipped = load(folder / study.stem), load(package / study.stem)
    assert whole.table().equals(shipped.table())
    assert whole.curves().equals(shipped.curves())
    assert whole.sliding().equals(shipped.sliding())
    assert not other.exists()
    assert shipped.sliding().height
    assert whole.positions().height
    assert not shipped.positions().height
    assert [finding.key for finding in findings(shipped)] == [finding.key for finding in findings(whole)]


def test_every_reference_is_whole_and_named():
    for name in reference.names():
        study = load(reference.folder(name))
        planned = {run["run_id"] for run in study.plan["runs"]}
        assert {record.run_id for record in study.records} == planned, name
        assert {path.name for path in (reference.folder(name) / "runs").iterdir()} == planned, name
        assert all(record.environment.device_name for record in study.records)


@pytest.mark.parametrize("name", ["reference/nothing", "reference/../records"])
def test_another_name_is_refused(name):
    assert reference.is_name(name)
    with pytest.raises(InputError, match="there is no such reference study"):
        reference.folder(name)


def test_a_folder_is_no_reference():
    assert not reference.is_name("studies/reference")
