"""A real Slurm of one node, started and stopped by whoever asks: no root, munge or database.

Everything of it lies in one folder; ports are free ones; both daemons are ended by the ids in their
pid files. Authentication is off (auth/none): for tests and benchmarks only.
"""

import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import ended, wait_for

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0,max_array_tasks={max_array_tasks}
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=5
MessageTimeout=100
BatchStartTimeout=600
MaxArraySize={max_array_size}
MinJobAge={min_job_age}
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES State=UP
"""
LIMITS = {"max_array_size": 1001, "max_array_tasks": 1001, "min_job_age": 300}


def why_no_slurm() -> str:
    """Why no Slurm can be started here; empty where it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=SEARCH) is None]
    if not missing:
        return ""
    return f"no Slurm to start ({', '.join(missing)} not found); make test-slurm installs it"


@contextmanager
def local_slurm(folder: Path, **limits: int) -> Iterator[dict[str, str]]:
    """Start a Slurm in a folder that must be empty, with other LIMITS, if any are given; give the
    environment that its clients need. Skips the test where there is none."""
    if reason := why_no_slurm():
        pytest.skip(reason)
    (folder / "state").mkdir(parents=True)
    (folder / "spool").mkdir()
    host = socket.gethostname().split(".")[0]
    own = {"host": host, "ports": _free_ports(2), "user": getpass.getuser(), "root": folder}
    (folder / "slurm.conf").write_text(CONF.format(**own, **LIMITS | limits))
    env = {**os.environ, "PATH": SEARCH, "SLURM_CONF": str(folder / "slurm.conf")}
    for name in [name for name in env if name.startswith(("SBATCH_", "SQUEUE_"))]:
        del env[name]
    try:
        subprocess.run(["slurmctld", "-c"], env=env, check=True, cwd=folder)
        subprocess.run(["slurmd"], env=env, check=True, cwd=folder)
        _wait_until_idle(folder, env)
        yield env
    finally:
        for name in ("slurmd.pid", "slurmctld.pid"):
            _stop(folder / name)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that any client is given."""
    with ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = random.SystemRandom().randrange(10_000, 32_000)
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def _wait_until_idle(folder: Path, env: dict[str, str]) -> None:
    def idle() -> bool:
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True)
        return done.stdout.strip() == "idle"

    try:
        wait_for(idle)
    except AssertionError as error:
        log = (folder / "slurmctld.log").read_text(errors="replace")
        raise RuntimeError(f"Slurm did not start: {log[-2000:]}") from error


def _stop(pid_file: Path) -> None:
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    try:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not ended(pid):
            time.sleep(0.05)
        if not ended(pid):
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself
