#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the trial sets of the NIST study (Seo et al. 2025, Table 4) from the segments of a set.

DATA is a data directory (utt2spk; spk2gender unless --same-gender false). OUT gets

  trial1/trials  <original> <protected>: the same speaker or another (ordered pairs)
  trial2/trials  <segment> <segment>, both protected in one profile or both original (pairs once)
  cross/trials   <segment>-p1 <segment>-p1 target, <segment>-p1 <segment>-p2 nontarget, of one
                 speaker; cross/utt2spk has their speakers

No segment is compared with itself. The numbers of trials are printed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.protocols.nist import make_lists
from utils.cli import boolean, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_paths
from utils.speakers import check_unseen
from utils.tables import read_map, write_map
from utils.trials import write_trials


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--same-gender", type=boolean, default=True, metavar="true|false",
        help="Compare speakers of one gender only",
    )  # fmt: skip
    parser.add_argument(
        "--sessions", type=Path, metavar="UTT2SESSION",
        help="The table of each segment's session; segments of one session are not compared",
    )  # fmt: skip
    parser.add_argument(
        "--groups", type=Path, metavar="SPK2GROUP",
        help="The table of each speaker's group, such as age; speakers of one group are compared",
    )  # fmt: skip
    parser.add_argument(
        "--durations", type=Path, metavar="UTT2DURATION",
        help="The table of each segment's nominal duration; segments of one are compared",
    )  # fmt: skip
    parser.add_argument(
        "--training", type=Path, action="append", default=[], metavar="DATA",
        help="A training set none of whose speakers may be among the segments'; may be given again",
    )  # fmt: skip
    add_paths(parser, "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    need = ("utt2spk", "spk2gender") if args.same_gender else ("utt2spk",)
    data = load_data_dir(args.data, need=need)
    check_unseen(data.utt2spk.values(), args.data, args.training)
    tables = [
        None if path is None else read_map(path)
        for path in (args.sessions, args.groups, args.durations)
    ]
    lists = make_lists(data.utt2spk, data.spk2gender if args.same_gender else None, *tables)
    write_map(args.out / "cross/utt2spk", lists.cross_utt2spk)
    print(f"{args.data}: {len(data.spk2utt)} speakers, {len(data.utt2spk)} segments")
    for name in ("trial1", "trial2", "cross"):
        trials = getattr(lists, name)
        write_trials(args.out / name / "trials", trials)
        n_target = int(trials.target.sum())
        print(f"  {name:<6}  {n_target} target, {len(trials) - n_target} nontarget trials")
    return 0


if __name__ == "__main__":
    run_program(main)
