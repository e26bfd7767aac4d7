#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""CPU time of stage 10 (utility) of egs/synth: words by PocketSphinx, and prosody, of b2 and b2r.

Goal: under 3 minutes on 2 cores, that is 6 CPU-minutes, with all 40 speakers of the evaluation. The
reference is the length of the speech that is decoded: the trials, original and protected by each
system. --speakers: fewer, for a figure that is extrapolated by the number of speakers; it is too
high, for what programs take to start is then also multiplied. The corpus is made and protected in a
new folder beside egs/synth, which is removed at the end. PocketSphinx is of little use on this
speech (docs/words.md), and the recipe leaves it out: what it does by itself is the first line.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import MOST, Judged, judge, synth_folder
from utils.datadir import load_data_dir

SPEAKERS, CORES, GOAL_MINUTES, CONDITIONS = 40, 2, 3.0, 3


def cpu_seconds(folder: Path, first: int, last: int, *options: str) -> float:
    """CPU time of some stages of the recipe, all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    stages = ["--stage", str(first), "--stop-stage", str(last)]
    with (folder / "log").open("a") as log:
        done = subprocess.run(["./run.sh", *stages, *options], cwd=folder, stdout=log, stderr=log)
    if done.returncode:
        sys.exit((folder / "log").read_text())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> int:
    """Make speech, protect it, and measure the stage with prosody alone, then with words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--speakers", type=int, default=SPEAKERS, help="The number of evaluated speakers, even"
    )
    speakers = parser.parse_args().speakers
    made = f"--eval-speakers {speakers} --train-speakers {8 * speakers}"
    with synth_folder() as work:
        cpu_seconds(work, 0, 0, f"--prepare-options={made}")
        cpu_seconds(work, 4, 5)
        prosody = cpu_seconds(work, 10, 10, "--prosody", "true", "--asr=")
        words = cpu_seconds(work, 10, 10, "--prosody", "true", "--asr", "pocketsphinx")
        trials = (load_data_dir(work / f"data/synth_test_trials_{g}") for g in "fm")
        speech = CONDITIONS * sum(sum((data.utt2dur or {}).values()) for data in trials)
        for log in sorted(work.glob("exp/metrics/*/utility.pocketsphinx/*/*/log/*.log")):
            rates = [line for line in log.read_text().splitlines() if line.startswith("%WER")]
            print(log.parents[1].relative_to(work / "exp/metrics"), *rates)
    judged: list[Judged] = []
    for name, cpu in (("prosody", prosody), ("prosody and words", prosody + words)):
        minutes = cpu * SPEAKERS / speakers / CORES / 60
        judged.append((f"minutes on {CORES} cores, {name}", minutes, MOST, GOAL_MINUTES))
        how = "" if speakers == SPEAKERS else f", extrapolated from {speakers} speakers"
        print(
            f"{name}: {cpu:.1f} CPU-s, {cpu / speech:.3f} a second of {speech:.0f} s of speech; "
            f"{minutes:.2f} minutes on {CORES} cores{how}"
        )
    return judge(*judged)


if __name__ == "__main__":
    sys.exit(main())
