#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Find once what several trainings of synthesisers on content learn of every utterance.

CONF and DATA are those of steps/train_synthesiser.py, which finds the same itself where it is not
given OUT by --content. OUT gets content.{ark,scp}: matrices (T, d); where the settings ask for
other voices (augmentation.warped) warped.{ark,scp}: of the same words by another vocal tract and at
another pitch, made with WORLD; fine.{ark,scp}: WORLD's frames of 5 ms, laid out as those of
steps/extract_world.py, with a pitch in all; and, last, content.json: frames, settings, digest of
the encoder. An hour takes 175 MB of either content with moonshine, and 120 MB of frames.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.learning.settings import read_config
from steps.options import add_device
from steps.synthesis.registry import find_content_structure
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_paths, add_seed
from utils.progress import progress
from utils.registry import load


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_seed(parser)
    add_device(parser)
    add_paths(parser, "conf", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    config = read_config(load(find_content_structure(args.conf).config), args.conf)
    data = load_data_dir(args.data)

    from steps.learning.audio import load_training_audio
    from steps.learning.devices import check_device
    from steps.synthesis.bn_content import Finder, write_contents

    check_device(args.device)
    audio = load_training_audio(data.wav, data.utt2spk, cache_gb=0.0, minimum_seconds=0.5)
    finder = Finder(audio, config, args.seed, args.device)
    write_contents(finder, audio.lengths, args.out, config, args.seed, progress("extract_content"))
    print(f"{args.out}: content of {len(audio.lengths)} utterances")
    return 0


if __name__ == "__main__":
    run_program(main)
