#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""x-vectors in length-sorted batches against one by one: speed, scores and trial lists.

Goal: 3 times faster, cosine scores of all pairs (centred) within 1e-4, and the same trial lists
byte for byte. Both ways take the same signals through steps/extract_xvectors.py's library, with
ecapa_mini (128 channels; random weights cost the same as trained ones), one thread. Lengths are
drawn as in three kinds of corpora. Process CPU time of extraction alone, best of several, and of
reading and features, which batches cannot share.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
import contextlib
import io
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
import numpy as np
import soundfile
import torch

from steps.audio import SAMPLE_RATE
from steps.score_pairs import main as score_pairs
from steps.speaker.config import read_config
from steps.speaker.encoders import NetworkEncoder
from steps.speaker.extraction import extract
from steps.speaker.networks import EncoderNetwork
from utils.archives import ArchiveWriter
from utils.memory import keep_freed_memory
from utils.tables import write_map

CONF = ROOT / "egs/TEMPLATE/conf/encoders/ecapa_mini.yaml"
GOAL_RATIO, GOAL_SCORE, ROUNDS = 3.0, 1e-4, 3
Vectors = dict[str, np.ndarray]
BATCH_SECONDS = 30.0  # default of steps/extract_xvectors.py
LENGTHS = {  # seconds from, to; utterances
    "digits": (0.4, 1.0, 200),
    "commands": (1.5, 5.0, 80),
    "read speech": (4.0, 16.0, 30),
}


def make_encoder() -> NetworkEncoder:
    """ecapa_mini with random weights."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the program does
    torch.manual_seed(0)
    config = read_config(CONF)
    return NetworkEncoder(config, EncoderNetwork(config))


def make_speech(folder: Path, shortest: float, longest: float, n: int) -> dict[str, str]:
    """wav.scp of noises with a spectrum each."""
    rng = np.random.default_rng(0)
    wav = {}
    for number, seconds in enumerate(rng.uniform(shortest, longest, n)):
        noise = rng.standard_normal(int(seconds * SAMPLE_RATE))
        shaped = np.convolve(noise, rng.standard_normal(32), mode="same")
        path = folder / f"s{number % 10}-{number:03d}.wav"
        soundfile.write(path, 0.1 * shaped / np.abs(shaped).max(), SAMPLE_RATE)
        wav[path.stem] = str(path)
    return wav


def best(call: Callable[[Callable[..., None]], object]) -> tuple[float, Vectors]:
    """Least process CPU time of several runs, and what they write."""
    least, vectors = math.inf, {}
    for _ in range(ROUNDS):
        start = time.process_time()
        call(vectors.__setitem__)
        least = min(least, time.process_time() - start)
    return least, vectors


def list_trials(folder: Path, vectors: Vectors, utt2spk: Path) -> bytes:
    """The list of all pairs, as the programs write it."""
    with ArchiveWriter(folder / "xvector") as writer:
        for utt, vector in vectors.items():
            writer.write(utt, vector)
    words = ["--backend", "cosine", "--utt2spk", str(utt2spk), str(folder), str(folder)]
    with contextlib.redirect_stdout(io.StringIO()):
        score_pairs([*words, str(folder / "trials"), str(folder / "scores")])
    return (folder / "trials").read_bytes()


def cosines(of: Vectors) -> np.ndarray:
    """Of all pairs; x-vectors of random weights lie close together, so their mean is subtracted."""
    vectors = np.stack([of[utt] for utt in sorted(of)]).astype(np.float64)
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors @ vectors.T)


def measure(name: str, encoder: NetworkEncoder, folder: Path) -> tuple[float, float, bool]:
    """Ratio, largest difference of a score, whether the lists are the same."""
    wav = make_speech(folder, *LENGTHS[name])
    utt2spk = {utt: utt.partition("-")[0] for utt in wav}
    write_map(folder / "utt2spk", utt2spk)
    slow, one = best(lambda write: extract(encoder, wav, utt2spk, 0.0, write))
    fast, many = best(lambda write: extract(encoder, wav, utt2spk, BATCH_SECONDS, write))
    start = time.process_time()
    for path in wav.values():
        encoder._features(soundfile.read(path, dtype="float32")[0])
    alone = time.process_time() - start  # reading and features, which batching cannot share
    off = float(np.abs(cosines(one) - cosines(many)).max())
    lists = {
        list_trials(folder / way, r, folder / "utt2spk") for way, r in (("1", one), ("n", many))
    }
    same = len(lists) == 1
    n = len(wav)
    print(
        f"{name}: {n} utterances of {LENGTHS[name][0]} to {LENGTHS[name][1]} s: one by one "
        f"{1e3 * slow / n:.2f} CPU-ms each, batches {1e3 * fast / n:.2f}: {slow / fast:.2f} times; "
        f"reading and features {1e3 * alone / n:.2f} of both; scores differ by {off:.1e} at most, "
        f"trial lists are {'the same' if same else 'NOT the same'}"
    )
    return slow / fast, off, same


def main() -> int:
    """Measure the three kinds."""
    encoder = make_encoder()
    found = []
    for name in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(name, encoder, Path(folder)))
    right = all(off <= GOAL_SCORE and same for _, off, same in found)
    fast = all(ratio >= GOAL_RATIO for ratio, _, _ in found)
    print(f"goal: scores within {GOAL_SCORE:g}, same lists: {'met' if right else 'MISSED'}")
    print(f"goal: {GOAL_RATIO:.0f} times for each kind: {'met' if fast else 'MISSED'}")
    return 0 if right and fast else 1


if __name__ == "__main__":
    sys.exit(main())
