#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of the launchers: run.py a job, slurm.py a stage.

Goals: under 50 ms a job locally; under 5 s a stage on Slurm. Each is what the launcher takes beyond
a reference measured in the same run: locally the same processes one after the other, started
plainly from Python; on Slurm a bare `sbatch` of the same array, until squeue has all its tasks
COMPLETED. The Slurm is a real one of one node, started here (tests/slurm_cluster.py).
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import MOST, ROOT, Judged, judge, skip
from tests.slurm_cluster import local_slurm, why_no_slurm

JOBS, TASKS, ROUNDS = 100, 8, 5
GOAL_LOCAL, GOAL_SLURM = 0.050, 5.0  # seconds


def median_seconds(call: Callable[[], object]) -> float:
    """The median of the wall-clock times of some calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def local_overhead(folder: Path) -> float:
    """Seconds that run.py takes for a job, beyond a plain process."""

    def plain() -> None:
        for _ in range(JOBS):
            subprocess.run(["true"], check=True, start_new_session=True)

    def launched() -> None:
        words = ["--max-jobs-run", "1", f"JOB=1:{JOBS}", f"{folder}/x.JOB.log", "true"]
        subprocess.run([sys.executable, str(ROOT / "utils/run.py"), *words], check=True)

    bare, ours = median_seconds(plain) / JOBS, median_seconds(launched) / JOBS
    print(f"local, a job of {JOBS}: {ours * 1e3:.2f} ms; a plain process {bare * 1e3:.2f} ms")
    return ours - bare


def slurm_overhead(folder: Path, environment: dict[str, str]) -> float:
    """Seconds that slurm.py takes for a stage, beyond a bare array."""
    os.environ.update(environment)

    def bare() -> None:
        words = ["sbatch", "--parsable", f"--array=1-{TASKS}", "-o", "/dev/null", "--wrap", "true"]
        job = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        ask = ["squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%T"]
        while True:
            states = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.split()
            if states == ["COMPLETED"] * TASKS:
                return
            time.sleep(0.05)

    def launched() -> None:
        config = ["--config", str(ROOT / "egs/TEMPLATE/conf/slurm.conf")]
        words = [*config, f"JOB=1:{TASKS}", f"{folder}/y.JOB.log", "true"]
        subprocess.run([sys.executable, str(ROOT / "utils/slurm.py"), *words], check=True)

    reference, ours = median_seconds(bare), median_seconds(launched)
    print(f"Slurm, a stage of {TASKS} tasks: {ours:.2f} s; a bare array {reference:.2f} s")
    return ours - reference


def main() -> int:
    """Measure both and compare with the goals."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        local = local_overhead(folder)
        found: list[Judged] = [("run.py: s a job", local, MOST, GOAL_LOCAL)]
        if reason := why_no_slurm():
            return judge(*found) or skip(f"slurm.py: {reason}")
        with local_slurm(folder / "slurm") as environment:
            stage = slurm_overhead(folder, environment)
    return judge(*found, ("slurm.py: s a stage", stage, MOST, GOAL_SLURM))


if __name__ == "__main__":
    sys.exit(main())
