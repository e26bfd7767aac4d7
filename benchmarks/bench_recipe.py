#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Time and memory of the default recipe (egs/synth), from nothing to the report, after set-up.

Goal: under 4 minutes on 2 quiet cores, and under 3 GB at its peak (sum of proportional set sizes
over all processes of the recipe, sampled every half second). The recipe runs in a new folder beside
egs/synth, which is removed at the end.
"""

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measuring import MOST, judge, synth_folder

GOAL_MINUTES, GOAL_GB = 4.0, 3.0


def family(root_pid: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root_pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def resident_bytes(pid: int) -> int:
    """Proportional set size: memory shared with other processes counts in shares."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it ended meanwhile
    return 0


def main() -> int:
    """Run the recipe once and print what it took."""
    with synth_folder() as work:
        start, peak = time.monotonic(), 0
        with (work / "log").open("w") as log:
            recipe = subprocess.Popen(["./run.sh", *sys.argv[1:]], cwd=work, stdout=log, stderr=log)
            while recipe.poll() is None:
                peak = max(peak, sum(resident_bytes(pid) for pid in family(recipe.pid)))
                time.sleep(0.5)
        minutes = (time.monotonic() - start) / 60
        print((work / "log").read_text())
    return recipe.returncode or judge(
        ("minutes", minutes, MOST, GOAL_MINUTES), ("GB", peak / 1e9, MOST, GOAL_GB)
    )


if __name__ == "__main__":
    sys.exit(main())
