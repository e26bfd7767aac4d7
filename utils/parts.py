"""Parts of a data directory for parallel jobs, and what the jobs wrote, put together.

Speakers stay whole, and the parts are about equally long, by utt2dur where it exists, else by
number of utterances. Parts that are there and the same are left as they are: jobs of another step
may be reading them.

Of what N jobs wrote to OUT/split<N>/1 ... N, archives become one, OUT/<stem>.ark, in sorted order,
so that what is in OUT does not depend on N; an .scp is written after its .ark. Text tables (one key
a line) are joined and sorted; a first line that starts with `#` is a header and stays. JSON files
are the same in all parts. A job that lost an utterance has failed, and nothing is put together.
"""

import fcntl
import filecmp
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from utils import tables
from utils.cli import UserError
from utils.datachecks import FILES, NOTES
from utils.datadir import DataDir, divide, select, write_data_dir


def split_data_dir(data: DataDir, n: int) -> int:
    """Write DATA/split<N>/<k>, k = 1..N, and return N, which is n or the number of speakers."""
    weights = data.utt2dur or dict.fromkeys(data.utt2spk, 1.0)
    parts = divide(data.spk2utt, weights, n)
    target = data.path / f"split{len(parts)}"
    beside = data.path / f".split{len(parts)}.tmp.{os.getpid()}"  # hidden from digests
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


# Nothing in OUT changes before every part has been read and checked. The parts are removed last, by
# one rename, so a killed merge can be run again. The result is the same bytes for every N.

_OFFSET = re.compile(r":\d+$")
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
        merged.timed |= tables.timed_in(part)
    if "utt2spk" in merged.tables:
        # Made again from the whole: a speaker may have been split among the jobs.
        merged.tables.pop("spk2utt", None)
    return merged


def _read_part(path: Path, merged: Merged) -> None:
    if path.suffix == ".json":
        merged.settings[path.name] = path.read_text(encoding="utf-8")
        return
    if path.suffix == ".ark" and path.with_suffix(".scp").exists():
        return  # archives are read through their .scp
    headed = path.suffix != ".scp" and path.name not in FILES  # in the others # begins an id
    table, part = merged.tables.setdefault(path.name, {}), os.path.abspath(path.parent)  # noqa: PTH100
    for number, line in tables.read_lines(path):
        if number == 1 and line.startswith("#") and headed:
            merged.headers[path.name] = line
            continue
        key, value = tables.split_key(line)
        if path.name == "trials":
            key = " ".join(line.split()[:2])
        file = _OFFSET.sub("", value)
        if path.suffix == ".scp" and Path(os.path.abspath(file)).is_relative_to(part):  # noqa: PTH100
            if not file.endswith(".ark"):
                raise UserError(f"{path}: {key}: {file} would be lost with {path.parent}")
            merged.archives.add(path.name)
        if table.get(key, line) != line and path.name != "spk2utt":
            raise UserError(f"{path}: {key} is also in another part; each job must have its own")
        table[key] = line


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
        tables.write_file(out / name, text)
    for name in others:
        table = merged.tables[name]
        if name == "utt2spk":
            utt2spk = {utt: line.split()[1] for utt, line in table.items()}
            tables.write_id_lists(out / "spk2utt", tables.invert(utt2spk))
        with tables.atomic_write(out / name) as stream:
            if name in merged.headers:
                stream.write(f"{merged.headers[name]}\n")
            stream.writelines(f"{table[key]}\n" for key in tables.sort_ids(table))
    for name in merged.timed:
        tables.mark_timed(out / name)
    (out / f"split{n}").rename(out / f".merged.{os.getpid()}")
    for path in out.iterdir():  # of interrupted runs with another N
        if re.fullmatch(r"split\d+", path.name) and path.is_dir():
            shutil.rmtree(path)
    for path in out.glob(".merged.*"):  # one of a killed run may also be left
        shutil.rmtree(path)


def _write_archive(scp: Path, table: dict[str, str]) -> None:
    """Gather all objects of a table's lines in one archive."""
    from utils.archives import ArchiveWriter, read_entries  # load NumPy; audio needs neither

    with ArchiveWriter(scp.with_suffix("")) as writer:
        entries = {key: tables.split_key(table[key])[1] for key in tables.sort_ids(table)}
        for key, array in read_entries(scp, entries):
            writer.write(key, array)


def merge_parts(out: Path, n: int) -> None:
    """Join the parts OUT/split<n>/1 ... n of a data directory, and remove them."""
    write_merged(out, n, read_parts(out, n))
