#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Take speech that another system protected: check it against the originals.

EXTERNAL is a data directory (wav.scp, utt2spk) with the original utterance and speaker ids. OUT
becomes a data directory with its audio and the tables of ORIGINAL. An utterance of ORIGINAL that is
missing, has another speaker, or has audio that cannot be used (each file is read) is an error that
names it; so is audio that is silent, over twice or under half as long as the original, or the
original itself. Others of EXTERNAL are left out, counted and named.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.anonymisers.external import check_speech
from steps.audio import read_audio
from utils.audiofiles import probe_audio
from utils.cli import LossError, UserError, make_parser, run_program
from utils.datadir import load_data_dir, write_data_dir
from utils.options import add_paths


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_paths(parser, "original", "external", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    original = load_data_dir(args.original)
    external = load_data_dir(args.external, need=("wav.scp", "utt2spk"))
    if "segments" in external.tables:
        raise UserError(f"{args.external}: has segments; cut the audio by utterance first")
    if missing := [utt for utt in original.utt2spk if utt not in external.wav]:
        raise LossError(
            f"{args.external}: {len(missing)} of {len(original.utt2spk)} utterances of "
            f"{args.original} are missing: {' '.join(missing[:5])}"
            f"{' ...' if len(missing) > 5 else ''}"
        )
    for utt, speaker in original.utt2spk.items():
        if external.utt2spk[utt] != speaker:
            raise UserError(
                f"{args.external / 'utt2spk'}: {utt} is of {external.utt2spk[utt]}, but of "
                f"{speaker} in {args.original}"
            )
    audio = {utt: external.wav[utt] for utt in original.utt2spk}
    problems = {utt: probe_audio(path).problem for utt, path in audio.items()}
    if unusable := [f"{utt}: {audio[utt]} {what}" for utt, what in problems.items() if what]:
        raise LossError(
            f"{args.external / 'wav.scp'}: {unusable[0]} ({len(unusable)} of {len(audio)} audio "
            "files cannot be used); make them again"
        )
    if "segments" not in original.tables:
        for utt, path in audio.items():
            made, wave = (read_audio(utt, name).samples for name in (path, original.wav[utt]))
            check_speech(f"{args.external / 'wav.scp'}: {utt}: {path}", made, wave)
    extra = [utt for utt in external.wav if utt not in original.utt2spk]
    tables = {k: dict(v) for k, v in original.tables.items() if k not in ("segments", "utt2dur")}
    tables["wav.scp"] = audio
    write_data_dir(args.out, tables)
    shown = f": {' '.join(extra[:5])}{' ...' if len(extra) > 5 else ''}" if extra else ""
    print(
        f"read {len(external.wav)} / written {len(original.utt2spk)} / left out {len(extra)} that "
        f"{args.original} does not have{shown}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
