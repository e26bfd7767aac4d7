#!/usr/bin/env python3
"""Put together what N parallel jobs wrote to OUT/split<N>/1 ... N, and remove these parts.

Archives become one, OUT/<stem>.ark, in sorted order, so that what is in OUT does not depend on N;
an .scp is written after its .ark. Text tables (one key a line) are joined and sorted; a first line
that starts with `#` is a header and stays. JSON files must be the same in all parts. With --expect
the ids of every table are compared with the data directory that was split: a lost utterance is an
error (exit status 3) unless it is allowed.
"""

import sys
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import COMMON, UserError, natural, run_program
from utils.commands import program
from utils.datadir import (
    DataDir,
    Merged,
    check_parts,
    load_data_dir,
    read_parts,
    remove_merged_parts,
    write_merged,
)


def merge_parts(
    out: Path, n: int, data: DataDir | None, allow_loss: int = 0, *, pieces: bool = False
) -> tuple[Merged, int]:
    """Put together OUT/split<n>/1 ... n; returns what was, and how many ids were lost.

    Raises LossError where more than allow_loss of the ids of the data directory were.
    """
    merged = read_parts(out, n)
    lost = 0 if data is None else check_parts(out, merged, data, allow_loss, pieces=pieces)
    write_merged(out, n, merged)
    return merged, lost


@program
def main(
    out: Annotated[Path, "The folder that has split<N>"],
    n: Annotated[int, "The number of jobs"],
    *,
    expect: Annotated[Path | None, "The data directory that was split", "DATA"] = None,
    allow_loss: Annotated[
        int, "The number of ids that may be lost; more are an error", "N", natural, COMMON,
    ] = 0,
    pieces: Annotated[bool, "Ids are <utt>-c<number>: utterances were cut"] = False,
) -> None:  # fmt: skip
    if n < 1:
        raise UserError(f"{n} jobs: at least 1 is possible")
    if not (out / f"split{n}").is_dir():
        if out.is_dir() and remove_merged_parts(out):
            print(f"{out}: merged before; removed what was left of the parts")
            return
        raise UserError(f"{out / f'split{n}'}: is missing; run the jobs first")
    data = None
    if expect is not None:
        data = load_data_dir(expect, need=("utt2spk",), allow_segments=True)
    merged, lost = merge_parts(out, n, data, allow_loss, pieces=pieces)
    counts = ", ".join(f"{name} {len(table)}" for name, table in sorted(merged.tables.items()))
    print(f"{out}: {n} parts merged: {counts}; {lost} lost")


if __name__ == "__main__":
    run_program(main)
