#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recognise the words of each utterance of a data directory.

RECOGNISER is `moonshine`, a network that writes English (--model: another size or language of it);
`pocketsphinx`, an older recogniser of English; `ctc`, one that train_recogniser.py trained
(--model); or `hub:<model>`, a Whisper (--language) or a SpeechBrain model of the Hugging Face hub,
or a folder of one (SpeechBrain runs the code that its settings name). DATA needs wav.scp and
utt2spk. OUT gets `text` (<utterance> <words>, as the recogniser spells them; nothing after the
utterance where nothing was recognised) and recogniser.json (how it was made); moonshine also writes
seconds.tsv (of encoder and decoder) and notes.txt (<utterance> <note>: hypotheses that came to no
end and were cut), where there are any. Only ctc and models of the hub compute on --device. A killed
run goes on where it was, from text.partial in OUT.
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
from utils.options import add_paths
from utils.progress import progress


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--lang", type=Path, metavar="DIR",
        help="The folder of the language of pocketsphinx and ctc (make_lang.py); left out: general "
        "English for pocketsphinx, any spelling for ctc",
    )  # fmt: skip
    parser.add_argument(
        "--model", type=Path, metavar="DIR",
        help="The folder of what ctc hears with, or of another moonshine",
    )  # fmt: skip
    parser.add_argument(
        "--language", metavar="CODE",
        help="The language that Whisper is told, such as de; left out: it guesses",
    )  # fmt: skip
    add_device(parser)
    parser.add_argument("recogniser", metavar="RECOGNISER")
    add_paths(parser, "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.asr.decoding import decode_all
    from steps.asr.recognisers import Asked, make_recogniser

    data = load_data_dir(args.data)
    recogniser = make_recogniser(
        args.recogniser, Asked(args.lang, args.model, args.language), args.device
    )
    done = decode_all(recogniser, data.wav, args.out, progress("decode"))
    for utt, note in done.notes.items():
        print(f"{utt}: {note}")
    if done.notes:
        print(f"{args.data}: {len(done.notes)} of {len(data.wav)} hypotheses were cut")
    kept = f", {done.n_kept} of them by a run that was ended before" if done.n_kept else ""
    print(f"{args.data}: {len(data.wav)} utterances recognised{kept}")
    return 0


if __name__ == "__main__":
    run_program(main)
