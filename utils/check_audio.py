#!/usr/bin/env python3
"""Open every audio file of a data directory once: write OUT/utt2dur (seconds), report rates.

All files that are missing, unreadable, without samples or not mono are listed, and the exit status
is 2. Files at another sampling rate than 16 kHz are counted: they will be resampled when read. A
utt2dur that DATA has is compared: durations that differ show that the audio was replaced. OUT may
be DATA itself.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, progress, run_program
from utils.commands import program
from utils.datachecks import SAMPLE_RATE, probe_audio
from utils.datadir import DataDir, load_data_dir
from utils.tables import write_map

TOLERANCE = 0.1  # seconds between a listed and a true duration


@dataclass(frozen=True)
class AudioReport:
    """seconds: utterance -> duration; rates: Hz -> number of files; problems: one line each."""

    seconds: dict[str, float]
    rates: Counter[int]
    problems: list[str]


def check_audio(
    data: DataDir, progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts
) -> AudioReport:
    """Open the header of each audio file of a data directory without segments.

    progress: wraps the utterances, to show how far it is.
    """
    listed = data.utt2dur or {}
    report = AudioReport({}, Counter(), [])
    for utt in progress(data.wav):
        path = data.wav[utt]
        info = probe_audio(path)
        where = f"{data.path / 'wav.scp'}: {utt}: audio file {path}"
        if info.problem:
            report.problems.append(f"{where} {info.problem}")
            continue
        report.rates[info.rate] += 1
        report.seconds[utt] = info.seconds
        if abs(listed.get(utt, info.seconds) - info.seconds) > TOLERANCE:
            report.problems.append(
                f"{where} lasts {info.seconds:.2f} s, but utt2dur says {listed[utt]:.2f} s"
            )
    return report


@program
def main(
    data_dir: Annotated[str, "The data directory", "DATA"],
    out: Annotated[Path, "The folder for utt2dur", "OUT"],
) -> None:  # fmt: skip
    data = load_data_dir(data_dir)
    report = check_audio(data, progress("check_audio"))
    for problem in report.problems:
        print(problem, file=sys.stderr)
    if report.problems:
        whole = re.sub(r"/split\d+/\d+$", "", data_dir)  # DATA may be a part, which is made anew
        raise UserError(
            f"{data_dir}: {len(report.problems)} of {len(data.wav)} audio files cannot be used "
            f"(listed above); replace them, or leave them out with: "
            f"utils/fix_data_dir.py --check-audio --allow-drop N {whole}"
        )
    write_map(out / "utt2dur", {utt: f"{s:.6f}" for utt, s in report.seconds.items()})
    hours = sum(report.seconds.values()) / 3600
    print(f"{data_dir}: {len(report.seconds)} files, {hours:.3f} h")
    for rate, count in sorted(report.rates.items()):
        note = "" if rate == SAMPLE_RATE else f", not {SAMPLE_RATE} Hz: resampled when read"
        print(f"{data_dir}: {count} files at {rate} Hz{note}")


if __name__ == "__main__":
    run_program(main)
