#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the back end: global mean, LDA, two-covariance PLDA (Kaldi's chain and file formats).

XVECTORS is a folder of steps/extract_xvectors.py (also with --chunk-seconds), DATA the data
directory of the training speakers. OUT gets mean.vec, transform.mat, plda and
cohort.{ark,scp} (the mean x-vector of each speaker, for score normalisation). LDA has at most as
many dimensions as the data can bear, min(--lda-dim, S - 1, N - S) for N x-vectors of S speakers.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.speaker.averaging import check_complete, read_xvectors, speakers_of
from steps.speaker.backends import speaker_means, train_backend, write_backend
from utils.archives import ArchiveWriter
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.speakers import add_not_speakers_of, check_unseen


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--lda-dim", type=int, default=100, metavar="D",
        help="The number of dimensions that LDA keeps",
    )  # fmt: skip
    add_allow_loss(parser)
    add_not_speakers_of(parser)
    add_paths(parser, "xvectors", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if args.lda_dim < 1:
        raise UserError(f"--lda-dim {args.lda_dim}: at least 1 is needed")
    data = load_data_dir(args.data, need=("utt2spk",))
    check_unseen(data.utt2spk.values(), args.data, args.not_speakers_of)
    vectors = read_xvectors(args.xvectors)
    utt2spk = speakers_of(args.xvectors, data)
    check_complete(vectors, utt2spk, args.xvectors, args.allow_loss)
    try:
        backend = train_backend(vectors, utt2spk, args.lda_dim)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise UserError(f"{args.xvectors}: {error}; extract them again") from error
    write_backend(args.out, backend)
    with ArchiveWriter(args.out / "cohort") as writer:
        for speaker, mean in speaker_means(vectors, utt2spk).items():
            writer.write(speaker, mean)
    n_speakers = len({utt2spk[utt] for utt in vectors})
    print(
        f"read {len(vectors)} x-vectors of {n_speakers} speakers / written {args.out}/plda of "
        f"{len(backend.plda.psi)} dimensions / skipped 0"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
