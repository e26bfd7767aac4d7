#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of the attacks of `make evidence` by the number of people, on vectors that are made.

Goal: 2,000 people in at most 2.5 times the CPU time of 1,000, in 15 CPU-minutes and 2 GB. Vectors
have the sizes of the encoders that come with the project; no audio is heard, which costs the same
for every recording. One process, a recording a person.

  benchmarks/bench_evidence.py [ENCODER...]      all if left out
"""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import MOST, cost_of, judge
from local.evidence import figures as evidence
from steps.standalone.stream import Recording

SIZES = {"pyannote": 256, "resemblyzer": 256, "content": 576, "level": 1, "energy": 37}
PEOPLE = 1000
MOST_RATIO, MOST_SECONDS, MOST_MEMORY = 2.5, 900.0, 2.0  # of CPU time, CPU-s, GB


def attack(n: int, encoders: Sequence[str]) -> evidence.Found:
    """Evidence on n people, whose protected halves lean towards the known ones."""
    rng, silent = np.random.default_rng(0), Recording(Path(), None)  # type: ignore[arg-type]
    leans = {evidence.KNOWN: 1.0, evidence.SAID: 1.0, evidence.PAIR: 0.2,
             evidence.PROTECTED: 0.2, evidence.AGAIN: 0.2}  # fmt: skip
    use = evidence.Use("we read good books", 4.0, "low"), evidence.Use("we read", 3.0, "high")
    pairs, heard = list[evidence.Pair](), dict[str, evidence.Heard]()
    for i in range(n):
        voices = {name: rng.standard_normal(SIZES[name]) for name in encoders}
        vectors = {
            name: {half: (lean * voice + rng.standard_normal(len(voice))).astype(np.float32)
                   for half, lean in leans.items()}
            for name, voice in voices.items()
        }  # fmt: skip
        pairs.append(evidence.Pair(f"{i:05d}", f"{i:05d}", silent, silent))
        heard[pairs[-1].name] = evidence.Heard(vectors, use)
    return evidence.assess(pairs, heard)


def main() -> int:
    """Measure and print; with a number before the encoders only attack so many people."""
    words = sys.argv[1:]
    if words and words[0].isdigit():
        logging.disable(logging.WARNING)
        attack(int(words[0]), words[1:])
        return 0
    (few, _), (many, kilobytes) = (
        cost_of(__file__, n, *(words or SIZES)) for n in (PEOPLE, 2 * PEOPLE)
    )
    print(f"{PEOPLE} and {2 * PEOPLE} people: {few:.0f} and {many:.0f} CPU-s")
    return judge(
        ("times the CPU time for twice the people", many / few, MOST, MOST_RATIO),
        ("CPU-s", many, MOST, MOST_SECONDS),
        ("GB", kilobytes / 1e6, MOST, MOST_MEMORY),
    )


if __name__ == "__main__":
    sys.exit(main())
