"""Digests of content: of files, of folders, and of the files in the lines of an .scp.

A digest is remembered with the file's size, times and inode, so that unchanged files are not read
again. If the memory is lost or broken, they are read.
"""

import hashlib
import json
import os
import re
import shlex
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from itertools import chain
from pathlib import Path

ABSENT = "absent"
SETTLED = 2.0  # seconds: a file changed since then could change once more with the same time

_OBJECT = re.compile(r"(?P<file>.+?):\d+(\[.*\])?")  # of an archive
# Folders of a step's OUT that are not its output; checkpoints hold seconds.
_PASSING = re.compile(r"log|q|checkpoints|split\d+")


def sha256(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: object) -> str:
    """Digest of a value that json can write; the order of names in a dict does not count."""
    return sha256(json.dumps(value, sort_keys=True).encode())


class _Memory:
    """Digests of files by device, inode, size and times, in an SQLite file that runs share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new: dict[str, tuple[str, str]] = {}
        self._db: sqlite3.Connection | None = None
        with self._or_without():
            if path.parent.is_dir():
                self._db = sqlite3.connect(path, timeout=60)
                self._db.execute("PRAGMA synchronous=OFF")  # lost values are computed again
                self._db.execute("CREATE TABLE IF NOT EXISTS d1 (k TEXT PRIMARY KEY, s, d)")

    @contextmanager
    def _or_without(self) -> Iterator[None]:
        """Continue without a memory that fails, and remove one that is broken."""
        try:
            yield
        except sqlite3.Error as error:
            self._db = None
            if not isinstance(error, sqlite3.OperationalError):
                for suffix in ("", "-journal"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def get(self, key: str, signature: str) -> str | None:
        found = self._new.get(key)
        with self._or_without():
            if found is None and self._db is not None:
                found = self._db.execute("SELECT s, d FROM d1 WHERE k = ?", (key,)).fetchone()
        return found[1] if found and found[0] == signature else None

    def put(self, key: str, signature: str, digest: str) -> None:
        self._new[key] = (signature, digest)

    def write(self) -> None:
        rows = [(key, *row) for key, row in self._new.items()]
        with self._or_without():
            if self._db is not None and rows:
                with self._db:
                    self._db.executemany("INSERT OR REPLACE INTO d1 VALUES (?, ?, ?)", rows)
        if self._db is not None:
            self._db.close()


_memory: ContextVar[_Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering(path: Path) -> Iterator[None]:
    """Remember digests in a file, if its folder exists, while the block runs."""
    memory = _Memory(path)
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)
        memory.write()


def _remembered(kind: str, found: os.stat_result, compute: Callable[[], str]) -> str:
    """Result of `compute` for a file; remembered once the file has settled."""
    memory = _memory.get()
    if memory is None:
        return compute()
    key = f"{kind}{found.st_dev}:{found.st_ino}"
    signature = f"{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"
    digest = memory.get(key, signature)
    if digest is None:
        before = time.time()
        digest = compute()
        if max(found.st_ctime, found.st_mtime) < before - SETTLED:
            memory.put(key, signature, digest)
    return digest


def digest_file(path: str | Path) -> str:
    """Digest of a file's content; of a YAML file without comments, and of a variant as of the file
    that it stands for. ABSENT for a missing file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of every file of a corpus: a Path takes longer
    except (FileNotFoundError, NotADirectoryError):
        return _read_yaml(path) if is_variant(path) else ABSENT
    if not stat.S_ISREG(found.st_mode):
        return "not a file"
    if str(path).endswith((".yaml", ".yml")):
        return _remembered("yaml ", found, lambda: _read_yaml(path))
    return _remembered("", found, lambda: _read_file(path))


def _read_file(path: str | Path) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remembered(kind: str, path: Path, compute: Callable[[], str]) -> str:
    """Result of `compute` for a file, remembered under a kind as digests are."""
    return _remembered(f"{kind} ", path.stat(), compute)


def is_variant(path: str | Path) -> bool:
    """Whether settings are in a list of variants, not in a file of their own."""
    if not str(path).endswith(".yaml") or Path(path).exists():
        return False
    from utils.settings import is_settings  # here: most steps have none

    return is_settings(path)


def _read_yaml(path: str | Path) -> str:
    import yaml  # here: most steps have none

    from utils.settings import settings_text

    data = settings_text(path)
    try:  # events have no comments, and construct nothing
        return sha256("\n".join(map(repr, yaml.parse(data))).encode())
    except yaml.YAMLError:
        return sha256(data)


def read_scp(path: Path) -> dict[str, None]:
    """Files in the lines of an .scp: paths relative to here or, in others' data directories, to a
    folder above it (both, where both are there); for a command (`... |`), those of its words that
    are files."""
    there, above = os.path.exists, [*map(str, path.absolute().parents)]  # Path.exists takes longer
    ours = os.getcwd() in above  # noqa: PTH109

    def find(name: str) -> Iterator[str]:
        here = name.startswith("/") or there(name)
        if here:
            yield name
        if not here or not (ours or name.startswith("/")):
            yield next(filter(there, (f"{folder}/{name}" for folder in above)), name)

    files: dict[str, None] = {}
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        named = line.strip().replace("\t", " ").partition(" ")[2].strip()
        match = _OBJECT.fullmatch(named)
        if match and (match["file"] in files or Path(match["file"]).is_file()):
            named = match["file"]
        if named.endswith("|"):
            every = chain.from_iterable(map(find, _words(named)))
            files |= dict.fromkeys(filter(os.path.isfile, every))
        elif named:
            files |= dict.fromkeys(find(named))
    return files


def digest_scp(path: Path) -> str:
    """Digest of the lines of an .scp, and of the files in them."""
    return digest_json([digest_file(path), {name: digest_file(name) for name in read_scp(path)}])


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command[:-1])
    except ValueError:
        return []


def contents(folder: Path, *, ours: bool) -> dict[str, str]:
    """Digests of the visible files in a folder, by their names in it, and of files elsewhere that
    its .scp files name, by these names.

    Links are followed. ours: a step or a data directory, whose log/, q/, checkpoints/, split<N>/
    and files that are being written (.tmp.) do not count.
    """
    paths = {path.removeprefix(f"{folder}/"): path for path in _walk(folder, ours)}
    relative = cache(partial(os.path.relpath, start=folder))  # of few folders with many files
    files = {name: digest_file(path) for name, path in paths.items()}
    for name in [name for name in paths if name.endswith(".scp")]:
        for path in read_scp(Path(paths[name])):
            top, name_there = os.path.split(path)
            if os.path.normpath(f"{relative(top or '.')}/{name_there}") not in files:
                files[path] = digest_file(path)
    return dict(sorted(files.items()))


def _refuse(error: OSError) -> None:
    raise error


def _walk(folder: Path, ours: bool) -> Iterator[str]:
    seen: set[tuple[int, int]] = set()
    for top, folders, names in os.walk(folder, onerror=_refuse, followlinks=True):
        found = Path(top).stat()
        if (found.st_dev, found.st_ino) in seen:  # a loop of links
            folders.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        passing = ours and Path(top) == folder
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not (passing and _PASSING.fullmatch(name))
        )
        for name in sorted(names):
            if not name.startswith(".") and not (ours and ".tmp." in name):
                yield f"{top}/{name}"
