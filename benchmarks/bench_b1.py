#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of the offline B1 on one core, all included, beside WORLD copy-synthesis in the same run.

Goal: a real-time factor of 0.1 or less. A new pseudo-speaker for every utterance (level utt), the
most work there is: the pseudo x-vector (cosine distances), the nearest voices read from disk, their
indices, WORLD analysis, mixing, F0, WORLD synthesis. Copy-synthesis is analysis and synthesis
alone. Process CPU time, best of several runs; loading the pool's tables is not counted. Speech:
LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora, else synthetic. The pool's voices are of
other files; their x-vectors are random numbers, which cost as much as real ones.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring import MOST, cpu_seconds, judge, speech_files
from steps.anonymisers.registry import load_anonymiser
from steps.audio import read_audio
from steps.sources import Resources, SourceSpeaker, make_keys
from steps.synthesis.f0 import compute_f0_stats, write_f0_stats
from steps.synthesis.world import analyse, extract_f0, pack, synthesise
from utils.archives import ArchiveWriter
from utils.arrays import Float64

GOAL, RUNS, N_FILES, N_VOICES, DIMENSION = 0.1, 3, 12, 48, 192
SYSTEM = """anonymiser: voice_conversion
generator: {name: farthest, distance: cosine, candidates: 32, averaged: 16}
level: utt
gender: random
f0: linear
"""


def make_pool(folder: Path, waves: list[Float64]) -> Path:
    """A pool of one file a voice, female and male in turn."""
    folder.mkdir()
    rng, stats = np.random.default_rng(0), {}
    with ArchiveWriter(folder / "world") as world, ArchiveWriter(folder / "spk_xvector") as vectors:
        for number, wave in enumerate(waves):
            frames = analyse(wave)
            world.write(f"v{number:02d}-1", pack(frames))
            vectors.write(f"v{number:02d}", rng.standard_normal(DIMENSION))
            stats[f"v{number:02d}"] = compute_f0_stats([frames.f0])
    write_f0_stats(folder, stats)
    (folder / "spk2utt").write_text("".join(f"{voice} {voice}-1\n" for voice in stats))
    genders = (f"{voice} {'fm'[number % 2]}\n" for number, voice in enumerate(stats))
    (folder / "spk2gender").write_text("".join(genders))
    return folder


def speakers(waves: list[Float64]) -> list[SourceSpeaker]:
    """Whoever speaks in each file, with an x-vector and F0 statistics."""
    rng = np.random.default_rng(1)
    return [
        SourceSpeaker(
            f"s{n}", None, rng.standard_normal(DIMENSION), compute_f0_stats([extract_f0(wave)])
        )
        for n, wave in enumerate(waves)
    ]


def b1_seconds(conf: Path, pool: Path, waves: list[Float64], sources: list[SourceSpeaker]) -> float:
    """Process CPU time to convert all files, with nothing kept from an earlier run."""
    system = load_anonymiser(conf, resources=Resources(pool, (pool,), f0=pool))
    keys = make_keys("utt", {source.speaker: source.speaker for source in sources}, "set")
    start = time.process_time()
    for source, wave in zip(sources, waves, strict=True):
        system.transform(wave, keys[source.speaker], source)
    return time.process_time() - start


def main() -> int:
    """Measure both in turn, print figures, and say by the exit status whether the goal was met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kind, files = speech_files(N_VOICES + N_FILES, folder)
        waves = [read_audio(path.stem, str(path)).samples for path in files]
        pool = make_pool(folder / "pool", waves[N_FILES:])
        waves = waves[:N_FILES]
        conf = folder / "system.yaml"
        conf.write_text(SYSTEM)
        sources = speakers(waves)
        copy, b1 = float("inf"), float("inf")
        for _ in range(RUNS):
            copy = min(copy, cpu_seconds(lambda: [synthesise(analyse(w), len(w)) for w in waves]))
            b1 = min(b1, b1_seconds(conf, pool, waves, sources))
    seconds = sum(map(len, waves)) / 16000
    factor = b1 / seconds
    print(f"speech: {len(waves)} files of {kind}, {seconds:.1f} s in all; {N_VOICES} voices")
    print(f"copy-synthesis: {copy:.3f} CPU-s, real-time factor {copy / seconds:.5f}")
    print(f"B1 (offline):   {b1:.3f} CPU-s, real-time factor {factor:.5f}")
    print(f"B1 / copy-synthesis: {b1 / copy:.2f}")
    return judge(("real-time factor", factor, MOST, GOAL))


if __name__ == "__main__":
    sys.exit(main())
