"""The same four runs, as each tracker's own library or trainer writes them."""

import json
from pathlib import Path

from isoloss.sources.logs.mlflow import quiet_client

PARAMS = {"small": 1_000_000, "medium": 4_000_000, "large": 16_000_000, "huge": 64_000_000}
ROOT = Path(__file__).parents[3]
BATCH = 4096
STEPS = (100, 200, 300)
EVALUATED = (200, 300)


def val_loss(params, step):
    return 1.75 + 400 * params**-0.35 + 400 * (step * BATCH) ** -0.3


def logged(params):
    """Step, training loss, and the loss on held-out text where it was measured."""
    for step in STEPS:
        loss = val_loss(params, step)
        yield step, loss - 0.01, loss if step in EVALUATED else None


def wandb(folder):
    import wandb

    quiet = wandb.Settings(silent=True, x_disable_stats=True, x_disable_meta=True)
    options = {"dir": folder, "mode": "offline", "project": "p", "settings": quiet}
    for name, params in PARAMS.items():
        config = {"model": {"n_params": params}, "batch_tokens": BATCH}
        run = wandb.init(name=name, config=config, **options)
        for step, train, val in logged(params):
            held_out = {"val/loss": val} if val else {}
            run.log({"train/loss": train, "tokens": step * BATCH} | held_out, step=step)
        run.finish()
    wandb.teardown()  # waits for the process that writes the files
    return folder


def tensorboard(folder):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for name, params in PARAMS.items():
        writer = EventFileWriter(str(folder / name))
        for step, train, val in logged(params):
            values = {"loss/train": train, "loss/val": val, "tokens": step * BATCH, "params": params}
            for tag, value in values.items():
                if value is not None:
                    summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                    writer.add_event(Event(wall_time=step, step=step, summary=summary))
        writer.close()
    return folder


def huggingface(folder):
    """As transformers 5 writes it; a checkpoint holds the log so far, the FLOPs and the tokens."""
    for name, params in PARAMS.items():
        log = []
        for step, train, val in logged(params):
            log.append({"epoch": 0.1, "loss": train, "learning_rate": 1e-3, "step": step, "grad_norm": 1.0})
            if val is None:
                continue
            log.append({"epoch": 0.1, "eval_loss": val, "eval_runtime": 1.0, "step": step})
            state = {
                "global_step": step, "max_steps": STEPS[-1], "log_history": log, "train_batch_size": 8,
                "total_flos": 6.0 * params * step * BATCH, "num_input_tokens_seen": step * BATCH,
            }  # fmt: skip
            if step == STEPS[-1]:
                log.append({"step": step, "train_loss": train + 1.0, "total_flos": state["total_flos"]})
            checkpoint = folder / name / f"checkpoint-{step}"
            checkpoint.mkdir(parents=True)
            (checkpoint / "trainer_state.json").write_text(json.dumps(state))
            (checkpoint / "training_args.bin").write_bytes(b"a pickle that nobody opens")
    return folder


def mlflow(folder, address=None):
    with quiet_client():
        _mlflow(address or f"sqlite:///{folder / 'mlflow.db'}")
    return folder if address else folder / "mlflow.db"


def _mlflow(address):
    from mlflow import MlflowClient

    client = MlflowClient(address)
    experiment = client.create_experiment("sweep")
    for name, params in PARAMS.items():
        run = client.create_run(experiment, run_name=name).info.run_id
        client.log_param(run, "n_params", params)
        client.log_param(run, "batch_tokens", BATCH)
        for step, train, val in logged(params):
            client.log_metric(run, "train_loss", train, step=step)
            if val is not None:
                client.log_metric(run, "val_loss", val, step=step)
        client.set_terminated(run)


def mlruns(folder):
    return mlflow(folder, folder.as_uri())


def lightning(folder):
    for name, params in PARAMS.items():
        version = folder / name
        version.mkdir(parents=True)
        lines = ["epoch,step,train_loss,val_loss"]
        for step, train, val in logged(params):
            lines.append(f"0,{step},{train!r},")
            lines += [f"0,{step},,{val!r}"] if val else []
        (version / "metrics.csv").write_text("\n".join(lines) + "\n")
        hparams = f"model:\n  n_params: {params}\n  act: !!python/name:os.system ''\nbatch_tokens: {BATCH}\n"
        (version / "hparams.yaml").write_text(hparams)
    return folder


def nanogpt(folder):
    for name, params in PARAMS.items():
        lines = [f"tokens per iteration will be: {BATCH:,}", f"number of parameters: {params / 1e6:.2f}M"]
        for step, train, val in logged(params):
            lines.append(f"iter {step}: loss {train:.4f}, time 50.00ms, mfu 10.00%")
            lines += [f"step {step}: train loss {train:.4f}, val loss {val:.4f}"] if val else []
        (folder / f"{name}.log").write_text("\n".join(lines) + "\n")
    return folder


def csv(folder):
    lines = ["run,params_M,batch_tokens,steps,val_loss,state"]
    for name, params in PARAMS.items():
        lines += [f"{name},{params / 1e6},{BATCH},{s},{v!r},finished" for s, _, v in logged(params) if v]
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    return folder / "runs.csv"


def panel(folder):
    """W&B's export of a panel has no sizes: a table of runs goes beside it."""
    names = [f'"{name} - val/loss{end}"' for name in PARAMS for end in ("", "__MIN", "__MAX")]
    lines = [",".join(['"Step"', *names])]
    for step in EVALUATED:
        losses = [repr(val_loss(params, step)) for params in PARAMS.values() for _ in range(3)]
        lines.append(",".join([str(step), *losses]))
    (folder / "panel.csv").write_text("\n".join(lines) + "\n")
    rows = [f'"{name}","finished",{params},{BATCH}' for name, params in PARAMS.items()]
    (folder / "sizes.csv").write_text("\n".join(['"Name","State","n_params","batch_tokens"', *rows]) + "\n")
    return folder / "panel.csv"


WRITERS = {
    "wandb": (wandb, "wandb"), "panel": (panel, "wandb"), "tensorboard": (tensorboard, "tensorboard"),
    "huggingface": (huggingface, "huggingface"), "mlflow": (mlflow, "mlflow"), "mlruns": (mlruns, "mlflow"),
    "lightning": (lightning, "lightning"), "nanogpt": (nanogpt, "nanogpt"), "csv": (csv, "csv"),
}  # fmt: skip


def write(kind, folder: Path):
    """Logs of ``kind`` in ``folder``: the source that reads them, and the path to name."""
    writer, source = WRITERS[kind]
    return source, writer(folder)
