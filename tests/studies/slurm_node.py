"""A Slurm of one node, for tests: Debian's own programs, everything else in a folder."""

import getpass
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=2
MinJobAge=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=2000
PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The first of its programs that this machine has not, or None."""
    return next((program for program in PROGRAMS if shutil.which(program, path=PATH) is None), None)


def free_ports(count):
    """Below those that the system gives to who asks for any: nobody takes one before Slurm does."""
    ports = set[int]()
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.add(port)
    return sorted(ports)


@contextmanager
def cluster(folder: Path, monkeypatch, cores=1):
    """Its commands work in the block, at whose end its daemons end."""
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key, conf = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    user, ports = getpass.getuser(), free_ports(2)
    conf.write_text(CONF.format(host=host, folder=folder, user=user, ports=ports, cores=cores))
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("SLURM_CONF", str(conf))
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    commands = [
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    ]
    with ExitStack() as started:
        for command in commands:
            log = started.enter_context((folder / f"{command[0]}.log").open("wb"))
            daemon = subprocess.Popen(command, stdout=log, stderr=log)
            started.callback(end, daemon)
            wait_for(lambda: (folder / "munge.socket").exists())
        wait_for(lambda: said("sinfo", "--noheader", "--format=%T").strip() == "idle")
        yield


def end(daemon):
    daemon.send_signal(signal.SIGTERM)
    daemon.wait(30)


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def queued(*options):
    """Jobs that wait or run. A controller that does not answer is asked again: that is no empty queue."""
    end = time.monotonic() + 120
    while True:
        command = ["squeue", "--noheader", "--array", "--format=%i", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            return done.stdout.split()
        assert time.monotonic() < end, done.stderr
        time.sleep(0.1)


def wait_for(condition, seconds=120.0):
    """Until it holds; fails after that time with what was waited for."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} seconds in vain"
        time.sleep(0.1)
