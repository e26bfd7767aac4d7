#!/usr/bin/env python3
"""Speed of WORLD analysis and synthesis as used here (DIO, StoneMask) against that with Harvest.

Goal: a real-time factor of at most 0.1 on one core for analysis and synthesis together, and at
least 2 times the speed of the reference: F0 by Harvest in the same range, the library's defaults,
nothing coded. Process CPU time, best of several. Also printed: how far copies agree with their
originals on voicing and pitch. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora,
else synthetic.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
import numpy as np
import pyworld

from steps.audio import read_audio
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


def load_speech() -> tuple[str, list[Float64]]:
    """What was found, and its samples at 16 kHz."""
    corpora = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared" / "corpora"))
    real = sorted((corpora / "librispeech").rglob("*.flac"))
    real = real[:: max(1, len(real) // N_FILES)][:N_FILES]
    with tempfile.TemporaryDirectory() as folder:
        if not real:
            command = [sys.executable, ROOT / "steps/make_synthetic_corpus.py", "--speakers", "4"]
            command += ["--utterances", "3", f"{folder}/audio", f"{folder}/data"]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        files = real or sorted(Path(folder).rglob("*.wav"))
        waves = [read_audio(path.stem, str(path)).samples for path in files]
    return "LibriSpeech" if real else "synthetic speech", waves


def cpu_seconds(function: Callable[[Float64], object], waves: list[Float64]) -> float:
    """Process CPU time for all files, best of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        for wave in waves:
            function(wave)
        best = min(best, time.process_time() - start)
    return best


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
    name, waves = load_speech()
    seconds = sum(map(len, waves)) / 16000
    print(f"speech: {len(waves)} files of {name}, {seconds:.1f} s in all")
    analysis = cpu_seconds(analyse, waves)
    theirs, fast = cpu_seconds(reference, waves), cpu_seconds(ours, waves)
    print(f"Harvest:   real-time factor {theirs / seconds:.4f}")
    print(
        f"pseudovox: real-time factor {fast / seconds:.4f}, {analysis / seconds:.4f} of it analysis"
    )
    print(f"copies: {agreement(waves)}")
    print(f"ratio: {theirs / fast:.2f} (goal: at least {GOAL:g}; factor at most {MAX_FACTOR:g})")
    return 0 if theirs / fast >= GOAL and fast / seconds <= MAX_FACTOR else 1


if __name__ == "__main__":
    sys.exit(main())
