#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of taking speech of another system, beside reading its audio once.

Goal: at most 1 ms a file beside reading it once, for 10,000 files (--files). Files of 1 s are made;
taking them means to list the folder, find the suffix, match utterances, read each, and compare it
with the original in length, silence and samples. Process CPU time.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.measuring import MOST, cpu_seconds, judge
from steps.anonymisers.external import External, SpeechSettings, find_names, find_suffix
from steps.audio import read_audio
from steps.sources import FIRST, Resources, SourceSpeaker, SystemRun, VoiceKey
from utils.arrays import Float64

GOAL = 1e-3  # CPU-seconds a file


def make(folder: Path, n: int) -> dict[str, Float64]:
    """n files with a suffix; the originals in memory, by utterance."""
    rng = np.random.default_rng(0)
    wave = 0.1 * rng.standard_normal(16000)
    original = {}
    for number in range(n):
        utt = f"s{number % 100:03d}-{number:06d}"
        soundfile.write(folder / f"{utt}_anon.wav", wave / 2, 16000, subtype="PCM_16")
        original[utt] = wave
    return original


def take(folder: Path, original: dict[str, Float64]) -> None:
    """All that a recipe does with such a folder, but for writing."""
    suffix = find_suffix(folder, find_names(folder), original)
    run = SystemRun("bench", Resources(external=folder), FIRST)
    system = External(SpeechSettings("external", str(folder), suffix), run)
    for utt, wave in original.items():
        system.transform(wave, VoiceKey("utt", ("set", utt)), SourceSpeaker("s"))


def read(folder: Path, original: dict[str, Float64]) -> None:
    """Each file once."""
    for utt in original:
        read_audio(utt, str(folder / f"{utt}_anon.wav"))


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000, metavar="N")
    n = parser.parse_args().files
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original = make(folder, n)
        reading, taking = (cpu_seconds(partial(f, folder, original), 2) for f in (read, take))
    more = (taking - reading) / n
    print(f"{n} files: read once {reading:.2f} CPU-s, taken {taking:.2f} CPU-s")
    return judge(("CPU-s a file beside reading", more, MOST, GOAL))


if __name__ == "__main__":
    sys.exit(main())
