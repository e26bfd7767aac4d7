#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""x-vectors one by one: what it costs that they do not depend on how a corpus is divided.

The library of steps/extract_xvectors.py takes each utterance alone, with ecapa_mini (128 channels;
random weights cost the same as trained ones), one thread. The reference has the same features, and
its network takes batches of 30 s, cut to a common length (so it does a little less).
Lengths are drawn as in three kinds of corpora. Process CPU time, best of several. Goal: at most 1.5
times the reference for speech that is read.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile
import torch

from benchmarks.measuring import MOST, ROOT, cpu_seconds, judge
from steps.audio import SAMPLE_RATE, read_audio
from steps.speaker.config import EncoderConfig
from steps.speaker.encoders import NetworkEncoder, extract
from steps.speaker.network import EncoderNetwork
from steps.training.settings import read_config
from utils.cli import keep_freed_memory

CONF = ROOT / "egs/TEMPLATE/conf/encoders/ecapa_mini.yaml"
GOAL_KIND, GOAL_RATIO, ROUNDS = "read speech", 1.5, 3
BATCH_FRAMES = 3000
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
    config = read_config(EncoderConfig, CONF)
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


@torch.inference_mode()
def in_batches(encoder: NetworkEncoder, wav: dict[str, str]) -> None:
    """The reference."""
    features = [encoder._features(read_audio(utt, path).samples) for utt, path in wav.items()]
    batch: list[torch.Tensor] = []
    for one in [*sorted(features, key=len), None]:
        if batch and (one is None or len(one) * (len(batch) + 1) > BATCH_FRAMES):
            encoder.network.eval()(torch.stack([f[: len(batch[0])] for f in batch]))
            batch = []
        batch += [] if one is None else [one]


def measure(name: str, encoder: NetworkEncoder, folder: Path) -> float:
    """Ratio to the reference."""
    wav = make_speech(folder, *LENGTHS[name])
    utt2spk = {utt: utt.partition("-")[0] for utt in wav}
    alone = cpu_seconds(lambda: extract(encoder, wav, utt2spk, lambda *_: None), ROUNDS)
    together = cpu_seconds(lambda: in_batches(encoder, wav), ROUNDS)
    n = len(wav)
    print(
        f"{name}: {n} utterances of {LENGTHS[name][0]} to {LENGTHS[name][1]} s: one by one "
        f"{1e3 * alone / n:.2f} CPU-ms each, in batches {1e3 * together / n:.2f}: "
        f"{alone / together:.2f} times"
    )
    return alone / together


def main() -> int:
    """Measure the three kinds."""
    encoder = make_encoder()
    ratios = {}
    for name in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            ratios[name] = measure(name, encoder, Path(folder))
    return judge((f"times batches, for {GOAL_KIND}", ratios[GOAL_KIND], MOST, GOAL_RATIO))


if __name__ == "__main__":
    sys.exit(main())
