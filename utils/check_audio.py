#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Open every audio file of a data directory once: write OUT/utt2dur (seconds), report rates.

All files that are missing, unreadable, without samples or not mono are listed, and the exit status
is 2. Files at another sampling rate than 16 kHz are counted: they will be resampled when read. A
utt2dur that DATA has is compared: durations that differ show that the audio was replaced. OUT may
be DATA itself.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from utils.cli import UserError, progress
from utils.commands import program
from utils.datachecks import SAMPLE_RATE, probe_audio
from utils.datadir import load_data_dir
from utils.tables import write_map

TOLERANCE = 0.1  # seconds between a listed and a true duration


@program
def main(
    data_dir: Annotated[str, "The data directory", "DATA"],
    out: Annotated[Path, "The folder for utt2dur", "OUT"],
) -> None:  # fmt: skip
    data = load_data_dir(data_dir)
    listed = data.utt2dur or {}
    found = {utt: probe_audio(data.wav[utt]) for utt in progress("check_audio")(data.wav)}
    wrong = {}
    for utt, info in found.items():
        told = listed.get(utt, info.seconds)
        if info.problem:
            wrong[utt] = info.problem
        elif abs(told - info.seconds) > TOLERANCE:
            wrong[utt] = f"lasts {info.seconds:.2f} s, but utt2dur says {told:.2f} s"
    for utt, problem in wrong.items():
        where = f"{data.path / 'wav.scp'}: {utt}: audio file {data.wav[utt]}"
        print(f"{where} {problem}", file=sys.stderr)
    if wrong:
        whole = re.sub(r"/split\d+/\d+$", "", data_dir)  # DATA may be a part, which is made anew
        raise UserError(
            f"{data_dir}: {len(wrong)} of {len(data.wav)} audio files cannot be used "
            f"(listed above); replace them, or leave them out with: "
            f"utils/fix_data_dir.py --check-audio --allow-drop N {whole}"
        )
    write_map(out / "utt2dur", {utt: f"{info.seconds:.6f}" for utt, info in found.items()})
    hours = sum(info.seconds for info in found.values()) / 3600
    print(f"{data_dir}: {len(found)} files, {hours:.3f} h")
    for rate, count in sorted(Counter(info.rate for info in found.values()).items()):
        note = "" if rate == SAMPLE_RATE else f", not {SAMPLE_RATE} Hz: resampled when read"
        print(f"{data_dir}: {count} files at {rate} Hz{note}")
