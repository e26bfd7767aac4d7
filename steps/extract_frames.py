#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extract what the frames of each utterance say of its speaker, for the generator psd.

ENCODER is a folder of steps/train_encoder.py with `network.pooling: xi`; DATA needs wav.scp and
utt2spk. Each frame gives a Gaussian. OUT gets, for each utterance, the mean (xvector.{ark,scp}) and
the variance (variance.{ark,scp}) of the mixture of its frames, num_frames, utt2spk and, where
utterances were lost, skipped.txt. The mean is not the x-vector of steps/extract_xvectors.py, which
weights the frames by their precision.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_extraction
from utils.archives import write_counts
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.progress import progress
from utils.speakers import add_not_speakers_of, check_unseen
from utils.tables import write_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_not_speakers_of(parser)
    add_extraction(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    data = load_data_dir(args.data)
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)

    from steps.speaker.encoders import load_encoder
    from steps.speaker.extraction import extract, finish
    from steps.speaker.frame_extraction import FrameEncoder, open_frames

    encoder = FrameEncoder(load_encoder(args.encoder, args.device), args.encoder)
    show = progress("extract_frames", unit="utterances")
    with open_frames(args.out) as writer:
        result = extract(encoder, data.wav, data.utt2spk, writer.write, progress=show)
        print(result.summary())
        finish(args.out, result, args.allow_loss)
        write_counts(args.out / "num_frames", writer.num_frames)
        write_map(args.out / "utt2spk", result.utt2spk)
    return 0


if __name__ == "__main__":
    run_program(main)
