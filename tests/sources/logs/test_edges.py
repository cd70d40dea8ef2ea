"""Of each source what can go wrong: torn files, several losses, names that do not meet, missing packages."""

import builtins
import json
import pickle
import random
import shutil
import sqlite3
import tomllib
import types

import pytest
from writers import PARAMS, ROOT

from isoloss.errors import InputError, IsolossError
from isoloss.sources.logs import SOURCES, loss_table
from isoloss.sources.logs.counting import of_config
from isoloss.sources.logs.lightning import read_hparams
from isoloss.sources.logs.logged import library


def test_a_torn_end_of_a_wandb_file_costs_what_was_torn_alone(logs, tmp_path):
    _, folder = logs("wandb")
    whole = next(folder.rglob("*.wandb")).read_bytes()
    (tmp_path / "run-x.wandb").write_bytes(whole[:-1])
    frame = loss_table("wandb", tmp_path).frame
    assert frame["step"].to_list() == [200, 300]
    assert set(frame["status"]) == {"running"}  # the record of its end is what was torn
    (tmp_path / "run-x.wandb").write_bytes(b":W&B\xe1\xbe\x00" + b"\x00\x00\x00\x00\x02\x00\x01\xff\xff")
    with pytest.raises(InputError, match="damaged"):
        loss_table("wandb", tmp_path)


def test_a_resumed_wandb_run_is_one_run(logs, tmp_path):
    _, folder = logs("wandb")
    data = next(folder.rglob("*.wandb")).read_bytes()
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "run-x.wandb").write_bytes(data)
    table = loss_table("wandb", tmp_path)
    assert table.frame["step"].to_list() == [200, 300]


def test_the_api_of_wandb_is_asked_for_entity_and_project(monkeypatch):
    rows = [{"_step": 5, "_runtime": 1.0, "val/loss": 3.0}, {"_step": 6, "val/loss": "NaN"}]
    run = types.SimpleNamespace(
        name="a", id="x1", state="crashed", config={"n_params": 10**6}, scan_history=lambda: iter(rows)
    )
    import wandb

    monkeypatch.setattr(wandb, "Api", lambda: types.SimpleNamespace(runs=lambda path: [run]))
    frame = loss_table("wandb", "team/project").frame
    assert frame["origin"].to_list() == ["wandb.ai/team/project/runs/x1"] * 2
    assert frame["status"].to_list() == ["failed"] * 2
    assert frame["loss"].is_nan().to_list() == [False, True]


@pytest.mark.parametrize("header", ["Relative Time (Wall),n20m,n80m", "Step,n20m,n80m"])
def test_a_panel_that_names_no_metric_is_refused(tmp_path, header):
    (tmp_path / "panel.csv").write_text(f"{header}\n1,3.5,3.2\n")
    with pytest.raises(InputError, match="RUN - METRIC"):
        loss_table("wandb", tmp_path / "panel.csv")


def test_runs_of_wandb_as_nested_json_are_a_table(tmp_path):
    row = {
        "name": "run-0",
        "config": {"model": {"n_params": 2e7}, "tokens": 5e8},
        "summary": {"val/loss": 4.5},
    }
    (tmp_path / "runs.ndjson").write_text(json.dumps(row) + "\n")
    frame = loss_table("wandb", tmp_path / "runs.ndjson").frame
    assert frame.select("run_id", "params", "tokens", "loss").rows() == [
        ("run-0", 20_000_000, 5 * 10**8, 4.5)
    ]


def test_several_losses_are_asked_about_and_a_training_loss_is_not_taken(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,val_loss,test_loss,train_loss\n1,3.0,3.1,2.9\n")
    with pytest.raises(InputError, match="several losses") as error:
        loss_table("lightning", path)
    assert "'val_loss', 'test_loss'" in error.value.mend
    assert loss_table("lightning", path, columns={"loss": "test_loss"}).frame["loss"].to_list() == [3.1]
    path.write_text("step,train_loss\n1,2.9\n")
    with pytest.raises(InputError, match="held-out") as error:
        loss_table("lightning", path)
    assert "--loss KEY: 'train_loss'" in error.value.mend


def test_bits_per_byte_stay_what_they_are(tmp_path):
    (tmp_path / "run.log").write_text("Number of parameters: 1,000,000\nStep 00010 | Validation bpb: 1.25\n")
    table = loss_table("nanogpt", tmp_path)
    assert table.frame["bits_per_byte"].to_list() == [1.25]
    assert table.frame["loss"].to_list() == [None]
    assert any("loss is empty in 1 row: bits per byte" in line for line in table.lines())
    nats = loss_table("nanogpt", tmp_path, bytes_per_token=4.0).frame
    assert nats["loss"].to_list() == pytest.approx([1.25 * 4 * 0.6931471805599453])


def grid(sizes, lengths, count="params", loss="val_loss"):
    rows = [f"{n},{d},{2 + 9 / n**0.1 + 9 / d**0.1:.6f}" for n in sizes for d in lengths]
    return "\n".join([f"{count},tokens,{loss}", *rows]) + "\n"


@pytest.mark.parametrize(
    ("header", "options"),
    [
        (("params", "val_loss"), ""),
        (("params_total", "val_loss"), " --count params_total"),
        (("params", "val_bpb"), " --loss bits_per_byte"),
        (("params_total", "val_bpb"), " --count params_total --loss bits_per_byte"),
    ],
)
def test_the_next_step_is_a_fit_of_the_columns_that_are_there(tmp_path, header, options):
    path = tmp_path / "runs.csv"
    path.write_text(grid([1e6, 2e6, 4e6], [1e8, 2e8, 4e8], *header))
    table = loss_table("csv", path)
    assert table.next_step("t.csv") == f"Next: isoloss fit t.csv --law chinchilla{options}"
    assert not any("params is empty" in line for line in table.lines()), "the law takes params_total"


@pytest.mark.parametrize(
    ("sizes", "lengths", "here"),
    [
        ([1e6], [1e8, 2e8, 4e8], "3 points, 1 size, 3 of tokens."),
        ([1e6, 2e6, 4e6], [1e8], "3 points, 3 sizes, 1 of tokens."),
        ([1e6, 4e6], [1e8, 2e8, 3e8, 4e8], "8 points, 2 sizes, 4 of tokens."),
        ([1e6, 2e6, 3e6], [1e8, 2e8, 4e8], "9 points, 3 sizes, 3 of tokens."),
    ],
)
def test_no_fit_is_recommended_that_must_be_refused(isoloss, tmp_path, sizes, lengths, here):
    path, out = tmp_path / "runs.csv", tmp_path / "out.csv"
    path.write_text(grid(sizes, lengths))
    code, stdout, _ = isoloss("import", "csv", path, "-o", out)
    assert code == 0
    assert "Next: more runs. A law of N and D needs a loss at 6 different points" in stdout
    assert stdout.splitlines()[-1].endswith(f"; here: {here}")
    assert isoloss("fit", out, "--law", "chinchilla")[0] == 3


def test_rows_that_no_law_can_use_are_no_points(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(grid([1e6, 2e6, 4e6], [1e8, 2e8, 4e8]).replace(",100000000.0,", ",,"))
    assert "here: 6 points, 3 sizes, 2 of tokens" in loss_table("csv", path).next_step("t.csv")


def test_perplexity_becomes_a_loss_and_other_units_are_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("params,tokens,perplexity\n1e6,1e8,20.0\n")
    frame = loss_table("csv", path, columns={"loss": "perplexity"}).frame
    assert frame["loss"].to_list() == pytest.approx([2.995732273553991])
    path.write_text("params,tokens,val_bpc\n1e6,1e8,2.0\n")
    with pytest.raises(InputError, match="bits per character"):
        loss_table("csv", path, columns={"loss": "val_bpc"})


def test_steps_that_a_restart_logged_again_are_said(tmp_path):
    (tmp_path / "a.log").write_text(
        "".join(f"step {s}: train loss 3, val loss {v}\n" for s, v in ((1, 3), (2, 2.5), (2, 2.4)))
    )
    table = loss_table("nanogpt", tmp_path)
    assert table.frame["loss"].to_list() == [3.0, 2.4]
    assert any("logged 1 of its steps again" in note for note in table.notes)


def test_a_run_without_an_evaluation_has_one_row_without_a_loss(tmp_path):
    state = {"global_step": 3, "max_steps": 9, "log_history": [{"loss": 4.0, "step": 3}]}
    done = {"global_step": 9, "max_steps": 9, "log_history": [{"eval_loss": 3.0, "step": 9}]}
    for name, value in (("a", state), ("b", done)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(json.dumps(value))
    frame = loss_table("huggingface", tmp_path).frame
    assert frame.select("run_id", "loss", "status").rows() == [("a", None, "running"), ("b", 3.0, "finished")]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("steady", [True, False])
def test_trainer_counts_its_flops_with_the_head(tmp_path, tied, steady):
    """As transformers 5 does: 6 tokens times all parameters but the embedding's."""
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2}
    config |= {"vocab_size": 50, "intermediate_size": 32, "tie_word_embeddings": tied}
    known = of_config(config)
    params = known["params_total"] - 50 * 16
    log = [{"eval_loss": 4.0 - step / 10, "step": step} for step in (5, 10, 15, 20)]
    for step, tokens in ((10, 640), (20, 1280 if steady else 1400)):
        folder = tmp_path / "run" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
        state = {"global_step": step, "max_steps": 20, "log_history": log, "num_input_tokens_seen": 0}
        (folder / "trainer_state.json").write_text(json.dumps(state | {"total_flos": 6.0 * params * tokens}))
    frame = loss_table("huggingface", tmp_path).frame
    assert frame["tokens"].to_list() == ([320, 640, 960, 1280] if steady else [None, 640, None, 1400])
    assert frame["params"].unique().to_list() == [known["params"]]


def test_tables_of_sizes_meet_the_log_by_name_or_say_so(logs, tmp_path):
    source, path = logs("panel")
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("run,params\nother,1e6\n")
    with pytest.raises(InputError, match="names no run of the log"):
        loss_table(source, path, table=sizes)
    sizes.write_text("run,params\nsmall,1e6\nsmall,2e6\n")
    with pytest.raises(InputError, match="twice"):
        loss_table(source, path, table=sizes)
    sizes.write_text("run,params\nsmall,1e6\n")
    table = loss_table(source, path, table=sizes)
    assert table.frame["params"].null_count() == 2 * (len(PARAMS) - 1)
    assert any("params is empty in 6 rows" in line for line in table.lines())


def test_hparams_yield_plain_values_and_never_an_object(tmp_path):
    (tmp_path / "hparams.yaml").write_text(
        "lr: 1e-3\nmodel:\n  n_layer: 4\n  init: !!python/object/apply:os.system ['touch owned']\n"
        "  deep:\n    on: true\n"
        "names: [a, b]\nalias: *x\nlast: 'text'\n"
    )
    settings = read_hparams(tmp_path / "metrics.csv")
    assert settings == {"lr": 1e-3, "model.n_layer": 4, "model.deep.on": True, "last": "text"}


def test_no_pickle_is_opened(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (builtins.print, ("owned",))

    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "checkpoint-3" / "training_args.bin").write_bytes(pickle.dumps(Trap()))
    state = {"global_step": 3, "max_steps": 3, "log_history": [{"eval_loss": 4.0, "step": 3}]}
    (tmp_path / "checkpoint-3" / "trainer_state.json").write_text(json.dumps(state))
    monkeypatch.setattr(pickle, "Unpickler", None)
    monkeypatch.setattr(pickle, "loads", None)
    assert loss_table("huggingface", tmp_path).frame.height == 1


@pytest.mark.parametrize("source", ["wandb", "tensorboard", "mlflow"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(source, tmp_path, monkeypatch):
    def missing(name, *_):
        raise ImportError(name)

    path = {"wandb": "run-x.wandb", "tensorboard": "events.out.tfevents.1", "mlflow": "mlruns"}[source]
    (tmp_path / path).touch() if source != "mlflow" else (tmp_path / path).mkdir()
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(InputError) as error:
        loss_table(source, tmp_path / path)
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][
        source
    ]
    assert error.value.mend == "pip install " + " ".join(name.partition(">=")[0] for name in extra)


def test_library_gives_what_is_there():
    assert library("json", "json", "JSON") is json


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff" * 40, b"{", b"a,b\n1,2\n", b"[[1]]", b"SQLite format 3\0junk"]
)
def test_any_bytes_end_in_a_reason(source, content, tmp_path):
    names = {
        "wandb": "run-x.wandb", "tensorboard": "events.out.tfevents.1", "huggingface": "trainer_state.json",
        "mlflow": "mlflow.db", "lightning": "metrics.csv", "nanogpt": "a.log", "csv": "a.csv",
    }  # fmt: skip
    path = tmp_path / names[source]
    path.write_bytes(content)
    for target in (path, tmp_path / "no such", tmp_path):
        with pytest.raises(InputError) as error:
            loss_table(source, target)
        assert error.value.mend


def test_a_sqlite_file_of_another_program_is_no_store(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE runs (name TEXT)")
    database.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(InputError, match="no runs of MLflow"):
        loss_table("mlflow", tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes() == before


def test_names_in_a_log_do_not_steer_the_terminal(tmp_path, isoloss):
    (tmp_path / "metrics.csv").write_text("step,val_loss,params\x1b[31m\n1,3.0,5\n")
    code, stdout, stderr = isoloss("import", "lightning", tmp_path / "metrics.csv")
    assert code == 0
    assert stdout.startswith("run_id,study")
    assert "\x1b" not in stderr


def test_wrong_use_is_named(tmp_path, isoloss):
    for arguments, words in (
        (("comet", "x"), "there is no source 'comet'"),
        (("csv", "x", "--pattern", "nanogpt"), "takes no pattern"),
        (("nanogpt", tmp_path, "--pattern", "mine"), "there is no pattern 'mine'"),
        (("csv", "x", "-o", str(tmp_path / "t.xlsx")), "neither Parquet nor CSV"),
    ):
        code, stdout, stderr = isoloss("import", *arguments)
        assert (code, stdout) == (2, "")
        assert words in stderr


def test_hparams_and_the_scalars_of_tensorflow_2(tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_FLOAT
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "run")) as writer:
        writer.add_hparams({"params": 1e6, "batch_tokens": 4096, "act": "gelu"}, {}, run_name=".")
        value = Summary.Value(tag="val_loss", tensor=TensorProto(dtype=DT_FLOAT, float_val=[3.5]))
        value.metadata.plugin_data.plugin_name = "scalars"
        writer.file_writer.event_writer.add_event(Event(step=10, summary=Summary(value=[value])))
        config = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
        writer.add_text("model_config", json.dumps(config | {"hidden_size": 24}))
    frame = loss_table("tensorboard", tmp_path).frame
    assert frame.select("run_id", "params", "tokens", "loss").rows() == [("run", 10**6, 40960, 3.5)]
    assert frame.select("d_model", "vocab", "family").rows() == [(24, 50, "llama")]
    assert frame["origin"][0].endswith("run; params counted from model_config")


ODD = [b"NaN", b"null", b'"x"', b"{}", b"[1]", b"-1", b"1e999", b"9" * 40, b"step", b"", b"\n", b"\xff"]


@pytest.mark.parametrize("kind", ["wandb", "tensorboard", "huggingface", "lightning", "nanogpt", "panel"])
def test_damaged_logs_end_in_a_table_or_in_a_reason(logs, tmp_path, kind):
    source, path = logs(kind)
    rng, reasons = random.Random(kind), []
    for number in range(25):
        folder = tmp_path / str(number)
        shutil.copytree(path if path.is_dir() else path.parent, folder)
        for _ in range(rng.randint(1, 2)):
            file = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
            data, place = file.read_bytes(), rng.randrange(max(1, file.stat().st_size))
            file.write_bytes(data[:place] + rng.choice(ODD) + data[place + rng.randint(0, 8) :])
        target = folder if path.is_dir() else folder / path.name
        try:
            loss_table(source, target, table=folder / "sizes.csv" if kind == "panel" else None)
        except IsolossError as error:
            reasons.append(error.mend)
    assert len(reasons) < 25
    assert all(reasons)
