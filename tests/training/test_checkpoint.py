"""Checkpoints from a hostile disk: what cannot be used is passed over and removed, never half used."""

import io
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoloss import files
from isoloss.training import checkpoint, loop
from isoloss.training import state as states
from isoloss.training.setup import set_up


@pytest.fixture
def stopped(make_task):
    """stopped(updates) -> a task cut there, its checkpoint's folder, and the names of its runs."""

    def make(updates=15, **options):
        task = make_task("transformer", **options)
        made = iter(range(1, 10_000))
        assert not loop.train(task, should_stop=lambda: next(made) >= updates)
        (saved,) = (task.lead.folder / "checkpoints").iterdir()
        return task, saved, [member.run_id for member in task.members]

    return make


def restored(task, run_ids):
    """A state that was put back from the task's checkpoints, and the notes or None."""
    state = set_up(task).first_state()
    return state, checkpoint.restore(task.lead.folder / "checkpoints", state, run_ids)


def test_what_was_saved_comes_back_whole(stopped):
    task, saved, run_ids = stopped(seeds=(0, 1))
    state, notes = restored(task, run_ids)
    assert (state.step, state.done, state.segment, state.diverged) == (15, 15, 0, [None, None])
    assert notes["attempt"] == 1
    assert [event["kind"] for event in notes["events"]] == ["started"]
    held = load_file(saved / "state.safetensors")
    assert all(torch.equal(tensor, held[name]) for name, tensor in states.tensors(state).items())
    assert (state.curve_UKP[:15] > 0).all()
    # Sums of 4 windows of 16 positions for each member.
    assert [m.step for m in state.measured] == [0, 1, 2, 3, 4, 6, 8, 11]
    assert all(len(m.sums) == 2 for m in state.measured)
    assert all(sums.windows == 4 and sums.sum_PT.shape == (1, 16) for m in state.measured for sums in m.sums)


def not_a_dict(saved):
    files.write_json(saved / "state.json", [1, 2])


def torn_json(saved):
    (saved / "state.json").write_bytes((saved / "state.json").read_bytes()[:-20])


def no_json(saved):
    (saved / "state.json").unlink()


def no_tensors(saved):
    (saved / "state.safetensors").unlink()


def torn_tensors(saved):
    whole = (saved / "state.safetensors").read_bytes()
    (saved / "state.safetensors").write_bytes(whole[: len(whole) // 2])


def stamped(saved):
    """The file's hash as it is now in state.json: only its content can give it away."""
    digest = files.sha256(saved / "state.safetensors")
    files.write_json(saved / "state.json", files.read_json(saved / "state.json") | {"sha256": digest})


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("loading a checkpoint ran code",))


def a_pickle_in_its_place(saved):
    buffer = io.BytesIO()
    pickle.dump({"model.weight": Bomb()}, buffer)
    (saved / "state.safetensors").write_bytes(buffer.getvalue())
    stamped(saved)


def another_format(saved):
    files.write_json(saved / "state.json", files.read_json(saved / "state.json") | {"format": 1})


def another_run(saved):
    files.write_json(saved / "state.json", files.read_json(saved / "state.json") | {"run_ids": ["b"]})


@pytest.mark.parametrize(
    "damage",
    [
        not_a_dict,
        torn_json,
        no_json,
        no_tensors,
        torn_tensors,
        a_pickle_in_its_place,
        another_format,
        another_run,
    ],
)
def test_what_cannot_be_used_is_removed_and_the_state_stays_as_it_was(stopped, damage):
    task, saved, run_ids = stopped()
    fresh = {name: t.clone() for name, t in states.tensors(set_up(task).first_state()).items()}
    damage(saved)
    state, notes = restored(task, run_ids)
    assert notes is None
    assert (state.done, state.measured) == (0, [])
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in states.tensors(state).items())
    assert not saved.exists()
    assert loop.train(task), "it starts anew and comes to its end"


def test_leftovers_of_a_writer_that_was_killed_are_no_checkpoints(stopped):
    task, saved, run_ids = stopped()
    half = saved.parent / f".{saved.name}.abc.part"
    half.mkdir()
    (half / "state.json").write_text("{")
    assert restored(task, run_ids)[1] is not None


def test_no_checkpoints_at_all_is_a_fresh_start(make_task):
    task = make_task("transformer")
    state, notes = restored(task, [task.lead.run_id])
    assert (state.done, notes) == (0, None)


def test_shared_memory_is_saved_for_each_name(tmp_path):
    weight = torch.arange(6.0).view(2, 3)
    arrays = {"embedding": weight, "head": weight, "row": weight[1]}
    with pytest.raises(RuntimeError, match="share"):
        save_file(arrays, tmp_path / "control.safetensors")
    checkpoint.write_tensors(tmp_path / "saved.safetensors", arrays)
    back = load_file(tmp_path / "saved.safetensors")
    assert torch.equal(back["row"], weight[1])
    assert torch.equal(back["embedding"], back["head"])
