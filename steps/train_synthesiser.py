#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a synthesiser on the voices of a pool.

CONF is a YAML file such as conf/synthesisers/bn_mini.yaml, whose `synthesiser` is bn, nsf or b1b
(docs/source_filter.md); DATA needs wav.scp and utt2spk; POOL is a folder of
steps/make_voice_pool.py with the WORLD frames of these utterances and the x-vectors of
these speakers. OUT gets synthesiser.yaml (the settings and what was trained on), training.tsv
(losses, and the distance on held-out speakers, against steps), checkpoints/ and, last,
final.pt.

With --onto, a network that was trained without network.melody is taken as it is, and only the
melody is trained, which takes minutes (docs/content_training.md).

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.learning.settings import read_config
from steps.options import add_device
from steps.synthesis.registry import STRUCTURES, find_content_structure, find_structure
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.memory import keep_freed_memory
from utils.options import add_paths, add_seed
from utils.registry import load
from utils.speakers import add_not_speakers_of, check_unseen, write_training_speakers


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_seed(parser)
    add_device(parser)
    parser.add_argument(
        "--content", type=Path, metavar="DIR",
        help="A folder of steps/extract_content.py; without it content is found while training",
    )  # fmt: skip
    parser.add_argument(
        "--onto", type=Path, metavar="SYNTHESISER",
        help="A folder of this program or of a model (models/bn/synthesiser); it stays as it is, "
        "and only the melody is trained",
    )  # fmt: skip
    add_not_speakers_of(parser)
    add_paths(parser, "conf", "data", "pool", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    keep_freed_memory()
    given = {name: vars(args)[name] for name in ("content", "onto") if vars(args)[name]}
    structure = find_content_structure(args.conf) if given else find_structure(args.conf)
    if args.onto and structure != STRUCTURES["bn"]:
        raise UserError(f"{args.conf}: synthesiser: --onto is of bn alone; leave it out")
    config = read_config(load(structure.config), args.conf)
    data = load_data_dir(args.data)
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)

    from steps.learning.audio import load_training_audio

    audio = load_training_audio(
        data.wav, data.utt2spk, cache_gb=config.training.cache_gb, minimum_seconds=0.5
    )
    train = load(structure.train)
    train(config, audio, args.pool, args.out, seed=args.seed, device=args.device, **given)
    write_training_speakers(args.out, data.utt2spk.values())
    return 0


if __name__ == "__main__":
    run_program(main)
