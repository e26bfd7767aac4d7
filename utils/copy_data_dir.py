#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copy a data directory, with other ids if wished: affixes, or utterances named after speakers.

Where utterance ids change, utt2uniq (new id, original id) is written; recording ids stay where
there are segments. Trials are renamed alike, their enrolled speakers with the speakers' affixes. If
speaker ids began their utterance ids before, they must still do so after: --spk-prefix needs the
same --utt-prefix.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.datadir import DataDir, Tables, Trial, load_data_dir, other_files, write_data_dir
from utils.datafiles import FILES

Rename = Callable[[str], str]


def renamed(
    data: DataDir, utts: Mapping[str, str], speaker: Rename
) -> tuple[Tables, list[Trial] | None]:
    """The tables under other ids: `utts` maps utterances, `speaker` gives a speaker's new id."""
    segmented = "segments" in data.tables

    def key_of(name: str, key: str) -> str:
        kind = FILES[name].key
        if kind == "speaker":
            return speaker(key)
        return key if kind == "recording" and segmented else utts[key]

    tables = {
        name: {key_of(name, key): value for key, value in table.items()}
        for name, table in data.tables.items()
    }
    tables["utt2spk"] = {utts[utt]: speaker(spk) for utt, spk in data.utt2spk.items()}
    if any(new != old for old, new in utts.items()):
        originals = data.tables.get("utt2uniq", {})
        tables["utt2uniq"] = {new: originals.get(old, old) for old, new in utts.items()}
    trials = data.trials and [
        (speaker(model), utts[utt], label) for model, utt, label in data.trials
    ]
    return tables, trials


def check_names(data: DataDir, tables: Tables) -> None:
    """UserError where two ids became one, or a speaker no longer begins its utterances' ids."""
    if len(tables["utt2spk"]) != len(data.utt2spk):
        raise UserError(f"{data.path}: two utterances would get the same id")
    if all(utt.startswith(spk) for utt, spk in data.utt2spk.items()):
        for utt, spk in tables["utt2spk"].items():
            if not utt.startswith(spk):
                raise UserError(
                    f"{data.path}: speaker {spk} would not begin its utterance {utt}; give "
                    "--utt-prefix what --spk-prefix has, or use --spk-as-prefix"
                )


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__)
    for kind, words in (("utt", "utterance"), ("spk", "speaker")):
        for side in ("prefix", "suffix"):
            parser.add_argument(
                f"--{kind}-{side}", metavar="TEXT", default="",
                help=f"The {side} that {words} ids get",
            )  # fmt: skip
    parser.add_argument(
        "--spk-as-prefix", action="store_true",
        help="Put `<speaker>-` before utterance ids that do not begin with their speaker",
    )  # fmt: skip
    parser.add_argument("source", metavar="SRC", help="data directory")
    parser.add_argument("target", metavar="DST", type=Path, help="data directory to make")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    data = load_data_dir(args.source, need=("utt2spk",), allow_segments=True)
    if args.target.resolve() == data.path.resolve():
        raise UserError(f"{args.target}: is the source itself; give another folder")

    def speaker(spk: str) -> str:
        return f"{args.spk_prefix}{spk}{args.spk_suffix}"

    utts = {utt: f"{args.utt_prefix}{utt}{args.utt_suffix}" for utt in data.utt2spk}
    if args.spk_as_prefix:
        for utt, spk in data.utt2spk.items():
            if not utts[utt].startswith(speaker(spk)):
                utts[utt] = f"{speaker(spk)}-{utts[utt]}"
    tables, trials = renamed(data, utts, speaker)
    check_names(data, tables)
    write_data_dir(args.target, tables, trials)
    load_data_dir(args.target, need=tables, allow_segments=True)
    print(f"{args.target}: {len(utts)} utterances, {len(data.spk2utt)} speakers")
    if others := other_files(data.path):
        print(f"{args.target}: not carried over: {' '.join(others)}")
    return 0


if __name__ == "__main__":
    run_program(main)
