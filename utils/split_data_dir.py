#!/usr/bin/env python3
"""Split a data directory into DATA/split<N>/1 ... N for parallel jobs; print the N that was used.

Parts that are there and the same are left as they are: jobs of another step may be reading them.

Speakers stay whole, and the parts are about equally long, by utt2dur where it
exists, else by number of utterances. With fewer speakers than jobs, N is lowered to the number of
speakers, and a note says so; use the printed number.
"""

import fcntl
import filecmp
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError
from utils.commands import program
from utils.datadir import DataDir, divide, load_source, select, write_data_dir
from utils.options import DataFolder


def split_data_dir(data: DataDir, n: int) -> int:
    """Write DATA/split<N>/<k>, k = 1..N, and return N, which is n or the number of speakers."""
    weights = data.utt2dur or dict.fromkeys(data.utt2spk, 1.0)
    parts = divide(data.spk2utt, weights, n)
    target = data.path / f"split{len(parts)}"
    beside = data.path / f"split{len(parts)}.tmp.{os.getpid()}"
    try:
        for number, part in enumerate(parts, start=1):
            write_data_dir(beside / str(number), select(data, part))
        with _alone(data.path):
            if not _same(beside, target):
                shutil.rmtree(target, ignore_errors=True)
                beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return len(parts)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else splits the folder's data meanwhile."""
    with (folder / ".split.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _same(new: Path, old: Path) -> bool:
    """Whether both folders hold the same files, byte by byte; false where `old` is not there."""
    files = [{p.relative_to(top) for p in top.rglob("*") if p.is_file()} for top in (new, old)]
    if files[0] != files[1]:
        return False
    _, *different = filecmp.cmpfiles(new, old, map(str, files[0]), shallow=False)
    return not any(different)


@program
def main(
    data_dir: DataFolder,
    n: Annotated[int, "The number of parts"],
) -> None:  # fmt: skip
    if n < 1:
        raise UserError(f"{n} parts are asked for; at least 1 is possible")
    data = load_source(data_dir)
    used = split_data_dir(data, n)
    if used < n:
        logging.info("%s: %d parts instead of %d: it has %d speakers", data_dir, used, n, used)
    print(used)
