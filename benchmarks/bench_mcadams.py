#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of the McAdams transform against a plain loop over frames, with the same samples.

Goal: at least 5 times the speed on one core, and no sample further apart than 1e-6 of full scale.
The loop is what the challenges' scripts do: librosa's Burg LPC, numpy.roots, numpy.poly and
scipy.signal.lfilter, frame by frame. Process CPU time, best of several; compiling librosa is not
counted. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora, else synthetic.
"""

import os

os.environ["NUMBA_NUM_THREADS"] = "1"
import sys
from functools import partial

import librosa
import numpy as np
from scipy.signal import lfilter

from benchmarks.measuring import LEAST, MOST, cpu_seconds, judge, load_speech
from steps.anonymisers.mcadams import EPSILON, HOP, transform
from utils.arrays import Float64

GOAL, MAX_DIFFERENCE = 5.0, 1e-6
ALPHA, ORDER, RUNS, N_FILES = 0.8, 20, 5, 12


def plain_loop(wave: Float64) -> Float64:
    """One frame after the other, with a hop of zeros around the signal."""
    n = len(wave)
    wave = np.pad(wave, (HOP, -n % HOP + HOP)) + EPSILON
    hann = np.hanning(2 * HOP)
    window = np.sqrt(hann / (hann.sum() / HOP))
    out = np.zeros(len(wave))
    for start in range(0, len(wave) - 2 * HOP + 1, HOP):
        frame = window * wave[start : start + 2 * HOP]
        a = librosa.lpc(frame + EPSILON, order=ORDER)
        poles = np.roots(a)
        complex_ = poles.imag != 0
        angles = np.minimum(np.abs(np.angle(poles)) ** ALPHA, np.pi) * np.sign(poles.imag)
        poles[complex_] = np.abs(poles[complex_]) * np.exp(1j * angles[complex_])
        residual = lfilter(a, [1.0], frame)
        out[start : start + 2 * HOP] += window * lfilter([1.0], np.real(np.poly(poles)), residual)
    return out[HOP : HOP + n]


def batched(wave: Float64) -> Float64:
    """The project's transform."""
    return transform(wave, ALPHA).samples


def main() -> int:
    """Measure both in turn, print figures, and say by the exit status whether the goal was met."""
    name, waves = load_speech(N_FILES)
    seconds = sum(map(len, waves)) / 16000
    difference = 0.0
    for wave in waves:
        expected, got = plain_loop(wave), batched(wave)
        peaks = np.max(np.abs(expected)), np.max(np.abs(got))
        difference = max(difference, float(np.max(np.abs(expected / peaks[0] - got / peaks[1]))))
    loop, fast = (
        cpu_seconds(partial(lambda f: [*map(f, waves)], f), RUNS) for f in (plain_loop, batched)
    )
    print(f"speech: {len(waves)} files of {name}, {seconds:.1f} s in all; alpha {ALPHA}")
    print(f"plain loop: {loop:.3f} CPU-s, real-time factor {loop / seconds:.5f}")
    print(f"pseudovox:  {fast:.3f} CPU-s, real-time factor {fast / seconds:.5f}")
    return judge(
        ("times a loop", loop / fast, LEAST, GOAL),
        ("largest difference, of full scale", difference, MOST, MAX_DIFFERENCE),
    )


if __name__ == "__main__":
    sys.exit(main())
