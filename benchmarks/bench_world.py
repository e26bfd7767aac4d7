#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of WORLD analysis and synthesis as used here (DIO, StoneMask) against that with Harvest.

Goal: a real-time factor of at most 0.1 on one core for analysis and synthesis together, and at
least 2 times the speed of the reference: F0 by Harvest in the same range, the library's defaults,
nothing coded. Process CPU time, best of several. Also printed: how far copies agree with their
originals on voicing and pitch. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora,
else synthetic.
"""

import sys
from functools import partial

import numpy as np
import pyworld

from benchmarks.measuring import LEAST, MOST, cpu_seconds, judge, load_speech
from steps.synthesis.world import F0_RANGE, analyse, extract_f0, synthesise
from utils.arrays import Float64

GOAL, MAX_FACTOR = 2.0, 0.1
RUNS, N_FILES = 3, 6


def reference(wave: Float64) -> Float64:
    """Harvest, CheapTrick, D4C, synthesis."""
    f0, times = pyworld.harvest(wave, 16000, *F0_RANGE, 10.0)
    spectrum = pyworld.cheaptrick(wave, f0, times, 16000)
    noise = pyworld.d4c(wave, f0, times, 16000)
    copy: Float64 = pyworld.synthesize(f0, spectrum, noise, 16000, 10.0)
    return copy[: len(wave)]


def ours(wave: Float64) -> Float64:
    """The project's chain."""
    return synthesise(analyse(wave), len(wave))


def agreement(waves: list[Float64]) -> str:
    """Voicing and pitch of our copies against their originals, both by DIO and StoneMask."""
    before = np.concatenate([extract_f0(wave) for wave in waves])
    after = np.concatenate([extract_f0(ours(wave)) for wave in waves])
    both = (before > 0) & (after > 0)
    apart = np.abs(np.log(after[both] / before[both]))
    return (
        f"voicing differs in {np.mean((before > 0) != (after > 0)):.1%} of the frames; F0 by 20 % "
        f"and more in {np.mean(apart > np.log(1.2)):.2%}, median {np.median(apart):.2%}"
    )


def main() -> int:
    """Measure both in turn, print figures, and say by the exit status whether the goal was met."""
    name, waves = load_speech(N_FILES)
    seconds = sum(map(len, waves)) / 16000
    print(f"speech: {len(waves)} files of {name}, {seconds:.1f} s in all")
    analysis, theirs, fast = (
        cpu_seconds(partial(lambda f: [*map(f, waves)], f), RUNS)
        for f in (analyse, reference, ours)
    )
    print(f"Harvest:   real-time factor {theirs / seconds:.4f}")
    print(
        f"pseudovox: real-time factor {fast / seconds:.4f}, {analysis / seconds:.4f} of it analysis"
    )
    print(f"copies: {agreement(waves)}")
    return judge(
        ("times as fast as Harvest", theirs / fast, LEAST, GOAL),
        ("real-time factor", fast / seconds, MOST, MAX_FACTOR),
    )


if __name__ == "__main__":
    sys.exit(main())
