#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Plan of an archive of 100,000 hours: CPU-hours, days and disk, from rates that are measured here.

steps/protect_folder.py protects so many minutes of LibriSpeech ($PSEUDOVOX_CORPORA, or else
synthetic speech) on one core by each of models/, starts included. archive.csv gets what was
measured, and docs/archive.csv the plan; --plan makes that anew from what was measured before. The
machine must be quiet, and recordings as long as yours: each also takes time of its own.

  benchmarks/plan_archive.py [MINUTES | --plan]      10 if left out
"""

import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, fill, speech_files
from utils.stamps import commit_of_code

MEASURED, PLAN = ROOT / "benchmarks/archive.csv", ROOT / "docs/archive.csv"
SYSTEMS = ("bn", "bn2", "place")
HOURS, JOBS = 100_000, 100
WAV = 2 * 16_000 * 3600  # bytes an hour, 16 bit
COLUMNS = ("system", "files", "seconds", "cpu_seconds", "bytes_made", "bytes_kept", "commit")


def measure(minutes: float, system: str) -> list[object]:
    """A row of MEASURED."""
    with tempfile.TemporaryDirectory() as folder:
        _, files = speech_files(60, Path(folder, "speech"))
        source, out = Path(folder, "in"), Path(folder, "out")
        seconds, n = fill(source, files, 60 * minutes)
        words = ["--system", f"{ROOT}/models/{system}", "--nj", "1", str(source), str(out)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, f"{ROOT}/steps/protect_folder.py", *words], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        made = sum(path.stat().st_size for path in out.rglob("[!.]*") if path.is_file())
        kept = [*out.glob(".*"), *Path(folder).glob("out.*")]
        size = sum(path.stat().st_size for path in kept)
    return [system, n, round(seconds, 1), round(cpu, 1), made, size, commit_of_code()]


def plan() -> None:
    """Write PLAN from MEASURED."""
    with MEASURED.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with PLAN.open("w", encoding="utf-8", newline="") as stream:
        write = csv.writer(stream, lineterminator="\n").writerow
        write(["system", "CPU-hours", f"days, {JOBS} jobs", "result as FLAC (TB)", "as WAV (TB)",
               "journal, account (GB)"])  # fmt: skip
        for row in rows:
            share = 3600 * HOURS / float(row["seconds"])
            cpu = share * float(row["cpu_seconds"]) / 3600
            flac, kept = share * float(row["bytes_made"]), share * float(row["bytes_kept"])
            write([f"models/{row['system']}", f"{round(cpu, -2):,.0f}", f"{cpu / 24 / JOBS:.1f}",
                   f"{flac / 1e12:.1f}", f"{HOURS * WAV / 1e12:.1f}",
                   f"{kept / 1e9:.0f}"])  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:] != ["--plan"]:
        lines = [measure(float(sys.argv[1]) if sys.argv[1:] else 10.0, name) for name in SYSTEMS]
        with MEASURED.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *lines])
    plan()
