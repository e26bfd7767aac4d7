#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a set of synthetic speakers with eSpeak NG: audio files, and their Kaldi data directory.

AUDIO gets <speaker>/<speaker>-<number>.wav (16 kHz, mono, 16 bit); DATA gets wav.scp, utt2spk,
spk2utt, spk2gender, text and utt2dur (seconds). Speakers are called synf001, synm001 and so on;
half of them are women. A speaker's files depend on the seed, the settings and the speaker's id
only, to the bit: not on --nj, nor on who else is made. Speakers that AUDIO already holds, made
with the same settings and the same code, are kept.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.options import add_jobs, add_seed


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("audio", type=Path, metavar="AUDIO", help="folder of the audio files")
    parser.add_argument("data", type=Path, metavar="DATA", help="data directory to write")
    parser.add_argument(
        "--speakers", type=int, default=40, help="The number of speakers, an even one"
    )
    parser.add_argument(
        "--first", type=int, default=1, help="The number of the first speaker of each gender"
    )
    parser.add_argument(
        "--utterances", type=int, default=14, help="The number of utterances of each speaker"
    )
    parser.add_argument(
        "--spread", type=float, default=0.5,
        help="The distance between voices of a gender, from 0 (none) to 2",
    )  # fmt: skip
    parser.add_argument(
        "--within", type=float, default=0.6,
        help="The distance between a speaker's utterances, as a share of --spread",
    )  # fmt: skip
    parser.add_argument(
        "--channel", type=float, default=0.7,
        help="The quality of rooms and microphones, from good (0) to poor (1)",
    )  # fmt: skip
    add_seed(parser)
    add_jobs(parser)
    return parser


def check_arguments(args: argparse.Namespace) -> None:
    """Raise UserError for the first number that makes no sense."""
    sensible = {
        "--speakers": (args.speakers >= 2 and args.speakers % 2 == 0, "an even number from 2 on"),
        "--first": (args.first >= 1, "from 1 on"),
        "--utterances": (1 <= args.utterances <= 999, "from 1 to 999"),
        "--spread": (0.0 <= args.spread <= 2.0, "from 0 to 2"),
        "--within": (0.0 <= args.within <= 2.0, "from 0 to 2"),
        "--channel": (0.0 <= args.channel <= 1.5, "from 0 to 1.5"),
        "--nj": (args.nj >= 1, "from 1 on"),
    }
    for option, (good, wanted) in sensible.items():
        if not good:
            raise UserError(f"{option} {getattr(args, option[2:])}: give {wanted}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    check_arguments(args)
    from steps.synthetic.corpus import Settings, data_tables, make_corpus, speaker_ids
    from utils.datadir import write_data_dir

    # Tables of another corpus must not outlive its audio, should this run be killed.
    (args.data / "wav.scp").unlink(missing_ok=True)
    genders = speaker_ids(args.first, args.speakers)
    settings = Settings(args.seed, args.utterances, args.spread, args.within, args.channel)
    made = make_corpus(args.audio, settings, genders, args.nj)
    write_data_dir(args.data, data_tables(args.audio, made, genders))
    utterances = [item for items in made.speakers.values() for item in items]
    hours = sum(item.seconds for item in utterances) / 3600.0
    print(
        f"{args.data}: {len(genders)} speakers ({made.n_new} made now, "
        f"{len(genders) - made.n_new} there before), {len(utterances)} utterances, {hours:.2f} h"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
