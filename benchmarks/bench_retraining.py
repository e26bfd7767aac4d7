#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""CPU time of what an informed attacker retrains: ecapa_mini from scratch, fine-tuned, back end.

Goal: an encoder (ECAPA, 128 channels) in at most 6 CPU-minutes. CPU time of steps/train_encoder.py
with its workers, on made-up speech of 100 speakers. On a busy machine CPU time also grows, so the
speed of a plain product stands beside it. By default two short trainings are run, and
their difference gives the time of a step, from which that of the whole is extrapolated (what is
printed says so; validation on the way is left out); --full runs the whole.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.measuring import MOST, ROOT, cost_of, judge
from steps.audio import SAMPLE_RATE
from steps.speaker.config import EncoderConfig, fine_tuned
from steps.training.settings import read_config
from utils.archives import ArchiveWriter
from utils.tables import write_map

CONF = ROOT / "egs/TEMPLATE/conf/encoders/ecapa_mini.yaml"
SPEAKERS, UTTERANCES, SECONDS = 100, 4, 6.0
SHORT, LONG, GOAL_MINUTES = 20, 60, 6.0


def make_data(folder: Path) -> None:
    """A data directory of noises, a spectrum a speaker."""
    rng = np.random.default_rng(0)
    wav, utt2spk = {}, {}
    for speaker in range(SPEAKERS):
        spectrum = rng.standard_normal(32)
        for number in range(UTTERANCES):
            utt = f"s{speaker:03d}-{number}"
            noise = rng.standard_normal(int(SECONDS * SAMPLE_RATE))
            shaped = np.convolve(noise, spectrum, mode="same")
            soundfile.write(folder / f"{utt}.wav", 0.1 * shaped / np.abs(shaped).max(), SAMPLE_RATE)
            wav[utt], utt2spk[utt] = str(folder / f"{utt}.wav"), f"s{speaker:03d}"
    write_map(folder / "wav.scp", wav)
    write_map(folder / "utt2spk", utt2spk)
    with ArchiveWriter(folder / "xvectors/xvector") as writer:
        for utt in utt2spk:
            writer.write(utt, rng.standard_normal(192).astype(np.float32))


def cpu_seconds(program: str, *words: object) -> float:
    """CPU time of a program and of the processes that it starts."""
    return cost_of(ROOT / "steps" / program, *words)[0]


def whole(name: str, data: Path, out: Path, steps: int, options: list[str]) -> float:
    """CPU minutes of a training of so many steps, extrapolated from two short ones."""
    short, long = (
        cpu_seconds("train_encoder.py", *options, "--steps", n, CONF, data, out / f"{name}_{n}")
        for n in (SHORT, LONG)
    )
    step = (long - short) / (LONG - SHORT)
    minutes = (short + (steps - SHORT) * step) / 60
    print(
        f"{name}: {step:.3f} CPU-s a step ({SHORT} steps {short:.1f}, {LONG} steps {long:.1f}); "
        f"extrapolated to {steps} steps: {minutes:.2f} CPU-minutes"
    )
    return minutes


def product_rate() -> float:
    """GFLOP a CPU-second of a float32 product: what the machine gives one thread just now."""
    x = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    x @ x
    start = time.process_time()
    for _ in range(10):
        x @ x
    return 10 * 2 * 1024**3 / (time.process_time() - start) / 1e9


def main() -> int:
    """Measure the three ways to train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="train all steps, not some of them")
    full = parser.parse_args().full
    config = read_config(EncoderConfig, CONF)
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        make_data(data)
        print(f"reference: float32 products, {product_rate():.0f} GFLOP a CPU-second")
        if full:
            spent = cpu_seconds("train_encoder.py", CONF, data, data / "whole") / 60
            print(f"scratch, {config.training.steps} steps: {spent:.2f} CPU-minutes")
            base = data / "whole"
        else:
            spent = whole("scratch", data, data, config.training.steps, [])
            base = data / f"scratch_{LONG}"
        steps = fine_tuned(config).training.steps
        whole("finetuned", data, data, steps, ["--init-from", str(base)])
        backend = cpu_seconds("train_backend.py", data / "xvectors", data, data / "backend")
        print(f"backend (LDA and PLDA of {SPEAKERS * UTTERANCES} x-vectors): {backend:.1f} CPU-s")
    print(f"{time.time() - start:.0f} s of wall time")
    return judge(("CPU-minutes for an encoder", spent, MOST, GOAL_MINUTES))


if __name__ == "__main__":
    sys.exit(main())
