#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small recogniser of words (CTC) on a data directory.

CONF is a YAML file such as conf/asr/ctc_mini.yaml; DATA needs wav.scp, utt2spk and text (audio of
another rate is resampled to 16 kHz). OUT gets recogniser.yaml (the settings and what was trained
on), training.tsv (losses, and errors on held-out speakers, as shares, against steps), checkpoints/
and, last, final.pt. steps/decode.py hears with it: --model OUT ctc.

A stopped training goes on from its last checkpoint when the same command is given again, and ends
with the same network as one that was not stopped. One thread computes.
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
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.memory import keep_freed_memory
from utils.speakers import check_unseen


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_training(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    keep_freed_memory()
    from steps.asr.ctc_config import CtcConfig
    from steps.learning.settings import read_config

    config = read_config(CtcConfig, args.conf)
    if args.steps is not None:
        config = with_steps(config, args.steps)
    data = load_data_dir(args.data, need=("wav.scp", "utt2spk", "text"))
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)

    from steps.asr.ctc_training import Material, train_ctc
    from steps.learning.audio import load_training_audio

    audio = load_training_audio(
        data.wav,
        data.utt2spk,
        cache_gb=config.training.cache_gb,
        minimum_seconds=config.training.minimum_seconds,
    )
    material = Material(audio, data.tables["text"])
    train_ctc(config, material, args.out, seed=args.seed, device=args.device)
    return 0


if __name__ == "__main__":
    run_program(main)
