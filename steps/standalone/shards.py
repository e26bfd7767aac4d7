"""Shards of an archive: disjoint parts of a folder's files, each protected by a run of its own."""

import fcntl
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from utils.cli import BadValue
from utils.jobs import Job, Jobs
from utils.orphans import guarded, lock

T = TypeVar("T")
_ANY = "*-of-*"
_NAME = "PSEUDOVOX_SHARD"  # stands for the number in commands; in no name of a folder, one hopes
_GRACE = 30.0  # seconds between asking a launcher to stop and killing it
_FAILED_FILES = 3  # exit status of a shard that has made all but these


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `total`, from 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse `3/100`."""
        found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise BadValue(f"expected K/N, such as 3/100, with K from 1 to N; not {text!r}")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def own(self, groups: Mapping[str, T]) -> dict[str, T]:
        """The groups of this shard, which depend on their names alone: files that come or go
        meanwhile move no other."""
        return {name: group for name, group in groups.items() if self._has(name)}

    def _has(self, name: str) -> bool:
        digest = hashlib.sha256(name.encode("utf-8")).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number - 1


def part_name(name: str, shard: Shard | None) -> str:
    """Name of a file that each shard has its own of.

    >>> part_name("account.json", Shard(3, 100)), part_name("account.json", None)
    ('account.3-of-100.json', 'account.json')
    """
    stem, dot, suffix = name.rpartition(".")
    return name if shard is None else f"{stem}.{shard.number}-of-{shard.total}{dot}{suffix}"


def parts_of(path: Path) -> list[Path]:
    """The files of that name that shards have left, in order."""
    stem, dot, suffix = path.name.rpartition(".")
    form = re.compile(rf"{re.escape(stem)}\.[0-9]+-of-[0-9]+{re.escape(dot + suffix)}")
    return sorted(found for found in path.parent.glob(_ANY) if form.fullmatch(found.name))


@contextmanager
def shared(stream: IO[str]) -> Iterator[None]:
    """Context in which shards may also work in the folder whose journal this process has locked."""
    fcntl.flock(stream.fileno(), fcntl.LOCK_SH)
    try:
        yield
    finally:
        lock(stream.fileno(), _GRACE)


def launch(launcher: Sequence[str], total: int, log: Path, words: Sequence[str]) -> int:
    """Run a command as a launcher's jobs until all have ended; returns the signal that stopped
    them, or 0. words: of the command, to which `--shard` is added. Failed files of a shard do not
    make its job fail, which would keep others from being started."""
    command = ["bash", "-c", f'"$@" || [[ $? -eq {_FAILED_FILES} ]]', "shard", words[0]]
    command += [f"--shard={_NAME}/{total}", *words[1:]]
    job, jobs = Job([*launcher, f"{_NAME}=1:{total}", f"{log}/{_NAME}.log", *command]), Jobs(_GRACE)
    with guarded(), jobs.watching():
        jobs.start(job)
        while jobs.running:
            jobs.wait()
    return jobs.stopped_by
