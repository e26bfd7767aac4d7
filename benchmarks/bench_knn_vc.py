#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of kNN-VC on WORLD frames, all included, and of its matching against a loop over frames.

Goals: a real-time factor of at most 0.05 on one core (analysis, matching, synthesis), and matching
at least 10 times as fast as a Python loop over the source's frames that computes all distances of
a frame with NumPy; with the same neighbours. Process CPU time, best of several. Measured with a
voice of one utterance, and with one of 30000 frames (5 minutes, the most that is searched).
Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora, else synthetic.
"""

import os

os.environ["NUMBA_NUM_THREADS"] = "1"
import sys
from pathlib import Path

import numpy as np

from benchmarks.measuring import LEAST, MOST, Judged, cpu_seconds, judge, load_speech
from steps.synthesis.f0 import F0Stats, compute_f0_stats
from steps.synthesis.matching import FrameIndex, WorldConverter, average
from steps.synthesis.voices import PoolFrames, loud_frames, match_vectors
from steps.synthesis.world import analyse
from utils.arrays import Float64

RTF_GOAL, RATIO_GOAL = 0.05, 10.0
K, RUNS, N_FILES, LARGE = 4, 3, 12, 30000


class Voices:
    """Voices in memory, in place of a pool's folder: one of an utterance, one of 30000 frames."""

    folder = Path("memory")
    speakers = ("one utterance", f"{LARGE} frames")

    def __init__(self, waves: list[Float64]) -> None:
        contours, codes, match = [], [], []
        for wave in waves:
            source = analyse(wave)
            loud = loud_frames(source.envelope)
            contours.append(source.f0)
            codes.append(source.envelope[loud])
            match.append(match_vectors(source.envelope)[loud])
        self.stats = compute_f0_stats(contours)
        # What is missing to 30000 is made up of what there is, a little moved.
        moved = np.random.default_rng(0)
        n = -(-LARGE // sum(map(len, codes)))
        many_codes = np.concatenate(codes * n)[:LARGE]
        many_match = np.concatenate(match * n)[:LARGE]
        many_match = many_match + 0.1 * moved.standard_normal(many_match.shape)
        self.voices = dict(
            zip(
                self.speakers,
                (PoolFrames(codes[0], match[0]), PoolFrames(many_codes, many_match)),
                strict=True,
            )
        )

    def frames(self, speaker: str) -> PoolFrames:
        """Frames of a voice."""
        return self.voices[speaker]

    def f0(self, speaker: str) -> F0Stats:
        """The same for both."""
        return self.stats

    def gender(self, speaker: str) -> str:
        """The same for both."""
        return "f"


def plain_loop(queries: Float64, voice: PoolFrames) -> Float64:
    """One frame after the other: all distances, the k smallest, the mean of their codes."""
    out = np.empty((len(queries), voice.envelope.shape[1]))
    for t, query in enumerate(queries):
        distances = np.sum((voice.match - query) ** 2, axis=1)
        out[t] = voice.envelope[np.argpartition(distances, K - 1)[:K]].mean(axis=0)
    return out


def main() -> int:
    """Measure all in turn, print figures, and say by the exit status whether the goals were met."""
    name, waves = load_speech(2 * N_FILES)
    sources, targets = waves[::2], waves[1::2]
    seconds = sum(map(len, sources)) / 16000
    pool = Voices(targets)
    queries = np.concatenate([match_vectors(analyse(wave).envelope) for wave in sources])[:3000]
    print(f"speech: {len(sources)} files of {name}, {seconds:.1f} s in all; k {K}")
    judged: list[Judged] = []
    for speaker in pool.speakers:
        voice = pool.frames(speaker)
        converter = WorldConverter(pool, K, "linear")  # type: ignore[arg-type]

        def convert(converter: WorldConverter = converter, speaker: str = speaker) -> None:
            for wave in sources:
                converter.convert(wave, speaker, pool.stats)

        def batched(voice: PoolFrames = voice) -> Float64:
            return average(voice.envelope, FrameIndex(voice.match).search(queries, K))

        def loop(voice: PoolFrames = voice) -> Float64:
            return plain_loop(queries[:: 1 if len(voice.match) < LARGE else 20], voice)

        scale = len(queries) / len(loop())
        slow, fast = scale * cpu_seconds(loop, RUNS), cpu_seconds(batched, RUNS)
        difference = np.max(np.abs(batched()[:: round(scale)] - loop()))
        factor = cpu_seconds(convert, RUNS) / seconds
        print(f"voice of {speaker} ({len(voice.match)} frames):")
        print(
            f"  matching of {len(queries)} frames: loop {slow:.3f} CPU-s, batched {fast:.4f}, "
            f"largest difference of codes {difference:.2g}"
        )
        judged += [
            (f"{speaker}: real-time factor", factor, MOST, RTF_GOAL),
            (f"{speaker}: matching, times a loop", slow / fast, LEAST, RATIO_GOAL),
            (f"{speaker}: largest difference of codes", float(difference), MOST, 1e-9),
        ]
    return judge(*judged)


if __name__ == "__main__":
    sys.exit(main())
