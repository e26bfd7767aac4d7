#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score all pairs of segments, for voice similarity matrices.

ROW_XVECTORS and COLUMN_XVECTORS are folders with xvector.scp (or .scp/.ark files) of the segments
that --utt2spk lists. The same folder twice (OO, PP): every unordered pair once. Two folders,
original and protected (OP): every ordered pair. A segment is never paired with its own id.
TRIALS_OUT gets `<row> <column> target|nontarget` by utt2spk, SCORES_OUT `<row> <column> <score>`,
both in C order.

Both segments count as one utterance. Scores are those of score_trials.py, to 9 digits.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_backend
from steps.speaker.backends import load_normalised
from steps.speaker.scoring import read_segments, score_pairs, select_utterances, write_pairs
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths, add_utt2spk
from utils.tables import read_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_backend(parser)
    add_utt2spk(parser)
    parser.add_argument("rows", type=Path, metavar="ROW_XVECTORS")
    parser.add_argument("columns", type=Path, metavar="COLUMN_XVECTORS")
    add_paths(parser, "trials_out", "scores_out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    backend = load_normalised(args.backend, args.asnorm)
    utt2spk = read_map(args.utt2spk)
    if len(utt2spk) < 2:
        raise UserError(f"{args.utt2spk}: {len(utt2spk)} segment(s); pairs need two")
    rows, columns = read_segments(args.rows), read_segments(args.columns)
    ids = select_utterances(rows, utt2spk)
    select_utterances(columns, utt2spk)
    once = args.rows.resolve() == args.columns.resolve()
    n_target, n_nontarget = write_pairs(
        score_pairs(backend, rows, columns, ids, once=once),
        ids,
        utt2spk,
        args.trials_out,
        args.scores_out,
    )
    print(
        f"read {len(ids)} segments / written {n_target + n_nontarget} pairs ({n_target} target, "
        f"{n_nontarget} nontarget, {'unordered' if once else 'ordered'}) / skipped 0"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
