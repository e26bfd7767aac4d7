#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of WORLD itself in words and quality: the project's two kinds of frames, and Harvest; and
what is lost where frames of 5 ms are only voiced where DIO says so, or have a smoother envelope.

Each way analyses and speaks LibriSpeech dev-clean. Words: by Moonshine, of all utterances, after
Whisper's normaliser. MOS: by DistillMOS, of every fifth. The reference is `copy` (frames of 10 ms,
DIO's voicing); `copy_fine` are the frames that bn makes (5 ms, a pitch in all). CPU seconds are of
analysis and synthesis. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora.

  benchmarks/compare_vocoder.py [WAY ...]

WAY: one that is measured beside `copy`; all without any.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyworld
from scipy.ndimage import convolve1d

from benchmarks.measuring import CORPORA
from local.metrics.utility import align
from steps.asr.engines import MoonshineRecogniser
from steps.asr.language import normalise_english
from steps.audio import SAMPLE_RATE, read_audio
from steps.quality import load_estimator
from steps.synthesis.world import (
    F0_RANGE,
    FINE,
    WorldFrames,
    analyse,
    analyse_finely,
    extract_f0,
    spectrum_code,
    synthesise,
)
from utils.arrays import Float64

EVERY, FFT = 5, 1024
THRESHOLD = 0.85  # of D4C: below it a voiced frame becomes noise


def copy(wave: Float64, analysis: Callable[[Float64], WorldFrames]) -> Float64:
    """The project's own."""
    return synthesise(analysis(wave), len(wave))


def by_harvest(wave: Float64, shift: float) -> WorldFrames:
    """Frames every `shift` seconds, coded as the project codes them."""
    low, high = F0_RANGE
    f0, times = pyworld.harvest(wave, SAMPLE_RATE, low, high, shift * 1000)
    f0 = pyworld.stonemask(wave, f0, times, SAMPLE_RATE)
    power = pyworld.cheaptrick(wave, f0, times, SAMPLE_RATE, fft_size=FFT)
    noise = pyworld.d4c(wave, f0, times, SAMPLE_RATE, THRESHOLD, FFT)
    bands = pyworld.code_aperiodicity(noise, SAMPLE_RATE)
    return WorldFrames(f0, spectrum_code(power), bands, shift)


def voiced_by_dio(wave: Float64) -> WorldFrames:
    """`copy_fine` without a pitch where DIO finds none."""
    frames = analyse_finely(wave)
    voiced = np.repeat(extract_f0(wave) > 0, FINE)[: len(frames)]
    return replace(frames, f0=frames.f0 * np.pad(voiced, (0, len(frames) - len(voiced))))


def smoothed(wave: Float64, n_frames: int) -> WorldFrames:
    """`copy_fine` whose envelope is smoothed over so many frames (an odd number)."""
    frames = analyse_finely(wave)
    window = np.hanning(n_frames + 2)[1:-1]
    made = convolve1d(frames.envelope, window / window.sum(), axis=0, mode="nearest")
    return replace(frames, envelope=made)


def coarse(wave: Float64, n_codes: int) -> WorldFrames:
    """`copy_fine` with the mean of the utterance in place of all but the first codes."""
    frames = analyse_finely(wave)
    envelope = frames.envelope.copy()
    envelope[:, n_codes:] = envelope[:, n_codes:].mean(axis=0)
    return replace(frames, envelope=envelope)


WAYS: dict[str, Callable[[Float64], Float64]] = {
    "original": lambda wave: wave,
    "copy": partial(copy, analysis=analyse),
    "copy_fine": partial(copy, analysis=analyse_finely),
    "voiced by DIO": partial(copy, analysis=voiced_by_dio),
    "over 50 ms": partial(copy, analysis=partial(smoothed, n_frames=9)),
    "over 100 ms": partial(copy, analysis=partial(smoothed, n_frames=19)),
    "14 codes": partial(copy, analysis=partial(coarse, n_codes=14)),
    "Harvest, 10 ms": partial(copy, analysis=partial(by_harvest, shift=0.010)),
    "Harvest, 5 ms": partial(copy, analysis=partial(by_harvest, shift=0.005)),
}


def transcripts(folder: Path) -> dict[str, list[str]]:
    """Normalised words by utterance."""
    lines = (line for path in folder.rglob("*.trans.txt") for line in path.open())
    return {utt: normalise_english(text) for utt, _, text in (x.partition(" ") for x in lines)}


def main() -> int:
    """Measure and print."""
    chosen = list(dict.fromkeys(["copy", *sys.argv[1:]])) if sys.argv[1:] else list(WAYS)
    if unknown := [name for name in chosen if name not in WAYS]:
        sys.exit(f"{unknown[0]}: no way; known are {', '.join(WAYS)}")
    folder = CORPORA / "librispeech/dev-clean"
    files = sorted(folder.rglob("*.flac"))
    if not files:
        sys.exit(f"{__doc__}\n{folder}: needed; set PSEUDOVOX_CORPORA")
    waves = {x.stem: np.asarray(read_audio(x.stem, str(x)).samples, float) for x in files}
    seconds = sum(map(len, waves.values())) / SAMPLE_RATE
    wanted, recogniser, estimate = transcripts(folder), MoonshineRecogniser(), load_estimator()
    n_words = sum(len(wanted[utt]) for utt in waves)
    print(f"{len(waves)} utterances, {seconds:.1f} s, {n_words} words")
    print(f"{'':16}words wrong (%)  beside copy  MOS   beside copy  real-time factor")
    scores: dict[str, tuple[float, float]] = {}
    for name in chosen:
        way = WAYS[name]
        begin = time.process_time()
        made = {utt: np.clip(way(wave), -1, 1) for utt, wave in waves.items()}
        factor = (time.process_time() - begin) / seconds
        heard = {u: normalise_english(recogniser.recognise(u, x).words) for u, x in made.items()}
        wrong = 100 * sum(sum(align(wanted[u], heard[u])) for u in waves) / n_words
        mos = float(np.mean([estimate(x).mos for x in list(made.values())[::EVERY]]))
        scores[name] = wrong, mos
        of = scores.get("copy", (np.nan, np.nan))
        print(
            f"{name:16}{wrong:15.2f}  {wrong / of[0]:11.2f}  {mos:.2f}  {mos - of[1]:+11.2f}  "
            f"{factor:16.3f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
