#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed and memory of recognition by Moonshine on one core, beside PocketSphinx on the same speech.

Goal: a real-time factor of at most 0.06 and a peak of 500 MB, the 30 s that it hears at most at
once among the speech. Process CPU time; encoder and decoder apart by the clock, which says
something on a quiet machine only. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora,
else two minutes of synthetic speakers.
"""

import resource
import sys

import numpy as np

from benchmarks.measuring import MOST, cpu_seconds, judge, load_speech
from steps.asr.engines import LONGEST, MoonshineRecogniser
from steps.asr.recognisers import Recogniser
from steps.audio import SAMPLE_RATE
from utils.arrays import Float64

GOAL, MEMORY, N_FILES = 0.06, 500, 20


def signals() -> dict[str, Float64]:
    """Signals at 16 kHz, the last of them as long as can be heard at once."""
    waves = {str(number): wave for number, wave in enumerate(load_speech(N_FILES)[1])}
    joined = np.concatenate(list(waves.values()))
    return {**waves, "long": joined[: round((LONGEST - 1) * SAMPLE_RATE)]}


def recognise(recogniser: Recogniser, waves: dict[str, Float64]) -> None:
    """All of them."""
    for utt, samples in waves.items():
        recogniser.recognise(utt, samples)


def main() -> int:
    """Recognise, compare, print."""
    waves = signals()
    audio = sum(map(len, waves.values())) / SAMPLE_RATE
    moonshine = MoonshineRecogniser()
    moonshine.recognise("warm", waves["long"][:SAMPLE_RATE])
    cpu = cpu_seconds(lambda: recognise(moonshine, waves))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    heard = [moonshine.recognise(utt, samples).seconds for utt, samples in waves.items()]
    parts = {name: sum(own[name] for own in heard) / audio for name in ("encoder", "decoder")}
    from steps.asr.engines import PocketSphinx

    sphinx = PocketSphinx()
    reference = cpu_seconds(lambda: recognise(sphinx, waves))
    print(
        f"{audio:.0f} s of speech: by the clock "
        f"encoder {parts['encoder']:.4f}, decoder {parts['decoder']:.4f}; "
        f"PocketSphinx {reference / audio:.4f}, {reference / cpu:.1f} times that"
    )
    return judge(("real-time factor", cpu / audio, MOST, GOAL), ("MB", megabytes, MOST, MEMORY))


if __name__ == "__main__":
    sys.exit(main())
