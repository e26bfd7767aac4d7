#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a pool of target voices.

WORLD_DIR is a folder of steps/extract_world.py, DATA the data directory of the voices (utt2spk;
spk2gender where voices are to be chosen by gender), XVECTORS a folder of steps/average_xvectors.py.
OUT, which may be WORLD_DIR, gets

  world.scp                  the frames of each utterance; the archives stay in WORLD_DIR
  utt2spk spk2utt spk2gender
  spk_f0.{ark,scp}           F0 statistics, as steps/compute_f0_stats.py makes them
  spk_xvector.{ark,scp}
  content.{ark,scp,json}     with --add-content

Every speaker needs an x-vector and frames that are not silent. Who has no utterance with frames is
left out, and --allow-loss counts the utterances.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_device
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.speakers import add_not_speakers_of, check_unseen


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_allow_loss(parser)
    add_not_speakers_of(parser)
    add_device(parser)
    parser.add_argument(
        "--add-content", default="", metavar="NAME", dest="content",
        help="The recogniser's content that is added for each frame (conf/systems: features: "
        "content): moonshine, hub:<model>:<layer> or cepstra",
    )  # fmt: skip
    parser.add_argument("world", type=Path, metavar="WORLD_DIR")
    add_paths(parser, "data", "xvectors", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.synthesis.pool_making import add_content, make_voice_pool

    data = load_data_dir(args.data, need=("utt2spk",))
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)
    made = make_voice_pool(args.world, data, args.xvectors, args.out, args.allow_loss)
    if args.content:
        add_content(data, args.out, args.content, args.device)
    print(made.summary())
    return 0


if __name__ == "__main__":
    run_program(main)
