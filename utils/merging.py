# SPDX-License-Identifier: Apache-2.0
"""Merging the results of parallel jobs in OUT/split<N>/<J>: checked first, then moved.

Nothing in OUT changes before every part has been read and checked. The parts are removed last, by
one rename, so a killed merge can be run again. The result is the same bytes for every N.
"""

import os
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import LossError, UserError
from utils.datadir import DataDir, describe_difference
from utils.datafiles import FILES, NOTES
from utils.tables import (
    atomic_write,
    invert,
    mark_timed,
    read_lines,
    read_map,
    sort_ids,
    timed_in,
    write_id_lists,
)

_PIECE = re.compile(r"-c\d+$")
# A part may lack these: they name only some of the utterances.
PARTIAL = ("enrolls", "trials", "skipped.txt", NOTES)


@dataclass
class Merged:
    """Files to write: lines by file name and key, and headers by file name.

    archives: names of the .scp files whose lines point into archives of the parts. settings: JSON
    files, equal in all parts. timed: names of tables of seconds.
    """

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    archives: set[str] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)


def read_parts(out: Path, n: int) -> Merged:
    """Read and check OUT/split<n>/1 ... n; UserError names the wrong part and file."""
    logs = out / "log"
    parts = [out / f"split{n}" / str(number) for number in range(1, n + 1)]
    for part in parts:
        if not part.is_dir() or not _files_of(part):
            raise UserError(f"{part}: this job wrote nothing; see its log in {logs}")
    files = {part: _files_of(part) for part in parts}
    everywhere = sorted(set().union(*files.values()) - set(PARTIAL))
    merged = Merged()
    for part in parts:
        for name in everywhere:
            if name not in files[part]:
                raise UserError(
                    f"{part / name}: is missing, but other jobs wrote it; see the logs in {logs}"
                )
        archives: set[str] = set()
        scps = {name for name in files[part] if name.endswith(".scp")}
        for name in scps:
            archives |= _read_scp(part / name, merged, files[part])
        for name in files[part] - scps - archives:
            _read_part(part / name, merged)
        merged.timed |= timed_in(part)
    if "utt2spk" in merged.tables:
        # Made again from the whole: a speaker may have been split among the jobs.
        merged.tables.pop("spk2utt", None)
    return merged


def _files_of(part: Path) -> set[str]:
    """Names of the visible files of a part; a folder in it is an error, as it would be lost."""
    visible = [path for path in part.iterdir() if not path.name.startswith(".")]
    for path in visible:
        if not path.is_file():
            raise UserError(f"{path}: a folder cannot be merged; write its files elsewhere")
    return {path.name for path in visible if ".tmp." not in path.name}


def _read_scp(path: Path, merged: Merged, files: Collection[str]) -> set[str]:
    """Read a part; return the names of its archives in the table."""
    part, archives = os.path.abspath(path.parent), set()  # noqa: PTH100
    for key, rxfilename in read_map(path, rest_of_line=True).items():
        match = re.fullmatch(r"(.+?\.ark)(:\d+(?:\[.*\])?)?", rxfilename)
        ark = Path(match[1] if match else rxfilename)
        if Path(os.path.abspath(ark)).is_relative_to(part):  # noqa: PTH100
            if match is None or ark.name not in files:
                raise UserError(
                    f"{path}: {key}: {rxfilename} is not there, or would be lost with {path.parent}"
                )
            archives.add(ark.name)
            merged.archives.add(path.name)
        _add(path, merged, key, f"{key} {rxfilename}")
    return archives


def _read_part(path: Path, merged: Merged) -> None:
    if path.suffix == ".json":
        text = path.read_text(encoding="utf-8")
        if merged.settings.setdefault(path.name, text) != text:
            raise UserError(f"{path}: other settings than in the other parts; run all jobs again")
        return
    for number, line in read_lines(path):
        if number == 1 and line.startswith("#"):
            if merged.headers.setdefault(path.name, line) != line:
                raise UserError(f"{path}:1: another header than in the other parts")
            merged.tables.setdefault(path.name, {})
        elif not line.strip():
            raise UserError(f"{path}:{number}: empty line")
        else:
            key = " ".join(line.split()[: 2 if path.name == "trials" else 1])
            _add(path, merged, key, line)


def _add(path: Path, merged: Merged, key: str, line: str) -> None:
    table = merged.tables.setdefault(path.name, {})
    by_utterance = path.name in FILES and FILES[path.name].key == "utterance"
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
    by_kind: dict[str, Collection[str]] = {
        "utterance": data.utt2spk,
        "speaker": data.spk2utt,
        "recording": data.wav or data.utt2spk,
    }
    if path.name in PARTIAL:
        kept = merged.tables.get("utt2spk", data.utt2spk)
        if path.name == "enrolls" and data.enrolls is not None:
            return [utt for utt in data.enrolls if utt in kept], "utterance"
        if path.name == "trials" and data.trials is not None:
            return [f"{model} {utt}" for model, utt, _ in data.trials if utt in kept], "trial"
        return None, ""
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
    others = merged.tables.keys() - merged.archives
    for name in others:
        if name.endswith(".scp"):
            (out / name).unlink(missing_ok=True)
    for name, text in merged.settings.items():
        with atomic_write(out / name) as stream:
            stream.write(text)
    for name in sorted(others, key=lambda name: (name.endswith(".scp"), name == "wav.scp")):
        if name == "utt2spk":
            utt2spk = {utt: line.split()[1] for utt, line in merged.tables[name].items()}
            write_id_lists(out / "spk2utt", invert(utt2spk))
        with atomic_write(out / name) as stream:
            if name in merged.headers:
                stream.write(f"{merged.headers[name]}\n")
            stream.writelines(f"{line}\n" for line in _sorted_lines(merged.tables[name]))
    for name in merged.timed:
        mark_timed(out / name)
    _remove_leftovers(out, n)


def _sorted_lines(table: dict[str, str]) -> list[str]:
    return [table[key] for key in sort_ids(table)]


def _write_archive(scp: Path, table: dict[str, str]) -> None:
    """Gather all objects of a table's lines in one archive."""
    from utils.archives import ArchiveWriter, read_entries  # load NumPy; audio needs neither

    with ArchiveWriter(scp.with_suffix("")) as writer:
        entries = {key: table[key].partition(" ")[2] for key in sort_ids(table)}
        for key, array in read_entries(scp, entries):
            writer.write(key, array)


def remove_merged_parts(out: Path) -> bool:
    """Finish the removal that a killed merge had begun; returns whether there was one."""
    leftovers = list(out.glob(".merged.*"))
    for path in leftovers:
        shutil.rmtree(path)
    return bool(leftovers)


def _remove_leftovers(out: Path, n: int) -> None:
    """Folders of the parts, and those of interrupted runs with another N."""
    (out / f"split{n}").rename(out / f".merged.{os.getpid()}")
    for path in out.iterdir():
        if re.fullmatch(r"split\d+", path.name) and path.is_dir():
            shutil.rmtree(path)
    remove_merged_parts(out)
