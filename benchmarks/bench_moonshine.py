#!/usr/bin/env python3
"""Speed and memory of recognition by Moonshine on one core, beside PocketSphinx on the same speech.

Goal: a real-time factor of at most 0.06 and a peak of 500 MB, the 30 s that it hears at most at
once among the speech. Process CPU time; encoder and decoder apart by the clock, which says
something on a quiet machine only. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora,
else two minutes of synthetic speakers.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
import numpy as np

from steps.asr.engines import LONGEST, MoonshineRecogniser
from steps.asr.recognisers import Recogniser
from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Float64
from utils.tables import read_map

GOAL, MEMORY, N_FILES = 0.06, 500, 20


def load_speech() -> dict[str, Float64]:
    """Signals at 16 kHz, the last of them as long as can be heard at once."""
    corpora = Path(os.environ.get("PSEUDOVOX_CORPORA", ROOT.parent / "shared" / "corpora"))
    files = sorted((corpora / "librispeech").rglob("*.flac"))
    with tempfile.TemporaryDirectory() as name:
        if not files:
            program = [sys.executable, str(ROOT / "steps/make_synthetic_corpus.py")]
            options = ["--speakers", "8", "--utterances", "5", f"{name}/audio", f"{name}/data"]
            subprocess.run([*program, *options], check=True, stdout=subprocess.DEVNULL)
            files = [Path(path) for path in read_map(Path(name) / "data/wav.scp").values()]
        chosen = files[:: max(1, len(files) // N_FILES)][:N_FILES]
        waves = {path.stem: read_audio(path.stem, str(path)).samples for path in chosen}
    joined = np.concatenate(list(waves.values()))
    waves["long"] = joined[: round((LONGEST - 1) * SAMPLE_RATE)]
    return waves


def cpu_seconds(recogniser: Recogniser, waves: dict[str, Float64]) -> float:
    """Process CPU time of all."""
    start = time.process_time()
    for utt, samples in waves.items():
        recogniser.recognise(utt, samples)
    return time.process_time() - start


def main() -> int:
    """Recognise, compare, print."""
    waves = load_speech()
    audio = sum(map(len, waves.values())) / SAMPLE_RATE
    moonshine = MoonshineRecogniser()
    moonshine.recognise("warm", waves["long"][:SAMPLE_RATE])
    cpu = cpu_seconds(moonshine, waves)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    heard = [moonshine.recognise(utt, samples).seconds for utt, samples in waves.items()]
    parts = {name: sum(own[name] for own in heard) / audio for name in ("encoder", "decoder")}
    from steps.asr.engines import PocketSphinx

    reference = cpu_seconds(PocketSphinx(), waves)
    print(
        f"{audio:.0f} s of speech: real-time factor {cpu / audio:.4f} (goal {GOAL}), by the clock "
        f"encoder {parts['encoder']:.4f}, decoder {parts['decoder']:.4f}; peak {megabytes:.0f} MB "
        f"(goal {MEMORY}); PocketSphinx {reference / audio:.4f}, {reference / cpu:.1f} times that"
    )
    return 0 if cpu / audio <= GOAL and megabytes <= MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
