#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""How late is speech that is protected while it comes in, and does it keep up?

Goal: blocks of 200 ms or less, a real-time factor below 1 on one core, and of McAdams the very
samples of the whole recording. Latency is block and look-ahead, by design, and the longest time
that a block took. `bn` normalises level, envelope and pitch over what it hears, so its samples are
not those of the whole recording: the distance of the log spectra is given. Speech: as
bench_mcadams.py.
"""

import os

os.environ["NUMBA_NUM_THREADS"] = "1"
import sys
import time

import numpy as np

from benchmarks.measuring import LEAST, MOST, ROOT, Judged, judge, load_speech
from steps.anonymisers.registry import Anonymiser, load_anonymiser
from steps.audio import SAMPLE_RATE
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.job import load_system
from steps.standalone.stream import Live, make_live
from steps.synthesis.f0 import compute_f0_stats
from steps.synthesis.world import extract_f0
from utils.arrays import Float64

KEY = VoiceKey("spk", ("stream", "speaker"), ("stream", "speaker"))
BLOCKS, LOOK_AHEAD, CONTEXT, SECONDS = (0.04, 0.1, 0.2), 0.1, 1.0, 12.0
GOAL = 1.0


def stream(live: Live, wave: Float64) -> tuple[Float64, list[float]]:
    """Output of a stream, and the seconds that the pushes took which gave some."""
    parts, took = [], []
    for start in range(0, len(wave), live.step):
        begun = time.perf_counter()
        parts.append(live.push(wave[start : start + live.step]))
        took.append(time.perf_counter() - begun)
    return np.concatenate([*parts, live.end()]), took


def apart(made: Float64, whole: Float64) -> float:
    """Mean distance of log spectra in dB, over frames of 32 ms with energy."""
    rows = [w[: len(w) // 512 * 512].reshape(-1, 512) * np.hanning(512) for w in (made, whole)]
    spectra = [np.abs(np.fft.rfft(row, axis=1)) ** 2 + 1e-8 for row in rows]
    loud = spectra[1].sum(axis=1) > 1e-3 * spectra[1].sum(axis=1).max()
    decibels = [10 * np.log10(one[loud]) for one in spectra]
    return float(np.abs(decibels[0] - decibels[1]).mean())


def report(name: str, system: Anonymiser, wave: Float64) -> list[Judged]:
    """A line for each block size; what has a goal: that all keep up, and McAdams is exact."""
    source = SourceSpeaker("speaker", f0=compute_f0_stats([extract_f0(wave)]))
    whole = system.transform(wave, KEY, source)[0]
    found: list[Judged] = []
    for block in BLOCKS:
        live = make_live(system, KEY, block=block, look_ahead=LOOK_AHEAD, context=CONTEXT)
        made, took = stream(live, wave)
        factor = sum(took) * SAMPLE_RATE / len(wave)
        design = live.delay / SAMPLE_RATE
        how = "equal" if (made == whole).all() else f"{apart(made, whole):.1f} dB apart"
        print(
            f"{name:<8} block {1000 * block:3.0f} ms  by design {1000 * design:3.0f} ms behind, "
            f"longest block {1000 * max(took):5.1f} ms, latency {1000 * (design + max(took)):5.0f} "
            f"ms  real-time factor {factor:.3f}  {how}"
        )
        what = f"{name}, {1000 * block:.0f} ms"
        if name == "mcadams":
            found.append((f"{what}: whether it is equal", float(how == "equal"), LEAST, 1))
        elif block >= 0.2:
            found.append((f"{what}: real-time factor", factor, MOST, GOAL))
    return found


def main() -> int:
    """Print what was measured; 1 where a goal is missed."""
    where, waves = load_speech(12)
    wave = np.concatenate(waves)[: round(SECONDS * SAMPLE_RATE)]
    print(f"{SECONDS:g} s of {where}, one core; look-ahead {LOOK_AHEAD:g} s, context {CONTEXT:g} s")
    system = load_system(ROOT / "models/bn", 0).anonymiser
    system.transform(
        wave[:16000], KEY, SourceSpeaker("x", f0=compute_f0_stats([]))
    )  # loads what it needs
    fixed = load_anonymiser(ROOT / "egs/TEMPLATE/conf/systems/mcadams.yaml")
    return judge(*report("mcadams", fixed, wave), *report("bn", system, wave))


if __name__ == "__main__":
    sys.exit(main())
