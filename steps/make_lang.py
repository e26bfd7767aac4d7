#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make what a recogniser is told of a corpus's language, and say how much of the corpus it covers.

LANGUAGE is `general` (PocketSphinx's English model), `trigram` (estimated from the transcripts of
--train), a grammar (<file>.jsgf), or a folder with lexicon.dict (<word> <phone>...) and lm.arpa or
grammar.jsgf. OUT gets lang.json (kind, size of the vocabulary, share of the words of each --count
that it does not have) and the files of the language. Words without a pronunciation cannot be
recognised and are not in the vocabulary.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--train", type=Path, metavar="DATA",
        help="The data directory whose transcripts make a trigram",
    )  # fmt: skip
    parser.add_argument(
        "--count", type=Path, action="append", default=[], metavar="DATA",
        help="A data directory whose words that are not in the vocabulary are counted; may be "
        "given again",
    )  # fmt: skip
    parser.add_argument("language", metavar="LANGUAGE")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def _texts(data: Path) -> dict[str, str]:
    return load_data_dir(data, need=("utt2spk", "text"), allow_segments=True).tables["text"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.asr.language import count_unknown, read_source, trigram, vocabulary, write_language

    if args.language == "trigram":
        if args.train is None:
            raise UserError("trigram: --train DATA is needed: a set with transcripts")
        language = trigram(_texts(args.train).values())
    else:
        language = read_source(args.language)
    words = vocabulary(language)
    print(f"{args.language}: a vocabulary of {len(words)} words")
    unknown: dict[str, float] = {}
    for data in args.count:
        missing, total = count_unknown(words, _texts(data))
        unknown[data.name] = missing / total if total else 0.0
        print(
            f"{data}: {missing} of {total} words ({100 * unknown[data.name]:.2f} %) are not in it"
        )
    write_language(args.out, language, {"n_words": len(words), "oov": unknown})
    return 0


if __name__ == "__main__":
    run_program(main)
