#!/usr/bin/env python3
"""Cost of the attacks of `make evidence` by the number of people, on vectors that are made.

Goal: 2,000 people in at most 2.5 times the CPU time of 1,000, in 15 CPU-minutes and 2 GB. Vectors
have the sizes of the encoders that come with the project; no audio is heard, which costs the same
for every recording. One process, a recording a person unless `--recordings` says more.
"""

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
import logging
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
import numpy as np

from benchmarks.measuring import MOST, cost_of, judge
from local.evidence import figures as evidence
from steps.standalone.stream import Recording

SIZES = {"pyannote": 256, "resemblyzer": 256, "content": 576, "level": 1, "energy": 37}
MOST_RATIO, MOST_SECONDS, MOST_MEMORY = 2.5, 900.0, 2.0  # of CPU time, CPU-s, GB


def attack(n_people: int, each: int) -> evidence.Found:
    """What attackers find of so many people, whose protected halves lean towards the known ones."""
    rng, silent = np.random.default_rng(0), Recording(Path(), None)  # type: ignore[arg-type]
    shape = n_people * each, sum(SIZES.values())
    voice = np.repeat(rng.standard_normal((n_people, shape[1])), each, axis=0)
    leans = {evidence.KNOWN: 1.0, evidence.SAID: 1.0, evidence.PAIR: 0.2,
             evidence.PROTECTED: 0.2, evidence.AGAIN: 0.2}  # fmt: skip
    ends = np.cumsum([*SIZES.values()])[:-1]
    halves = {
        half: np.split((lean * voice + rng.standard_normal(shape)).astype(np.float32), ends, axis=1)
        for half, lean in leans.items()
    }
    pairs = [evidence.Pair(f"{i:05d}", f"{i // each:05d}", silent, silent) for i in range(shape[0])]
    use = evidence.Use("we read good books", 4.0, "low"), evidence.Use("we read", 3.0, "high")
    return evidence.assess(pairs, {
        pair.name: evidence.Heard({
            name: {half: own[place][i] for half, own in halves.items()}
            for place, name in enumerate(SIZES)
        }, use)
        for i, pair in enumerate(pairs)
    })  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1000, help="and twice as many")
    parser.add_argument("--recordings", type=int, default=1, help="of each person")
    parser.add_argument("--alone", action="store_true", help="these people alone, for a profile")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if args.alone:
        attack(args.people, args.recordings)
        return 0
    words = Path(__file__), "--alone", "--recordings", args.recordings
    few, _ = cost_of(*words, "--people", args.people)
    many, kilobytes = cost_of(*words, "--people", 2 * args.people)
    print(f"{args.people} and {2 * args.people} people: {few:.0f} and {many:.0f} CPU-s")
    return judge(
        ("times the CPU time for twice the people", many / few, MOST, MOST_RATIO),
        ("CPU-s", many, MOST, MOST_SECONDS),
        ("GB", kilobytes / 1e6, MOST, MOST_MEMORY),
    )


if __name__ == "__main__":
    sys.exit(main())
