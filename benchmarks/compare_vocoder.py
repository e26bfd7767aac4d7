#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What WORLD itself costs in quality: copies by two pitch trackers and two frame shifts.

Each variant analyses and speaks 18 utterances of LibriSpeech dev-clean; DistillMOS scores all. The
reference is the project's own copy (steps/synthesis/world.py: DIO, 10 ms). CPU seconds are of
analysis and synthesis. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora.

  benchmarks/compare_vocoder.py
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyworld

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
from steps.audio import SAMPLE_RATE, read_audio
from steps.quality.estimate import load_estimator
from steps.synthesis.world import CODE_DIM, F0_RANGE, analyse, synthesise
from utils.arrays import Float64

CORPORA = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared/corpora"))
EVERY, FFT = 5, 1024
THRESHOLD = {"dio": 0.5, "harvest": 0.85}  # of D4C: below it a voiced frame becomes noise


def copy(wave: Float64) -> Float64:
    """The project's own."""
    return synthesise(analyse(wave), len(wave))


def other_copy(wave: Float64, tracker: str, shift: float) -> Float64:
    """By a tracker, with frames every `shift` ms, coded as the project codes them."""
    low, high = F0_RANGE
    find = pyworld.dio if tracker == "dio" else pyworld.harvest
    f0, times = find(wave, SAMPLE_RATE, f0_floor=low, f0_ceil=high, frame_period=shift)
    f0 = pyworld.stonemask(wave, f0, times, SAMPLE_RATE)
    power = pyworld.cheaptrick(wave, f0, times, SAMPLE_RATE, fft_size=FFT)
    noise = pyworld.d4c(wave, f0, times, SAMPLE_RATE, THRESHOLD[tracker], FFT)
    codes = pyworld.code_spectral_envelope(power, SAMPLE_RATE, CODE_DIM)
    bands = pyworld.code_aperiodicity(noise, SAMPLE_RATE)
    power = pyworld.decode_spectral_envelope(codes, SAMPLE_RATE, FFT)
    noise = pyworld.decode_aperiodicity(bands, SAMPLE_RATE, FFT)
    made: Float64 = pyworld.synthesize(f0, power, noise, SAMPLE_RATE, shift)[: len(wave)]
    return made


def main() -> int:
    """Measure and print."""
    files = sorted((CORPORA / "librispeech/dev-clean").rglob("*.flac"))[::EVERY]
    if not files:
        sys.exit(f"{__doc__}\n{CORPORA}/librispeech/dev-clean: needed; set PSEUDOVOX_CORPORA")
    waves = [np.asarray(read_audio(path.stem, str(path)).samples, float) for path in files]
    seconds = sum(map(len, waves)) / SAMPLE_RATE
    estimate = load_estimator()
    ways: dict[str, Callable[[Float64], Float64]] = {"original": lambda wave: wave, "copy": copy}
    for tracker in ("dio", "harvest"):
        for shift in (10.0, 5.0):
            ways[f"{tracker}, {shift:g} ms"] = partial(other_copy, tracker=tracker, shift=shift)
    print(f"{len(waves)} utterances, {seconds:.1f} s\n{'':16}MOS   beside copy  real-time factor")
    scores: dict[str, float] = {}
    for name, way in ways.items():
        begin = time.process_time()
        made = [way(wave) for wave in waves]
        factor = (time.process_time() - begin) / seconds
        scores[name] = float(np.mean([estimate(np.clip(wave, -1, 1)).mos for wave in made]))
        beside = f"{scores[name] - scores['copy']:+.2f}" if "copy" in scores else ""
        print(f"{name:16}{scores[name]:.2f}  {beside:11}  {factor:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
