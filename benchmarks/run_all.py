#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Run all benchmarks one after the other, and print each figure beside its goal.

    benchmarks/run_all.py [--only NAME ...]

A benchmark that needs a corpus which is not here is skipped with its reason; one that fails counts
as missed, with exit status 1. The goals stand in the scripts alone. It takes hours on two
cores, which nothing else should use.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import SKIPPED, TOLD

FOLDER = Path(__file__).parent


def measure(script: Path) -> list[list[str]]:
    """Rows of a benchmark: its name, a figure and its value, the goal, and whether it is met."""
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    name, said = script.stem.removeprefix("bench_"), (done.stderr.strip() or "-").splitlines()[-1]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    rows = [[name, *line[1:]] for line in lines if line[0] == "goal"]
    if done.returncode == SKIPPED:
        rows.append([name, said.removeprefix("skipped: "), "-", "-", "skipped"])
    elif not rows or (done.returncode and TOLD[False] not in {row[-1] for row in rows}):
        rows.append([name, f"exit status {done.returncode}: {said}", "-", "-", TOLD[False]])
    return rows


def main() -> int:
    """Run them, and print the table as it grows."""
    scripts = {path.stem.removeprefix("bench_"): path for path in sorted(FOLDER.glob("bench_*.py"))}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=scripts, default=[*scripts],
                        help="the names of some benchmarks")  # fmt: skip
    found = []
    print("benchmark", "what", "figure", "goal", "met", sep="\t", flush=True)
    for name in parser.parse_args().only:
        for row in measure(scripts[name]):
            print(*row, sep="\t", flush=True)
            found.append(row)
    missed = [row for row in found if row[-1] == TOLD[False]]
    told = (": ".join(row[:3]) for row in missed)
    judged = [row for row in found if row[-1] in TOLD.values()]
    print(f"{len(missed)} of {len(judged)} goals are missed", *told, sep="\n  ")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
