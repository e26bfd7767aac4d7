#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extract one x-vector an utterance.

ENCODER is a folder that steps/train_encoder.py made, resemblyzer (pretrained) or
hub:<model> (SpeechBrain hub, or hub:<folder>). DATA needs wav.scp and utt2spk. OUT gets
xvector.{ark,scp} (float32, neither centred nor scaled) and, where utterances were lost, skipped.txt
(<utterance> <reason>).

With --chunk-seconds S every utterance is cut into equal pieces of S to 2 S seconds, each with an
x-vector of its own, <utterance>-c0000, <utterance>-c0001, ...; OUT/utt2spk gives their speakers.
This stands in for sessions when a back end is trained on speakers of one or few utterances.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_extraction
from utils.archives import ArchiveWriter
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.memory import keep_freed_memory
from utils.progress import progress


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--chunk-seconds", type=float, metavar="S",
        help="The length of the pieces that utterances are cut into (see above), in seconds",
    )  # fmt: skip
    add_extraction(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    logging.getLogger("speechbrain").setLevel(logging.WARNING)
    keep_freed_memory()
    if args.chunk_seconds is not None and not args.chunk_seconds > 0:
        raise UserError(f"--chunk-seconds {args.chunk_seconds:g}: a positive number is needed")
    data = load_data_dir(args.data)

    from steps.speaker.encoders import load_encoder
    from steps.speaker.extraction import extract, finish

    encoder = load_encoder(args.encoder, args.device)
    with ArchiveWriter(args.out / "xvector") as writer:
        result = extract(
            encoder,
            data.wav,
            data.utt2spk,
            writer.write,
            chunk_seconds=args.chunk_seconds,
            progress=progress("extract_xvectors", unit="utterances"),
        )
        print(result.summary())
        finish(args.out, result, args.allow_loss)
    return 0


if __name__ == "__main__":
    run_program(main)
