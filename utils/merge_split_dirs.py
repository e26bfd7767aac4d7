#!/usr/bin/env python3
"""Put together what N parallel jobs wrote to OUT/split<N>/1 ... N, and remove these parts.

Archives become one, OUT/<stem>.ark, in sorted order, so that what is in OUT does not depend on N;
an .scp is written after its .ark. Text tables (one key a line) are joined and sorted; a first line
that starts with `#` is a header and stays. JSON files are the same in all parts. With --expect
the ids of every table are compared with the data directory that was split: a lost utterance is an
error (exit status 3) unless it is allowed.
"""

import os
import re
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import COMMON, LossError, UserError, natural
from utils.commands import program
from utils.datachecks import FILES, NOTES, spoken
from utils.datadir import DataDir, describe_difference, load_source
from utils.tables import (
    atomic_write,
    invert,
    mark_timed,
    read_lines,
    sort_ids,
    split_key,
    timed_in,
    write_file,
    write_id_lists,
)

# Nothing in OUT changes before every part has been read and checked. The parts are removed last, by
# one rename, so a killed merge can be run again. The result is the same bytes for every N.

_PIECE, _OFFSET = re.compile(r"-c\d+$"), re.compile(r":\d+(\[.*\])?$")
# A part may lack these: they name only some of the utterances.
PARTIAL = ("enrolls", "trials", "skipped.txt", NOTES)


@dataclass
class Merged:
    """Files to write: lines by file name and key, and headers by file name.

    archives: names of the .scp files whose lines point into archives of the parts. settings: JSON
    files. timed: names of tables of seconds.
    """

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    archives: set[str] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)


def read_parts(out: Path, n: int) -> Merged:
    """Read OUT/split<n>/1 ... n; UserError names what a part lacks."""
    parts = [out / f"split{n}" / str(number) for number in range(1, n + 1)]
    files = {
        part: {path.name for path in part.glob("[!.]*") if ".tmp." not in path.name}
        for part in parts
    }
    everywhere = set().union(*files.values()) - set(PARTIAL)
    merged = Merged()
    for part in parts:
        if not files[part]:
            raise UserError(f"{part}: this job wrote nothing; see its log in {out / 'log'}")
        for name in sorted(everywhere - files[part]):
            logs = out / "log"
            raise UserError(f"{part / name}: is missing, but other jobs wrote it; see {logs}")
        for name in files[part]:
            _read_part(part / name, merged)
        merged.timed |= timed_in(part)
    if "utt2spk" in merged.tables:
        # Made again from the whole: a speaker may have been split among the jobs.
        merged.tables.pop("spk2utt", None)
    return merged


def _read_part(path: Path, merged: Merged) -> None:
    if path.suffix == ".json":
        merged.settings[path.name] = path.read_text(encoding="utf-8")
    if path.suffix == ".json" or (path.suffix == ".ark" and path.with_suffix(".scp").exists()):
        return  # archives are read through their .scp
    table, part = merged.tables.setdefault(path.name, {}), os.path.abspath(path.parent)  # noqa: PTH100
    by_utterance = path.name in FILES and FILES[path.name].key == "utterance"
    for number, line in read_lines(path):
        if number == 1 and line.startswith("#"):
            merged.headers[path.name] = line
            continue
        key, value = split_key(line)
        if path.name == "trials":
            key = " ".join(line.split()[:2])
        file = _OFFSET.sub("", value)
        if path.suffix == ".scp" and Path(os.path.abspath(file)).is_relative_to(part):  # noqa: PTH100
            if not file.endswith(".ark"):
                raise UserError(f"{path}: {key}: {file} would be lost with {path.parent}")
            merged.archives.add(path.name)
        if key in table and (by_utterance or table[key] != line) and path.name != "spk2utt":
            raise UserError(f"{path}: {key} is in another part too; each job must have its own")
        table[key] = line


def check_parts(
    out: Path, merged: Merged, data: DataDir, allow_loss: int, *, pieces: bool = False
) -> int:
    """Compare the ids of every table with the split data directory; return how many are missing.

    With `pieces` the utterances were cut: ids are <utt>-c<number>, and each utterance needs one.

    Raises LossError naming counts and ids when more than `allow_loss` are missing from a table, and
    UserError for ids that the data directory does not have.
    """
    worst = 0
    for name, listed in sorted(merged.tables.items()):
        table = {_PIECE.sub("", key): line for key, line in listed.items()} if pieces else listed
        expected, what = _expected_ids(out / name, table, data, merged)
        if expected is None:
            continue
        difference = describe_difference(table, expected, what)
        if set(table) - set(expected):
            raise UserError(f"{out / name}: compared with {data.path}, {difference}")
        worst = max(worst, len(expected) - len(table))
        if worst > allow_loss:
            raise LossError(
                f"{out / name}: {difference}; see the logs in {out / 'log'}, "
                f"or accept the loss with --allow-loss {worst}"
            )
    return worst


def _expected_ids(
    path: Path, keys: Collection[str], data: DataDir, merged: Merged
) -> tuple[Collection[str] | None, str]:
    """Ids that a table should have, and their kind; None where they are unknown."""
    if path.name in PARTIAL:
        kept = merged.tables.get("utt2spk", data.utt2spk)
        whole = data.tables.get(path.name)
        what = "trial" if path.name == "trials" else "utterance"
        return whole and [key for key in whole if spoken(key) in kept], what
    by_kind: dict[str, Mapping[str, object]] = {
        "utterance": data.utt2spk, "speaker": data.spk2utt, "recording": data.wav or data.utt2spk,
    }  # fmt: skip
    if path.name in FILES:
        spec = FILES[path.name]
        return by_kind[spec.key], spec.noun("segments" in data.tables)
    for kind, ids in by_kind.items():
        if any(key in ids for key in keys):
            return ids, kind
    raise UserError(f"{path}: its first column has no utterance and no speaker of {data.path}")


def write_merged(out: Path, n: int, merged: Merged) -> None:
    """Put the archives and tables in place, each .scp after the archives, and remove the parts."""
    for name in merged.archives:
        _write_archive(out / name, merged.tables[name])
    others = sorted(
        merged.tables.keys() - merged.archives,
        key=lambda name: (name.endswith(".scp"), name == "wav.scp"),
    )
    for name in others:
        if name.endswith(".scp"):
            (out / name).unlink(missing_ok=True)
    for name, text in merged.settings.items():
        write_file(out / name, text)
    for name in others:
        table = merged.tables[name]
        if name == "utt2spk":
            utt2spk = {utt: line.split()[1] for utt, line in table.items()}
            write_id_lists(out / "spk2utt", invert(utt2spk))
        with atomic_write(out / name) as stream:
            if name in merged.headers:
                stream.write(f"{merged.headers[name]}\n")
            stream.writelines(f"{table[key]}\n" for key in sort_ids(table))
    for name in merged.timed:
        mark_timed(out / name)
    (out / f"split{n}").rename(out / f".merged.{os.getpid()}")
    for path in out.iterdir():  # of interrupted runs with another N
        if re.fullmatch(r"split\d+", path.name) and path.is_dir():
            shutil.rmtree(path)
    remove_merged_parts(out)


def _write_archive(scp: Path, table: dict[str, str]) -> None:
    """Gather all objects of a table's lines in one archive."""
    from utils.archives import ArchiveWriter, read_entries  # load NumPy; audio needs neither

    with ArchiveWriter(scp.with_suffix("")) as writer:
        entries = {key: split_key(table[key])[1] for key in sort_ids(table)}
        for key, array in read_entries(scp, entries):
            writer.write(key, array)


def remove_merged_parts(out: Path) -> bool:
    """Finish the removal that a killed merge had begun; returns whether there was one."""
    leftovers = list(out.glob(".merged.*"))
    for path in leftovers:
        shutil.rmtree(path)
    return bool(leftovers)


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
        data = load_source(expect)
    merged, lost = merge_parts(out, n, data, allow_loss, pieces=pieces)
    counts = ", ".join(f"{name} {len(table)}" for name, table in sorted(merged.tables.items()))
    print(f"{out}: {n} parts merged: {counts}; {lost} lost")
