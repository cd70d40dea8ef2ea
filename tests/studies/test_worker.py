"""One worker by itself: whom it claims, what it answers, and what it leaves behind."""

import os
import signal
import socket
from dataclasses import replace
from multiprocessing import Pipe
from threading import Event, Thread, Timer
from types import SimpleNamespace

import pytest
import torch

from isoloss import files
from isoloss.corpus import library
from isoloss.errors import InputError
from isoloss.models import registry, shape_of
from isoloss.records.store import is_finished, read_failure, read_record
from isoloss.studies.engines import worker
from isoloss.studies.engines.worker import REPORT_SECONDS, Parent, work
from isoloss.training.settings import Evaluating, Execution, RunSettings
from isoloss.training.task import Member, Progress, Task


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """A worker changes its process: threads, environment and what signals do. Here it is undone."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    threads = torch.get_num_threads()
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
    yield
    torch.set_num_threads(threads)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def task(tiny, tmp_path):
    corpus = library.tokenize(tiny, 300)
    members = []
    for seed in (0, 1):
        settings = RunSettings(
            family="lstm",
            shape=shape_of("lstm", {"n_layer": 1, "d_model": 8}).model_dump(mode="json"),
            corpus_hash=corpus.corpus_hash,
            tokenizer="bpe-300",
            vocab=300,
            context=16,
            batch_size=4,
            tokens=(640,),
            learning_rate=0.01,
            seed=seed,
            evaluation=Evaluating(windows=4, final_windows=4, trace_windows=2),
        )
        members.append(Member(settings, "lstm 1x8", tmp_path / "runs" / settings.run_id))
    return Task("made up", tuple(members), tiny, corpus.tokenizer_path.parent, Execution())


def answers(*tasks):
    """What the worker tells its parent of these tasks and no more, but for progress."""
    parent_end, worker_end = Pipe()
    for task in tasks:
        parent_end.send(task)
    with socket.socket(fileno=os.dup(parent_end.fileno())) as end:
        end.shutdown(socket.SHUT_WR)
    work(worker_end)
    worker_end.close()
    heard = []
    while parent_end.poll():
        try:
            heard.append(parent_end.recv())
        except (EOFError, OSError):  # a task was left unread
            break
    return [message for message in heard if message[0] != "progress"]


def test_a_cohort_leaves_a_record_a_member_and_frees_its_claims(task):
    for member in task.members:
        member.folder.mkdir(parents=True)
        (member.folder / ".record.json.abc.part").write_text("left by a writer that was killed")
    assert answers(task) == [("done", "")]
    for member in task.members:
        assert read_record(member.folder).run_id == member.run_id
        assert files.read_json(member.folder / "settings.json") == member.settings.model_dump(mode="json")
        assert not list(member.folder.glob(".*.part"))
        with files.claim(member.folder / "claim.lock") as mine:
            assert mine


def test_a_cohort_of_which_another_process_holds_one_run_is_left_alone(task):
    held = task.members[1].folder
    with files.claim(held / "claim.lock"):
        assert answers(task) == [("busy", "")]
    assert [path.name for path in held.iterdir()] == ["claim.lock"]
    with files.claim(task.members[0].folder / "claim.lock") as mine:
        assert mine, "the claims it had got are free again"


def test_who_only_looks_at_a_claim_is_waited_for(task, monkeypatch):
    monkeypatch.setattr(worker, "LOOK_SECONDS", 60.0)
    looking, looked = Event(), Event()

    def look():
        with files.claim(task.members[1].folder / "claim.lock"):
            looking.set()
            looked.wait()

    looker = Thread(target=look)
    looker.start()
    looking.wait()
    Timer(0.2, looked.set).start()
    assert answers(task) == [("done", "")]
    looker.join()


def test_what_another_process_finished_is_not_trained_again(task):
    assert answers(task) == [("done", "")]
    before = [path.stat().st_mtime_ns for m in task.members for path in m.folder.glob("*.*")]
    assert answers(task) == [("elsewhere", "")]
    assert [path.stat().st_mtime_ns for m in task.members for path in m.folder.glob("*.*")] == before


def test_a_failure_is_written_beside_each_member_and_the_worker_does_not_raise(task, monkeypatch):
    def broken(*_, **__):
        raise InputError("the text is gone", where="a file", mend="bring it back")

    monkeypatch.setattr(worker, "train", broken)
    ((kind, sentence),) = answers(task)
    assert (kind, sentence) == ("failed", "a file: the text is gone\n  To mend it: bring it back")
    for member in task.members:
        failure = read_failure(member.folder)
        assert (failure["run_id"], failure["reason"]) == (member.run_id, sentence)
        assert "Traceback" in failure["traceback"]
        assert not is_finished(member.folder)


def test_a_bug_is_told_with_its_kind_and_a_folder_that_takes_no_reason_is_said_so(task, monkeypatch):
    monkeypatch.setattr(worker, "train", lambda *_, **__: 1 / 0)
    assert answers(task) == [("failed", "ZeroDivisionError: division by zero")]

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker, "write_failure", full)
    ((_, sentence),) = answers(task)
    assert sentence.startswith("ZeroDivisionError: division by zero (and its folder cannot be written: ")
    assert "No space left on device" in sentence


def test_a_family_file_that_cannot_be_loaded_fails_the_cohort_by_name(task, tmp_path):
    broken = tmp_path / "mine.py"
    broken.write_text("import nothing_of_that_name\n")
    ((kind, sentence),) = answers(
        Task(task.study, task.members, task.corpus, task.tokens, task.execution, (broken,))
    )
    assert kind == "failed"
    assert str(broken) in sentence
    assert "nothing_of_that_name" in sentence


def test_runs_that_diverged_are_told_with_their_reasons(task, monkeypatch):
    assert answers(task) == [("done", "")]
    ends = {task.members[0].folder: ("diverged", "loss not finite"), task.members[1].folder: ("finished", "")}
    monkeypatch.setattr(
        worker,
        "read_record",
        lambda folder: SimpleNamespace(**dict(zip(("status", "reason"), ends[folder], strict=True))),
    )
    assert worker.verdict(task) == ("diverged", "loss not finite")


def test_sigterm_while_training_keeps_a_checkpoint_and_says_stopped(task, monkeypatch):
    genuine = Parent.progress

    def terminate(parent, progress):
        genuine(parent, progress)
        if progress.done == 5:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Parent, "progress", terminate)
    assert answers(task) == [("stopped", "")]
    (kept,) = (task.lead.folder / "checkpoints").iterdir()
    assert files.read_json(kept / "state.json")["done"] == 5


def test_a_worker_trains_one_cohort_after_the_other_each_as_if_alone(task):
    alone, other = (replace(task, members=(member,)) for member in task.members)
    assert answers(alone, other) == [("done", ""), ("done", "")]
    after = read_record(other.lead.folder)
    files.remove_folder(other.lead.folder)
    assert answers(other) == [("done", "")]
    assert read_record(other.lead.folder).evaluations == after.evaluations


def test_a_cohort_that_failed_or_brought_code_is_its_workers_last(task, monkeypatch, family_file):
    mine = replace(task, family_files=(family_file,))
    before = dict(registry._families)
    assert answers(mine, task) == [("done", "")]
    monkeypatch.setattr(registry, "_families", before)
    monkeypatch.setattr(worker, "train", lambda *_, **__: 1 / 0)
    files.remove_folder(task.lead.folder)
    assert answers(task, task) == [("failed", "ZeroDivisionError: division by zero")]


def test_a_worker_whose_parent_died_checkpoints_and_ends(task, monkeypatch):
    monkeypatch.setattr(worker, "REPORT_SECONDS", 0.0)
    parent_end, worker_end = Pipe()
    parent_end.send(task)
    parent_end.close()
    work(worker_end)
    (kept,) = (task.lead.folder / "checkpoints").iterdir()
    assert files.read_json(kept / "state.json")["done"] == 1
    assert not is_finished(task.lead.folder)


# The parent's end


def progress(done):
    return Progress("a", "lstm 1x8", done, 100, 64 * done, 3.0, 1e4, 1, 0)


def test_progress_is_sent_now_and_then_and_answers_always(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    sent = []
    parent = Parent(SimpleNamespace(send=sent.append))
    for done in range(1, 101):
        parent.progress(progress(done))
        now[0] += REPORT_SECONDS / 4
    assert [message[1].done for message in sent] == list(range(1, 101, 4))
    parent.send("done", "")
    assert sent[-1] == ("done", "")


def test_a_broken_pipe_is_noted_and_no_error():
    parent_end, worker_end = Pipe(duplex=False)
    parent = Parent(worker_end)
    parent.send("busy")
    assert not parent.gone
    parent_end.close()
    parent.send("busy")
    assert parent.gone
