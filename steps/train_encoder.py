#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a speaker encoder on a data directory.

CONF is a YAML file such as conf/encoders/ecapa_mini.yaml; DATA needs wav.scp and utt2spk (audio of
another rate is resampled to 16 kHz). OUT gets encoder.yaml (the settings and what was trained on),
training.tsv (loss and validation EER in percent against steps), checkpoints/ and, last, final.pt.

With --init-from MODEL (another such OUT, of the same network) the training goes on from MODEL's
network instead of random weights, with a new classifier, for fewer steps and at a lower rate: the
section fine_tuning of CONF.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped. One thread computes and --workers processes
prepare the crops.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.learning.settings import with_steps
from steps.options import add_training
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.memory import keep_freed_memory
from utils.speakers import check_unseen, read_training_speakers


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_training(parser)
    parser.add_argument(
        "--workers", type=int, default=1,
        help="The number of processes that prepare crops; the result is the same",
    )  # fmt: skip
    parser.add_argument(
        "--init-from", type=Path, metavar="MODEL",
        help="The folder of the encoder that is fine-tuned (see above)",
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    keep_freed_memory()
    from steps.learning.settings import read_config
    from steps.speaker.config import EncoderConfig, fine_tuned

    if args.workers < 0:
        raise UserError(f"--workers {args.workers}: 0 or more are needed")
    config = read_config(EncoderConfig, args.conf)
    if args.init_from is not None:
        config = fine_tuned(config)
    if args.steps is not None:
        config = with_steps(config, args.steps)
    data = load_data_dir(args.data)
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)
    if args.init_from is not None:
        before = read_training_speakers(args.init_from)
        if before is None:
            logging.warning("%s: no spklist: whom it learnt from is not known", args.init_from)
        check_unseen(before or [], args.init_from, args.not_speakers_of)

    from steps.learning.audio import load_training_audio
    from steps.speaker.training import train_encoder

    audio = load_training_audio(
        data.wav,
        data.utt2spk,
        cache_gb=config.training.cache_gb,
        minimum_seconds=config.training.minimum_seconds,
        speech_only=config.features.speech_only,
    )
    train_encoder(
        config,
        audio,
        args.out,
        seed=args.seed,
        device=args.device,
        n_workers=args.workers,
        init_from=args.init_from,
    )
    return 0


if __name__ == "__main__":
    run_program(main)
