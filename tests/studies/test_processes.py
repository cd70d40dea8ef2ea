"""Studies as commands: several at once on one folder, and signals."""

import io
import json
import os
import signal
import subprocess
import sys
import time

from appended import read_lines
from rich.console import Console

from isoloss import files
from isoloss.records import load
from isoloss.studies.launch import launch


def events(folder):
    return [event["kind"] for event in read_lines(folder / "log.jsonl")]


def command(study, folder, *more):
    return [sys.executable, "-m", "isoloss.cli", "run", str(study), "--out", str(folder), "--json", *more]


def test_two_runners_on_one_folder_train_every_run_once(tiny, study_file, tmp_path):
    path = study_file()
    both = [
        subprocess.Popen(
            command(path, tmp_path / "out", "--workers", "2"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    results = [json.loads(out) for out, _ in outputs]
    assert all(result["already"] + result["ended"] == 4 for result in results)
    folders = sorted((tmp_path / "out" / "runs").iterdir())
    assert len(folders) == 4
    for folder in folders:
        assert events(folder) == ["started", "finished"], "trained once, by one of them"
    assert len(load(tmp_path / "out").records) == 4


def test_sigterm_keeps_a_checkpoint_and_the_next_call_goes_on(tiny, study_text, study_file, tmp_path):
    out = tmp_path / "out"
    long = study_text.replace("tokens = [640, 1280]", "tokens = [64_000]").split("[[scale.mini.models]]")
    path = study_file(text=long[0] + "[[scale.mini.models]]" + long[2])  # the LSTM alone, 1,000 steps
    process = subprocess.Popen(
        command(path, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        while not list(out.glob("runs/*/log.jsonl")):
            assert time.monotonic() < end
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    (folder,) = (out / "runs").iterdir()
    assert process.returncode == 1
    result = json.loads(stdout)
    assert (result["stopped"], result["ended"], result["failed"]) == (True, 0, {})
    assert not (folder / "record.json").exists()
    assert not (folder / "failure.json").exists()
    (kept,) = (folder / "checkpoints").iterdir()
    done = files.read_json(kept / "state.json")["done"]
    assert 0 < done < 1000

    outcome = launch(str(path), out=out, console=Console(file=io.StringIO()))
    assert (outcome.ended, outcome.failed, outcome.stopped) == (1, {}, False)
    (record,) = load(out).records
    assert record.attempt == 2
    assert [(event.kind, event.step) for event in record.events] == [
        ("started", 0),
        ("resumed", done),
        ("finished", record.steps),
    ]
    assert not (folder / "checkpoints").exists()


def test_a_script_of_one_line_trains_a_study_and_runs_once(tiny, study_file, tmp_path):
    """Without `if __name__ == "__main__"`, which multiprocessing asks of programs."""
    script = tmp_path / "train.py"
    script.write_text(
        "import isoloss\n"
        "print('began', flush=True)\n"
        f"study = isoloss.run({str(study_file())!r}, out={str(tmp_path / 'out')!r}, workers=2)\n"
        "print(len(study.records))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert done.stdout == "began\n4\n", done.stderr
    assert "Traceback" not in done.stderr
