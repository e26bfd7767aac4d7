#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a data directory of some of the utterances of another.

Random choices depend on --seed and on each id alone, not on the order or on what else is there.
Trials whose utterance is left out go too.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils import selection
from utils.cli import UserError, make_parser, run_program
from utils.datadir import DataDir, load_data_dir, other_files, select, write_data_dir
from utils.options import add_seed
from utils.tables import read_ids, sort_ids


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    counts = {
        "--n": "Take N utterances at random",
        "--per-spk": "Take N utterances of each speaker at random (all, where a speaker has fewer)",
        "--speakers": "Take all utterances of N speakers at random",
        "--first": "Take the first N utterances (C order)",
        "--last": "Take the last N utterances (C order)",
        "--shortest": "Take the N shortest utterances (needs utt2dur)",
        "--evenly": "Take N utterances at even steps through the list, as Kaldi's own tool does",
    }
    for option, text in counts.items():
        choice.add_argument(option, metavar="N", type=int, help=text)
    choice.add_argument(
        "--utt-list", metavar="FILE", help="The file whose first column names the utterances"
    )
    choice.add_argument(
        "--spk-list", metavar="FILE", help="The file whose first column names the speakers"
    )
    add_seed(parser)
    parser.add_argument("source", metavar="SRC", help="data directory")
    parser.add_argument("target", metavar="DST", type=Path, help="data directory to make")
    return parser


def choose(data: DataDir, args: argparse.Namespace) -> Sequence[str]:
    """The utterances that the options name."""
    utts = sort_ids(data.utt2spk)
    if args.n is not None:
        return selection.draw(utts, args.n, args.seed, "utterance")
    if args.per_spk is not None:
        return selection.draw_per_speaker(data, args.per_spk, args.seed)
    if args.speakers is not None:
        speakers = selection.draw(data.spk2utt, args.speakers, args.seed, "speaker")
        return selection.utterances_of(data, speakers)
    if args.spk_list is not None:
        return selection.utterances_of(data, read_ids(args.spk_list))
    if args.utt_list is not None:
        return selection.known_utterances(data, read_ids(args.utt_list), args.utt_list)
    if args.evenly is not None:
        return selection.evenly(utts, args.evenly)
    count = next(n for n in (args.first, args.last, args.shortest) if n is not None)
    if not 1 <= count <= len(utts):
        raise UserError(f"{count} utterances are asked for; {data.path} has {len(utts)}")
    if args.shortest is not None:
        return selection.shortest(data, count)
    return utts[:count] if args.first is not None else utts[-count:]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    data = load_data_dir(args.source, need=("utt2spk",), allow_segments=True)
    if args.target.resolve() == data.path.resolve():
        raise UserError(f"{args.target}: is the source itself; give another folder")
    tables, trials = select(data, choose(data, args))
    write_data_dir(args.target, tables, trials)
    kept, speakers = tables["utt2spk"], set(tables["utt2spk"].values())
    print(
        f"{args.target}: {len(kept)} of {len(data.utt2spk)} utterances, "
        f"{len(speakers)} of {len(data.spk2utt)} speakers"
        + (f", {len(trials or [])} of {len(data.trials)} trials" if data.trials else "")
        + (f" (seed {args.seed})" if args.n or args.per_spk or args.speakers else "")
    )
    if others := other_files(data.path):
        print(f"{args.target}: not carried over: {' '.join(others)}")
    return 0


if __name__ == "__main__":
    run_program(main)
