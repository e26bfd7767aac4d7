#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a generator of pseudo-speakers on x-vectors.

CONF is a YAML file of conf/generators (docs/trained_generators.md). XVECTORS is a
folder of steps/extract_xvectors.py (also with --chunk-seconds), DATA the data directory of the
training speakers. OUT gets generator.yaml (the settings, what was trained on, and figures of the
last check), training.tsv (losses and checks against steps), checkpoints/ and, last, final.pt.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped; one that is done goes on where training.steps was
raised. Every check tells how long generated vectors are beside real ones (norm), how much alike
those of new indices are, and how near those of the training speakers' indices come to them. One
thread computes.

With `generator: psd` nothing is trained: OUT gets the x-vectors and their speakers, for psd takes a
pseudo-speaker's distribution from these.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_device
from steps.speaker.averaging import check_complete, read_xvectors, speakers_of
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths, add_seed
from utils.settings import read_settings
from utils.speakers import add_not_speakers_of, check_unseen, write_training_speakers


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_seed(parser)
    add_device(parser)
    add_allow_loss(parser)
    add_not_speakers_of(parser)
    add_paths(parser, "conf", "xvectors", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    values = read_settings(args.conf)
    data = load_data_dir(args.data, need=("utt2spk",))
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)
    vectors = read_xvectors(args.xvectors)
    utt2spk = speakers_of(args.xvectors, data)
    check_complete(vectors, utt2spk, args.xvectors, args.allow_loss)

    if values.get("generator") == "psd":
        from steps.generators.frames import write_vectors_as_frames

        write_vectors_as_frames(values, args.conf, vectors, utt2spk, args.out)
        return 0

    from steps.generators.trained import train_generator
    from steps.generators.training import make_training_vectors

    training = make_training_vectors(vectors, utt2spk)
    train_generator(values, args.conf, training, args.out, seed=args.seed, device=args.device)
    write_training_speakers(args.out, data.utt2spk.values())
    return 0


if __name__ == "__main__":
    run_program(main)
