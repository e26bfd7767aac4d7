# SPDX-License-Identifier: Apache-2.0
"""Digests of content: of files, of folders, and of what the lines of an .scp name.

A digest that was found once is remembered with the file's size, times and inode, so that files that
have not changed are not read again. The memory may be lost or broken: then they are.
"""

import hashlib
import json
import logging
import os
import re
import shlex
import sqlite3
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO

ABSENT = "absent"
SETTLED = 2.0  # seconds: a file changed since then could change once more with the same time
_CHUNK = 1 << 20  # bytes
_MANY = 4 << 30  # bytes that are read before this is said
_OBJECT = re.compile(r"(?P<file>.+?):(?P<offset>\d+)(?P<range>\[.*\])?")  # of an archive
_PASSING = re.compile(r"log|split\d+")  # folders of a step's OUT that are not what it made


def sha256(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: object) -> str:
    """Of what json can write; the order of names in a dict does not count."""
    return sha256(json.dumps(value, sort_keys=True).encode())


class _Memory:
    """Digests of files by device, inode, size and times, in a file of SQLite that runs share."""

    def __init__(self, path: Path) -> None:
        self.path, self.n_read = path, 0
        self._new: dict[str, tuple[str, str]] = {}
        self._db: sqlite3.Connection | None = None
        with self._or_without():
            if path.parent.is_dir():
                self._db = sqlite3.connect(path, timeout=60)
                self._db.execute("PRAGMA synchronous=OFF")  # what is lost is read again
                self._db.execute("CREATE TABLE IF NOT EXISTS d1 (k TEXT PRIMARY KEY, s, d)")

    @contextmanager
    def _or_without(self) -> Iterator[None]:
        """Go on without a memory that fails, and remove one that is broken."""
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
    """Remember digests in a file, where its folder exists, while the block runs."""
    memory = _Memory(path)
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)
        memory.write()


def _signature(found: os.stat_result) -> str:
    return f"{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _remembered(kind: str, found: list[os.stat_result], compute: Callable[[], str]) -> str:
    """What compute finds in files, of which the first stands for all; remembered once settled."""
    memory = _memory.get()
    if memory is None:
        return compute()
    key = f"{kind}{found[0].st_dev}:{found[0].st_ino}"
    signature = _signature(found[0])
    if len(found) > 1:
        signature += " " + digest_json([[f.st_ino, _signature(f)] for f in found[1:]])
    digest = memory.get(key, signature)
    if digest is None:
        before = time.time()
        _say_once(memory, sum(f.st_size for f in found))
        digest = compute()
        if all(max(f.st_ctime, f.st_mtime) < before - SETTLED for f in found):
            memory.put(key, signature, digest)
    return digest


def _say_once(memory: _Memory, size: int) -> None:
    said = memory.n_read > _MANY
    memory.n_read += size
    if memory.n_read > _MANY and not said:
        logging.info("audio and other large files are read once, to notice when they change")


def _stat(path: str | Path) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def digest_file(path: str | Path) -> str:
    """Digest of a file's content; of a YAML file without comments. ABSENT where there is none."""
    found = _stat(path)
    if found is None:
        return ABSENT
    if not stat.S_ISREG(found.st_mode):
        return "not a file"
    if str(path).endswith((".yaml", ".yml")):
        return _remembered("yaml ", [found], lambda: _read_yaml(path))
    return _remembered("", [found], lambda: _read_file(path))


def _read_file(path: str | Path) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_yaml(path: str | Path) -> str:
    import yaml  # here: most steps have none

    data = Path(path).read_bytes()
    try:  # events have no comments, and nothing is constructed of them
        return sha256("\n".join(map(repr, yaml.parse(data))).encode())
    except yaml.YAMLError:
        return sha256(data)


def read_scp(path: Path) -> tuple[str, list[str], set[tuple[int, int]]]:
    """Digest of the lines of an .scp, the files that they name, and the archives (device, inode)
    that they name objects of.

    Objects count by key and content, wherever they stand: into how many archives they were written
    changes nothing. Of a command (`... |`) the words that are files are named.
    """
    lines: list[str] = []
    files: list[str] = []
    objects: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        key, _, named = line.strip().replace("\t", " ").partition(" ")
        named = named.strip()
        match = _OBJECT.fullmatch(named)
        if match and (match["file"] in objects or _stat(match["file"])):
            objects[match["file"]].append((int(match["offset"]), key + (match["range"] or "")))
            continue
        lines.append(line)
        files += _words(named) if named.endswith("|") else [named] if named else []
    stats = [found for name in sorted(objects) if (found := _stat(name))]
    if objects:
        known = [path.stat(), *stats]
        lines.append(_remembered("scp ", known, lambda: _digest_objects(objects)))
    return digest_json(lines), files, {(f.st_dev, f.st_ino) for f in stats}


def digest_scp(path: Path) -> str:
    """Digest of what the lines of an .scp name: of objects of archives, and of files."""
    lines, files, _ = read_scp(path)
    return digest_json([lines, {name: digest_file(name) for name in files}])


def _words(command: str) -> list[str]:
    try:
        return [word for word in shlex.split(command[:-1]) if Path(word).is_file()]
    except (ValueError, OSError):
        return []


def _digest_objects(objects: dict[str, list[tuple[int, str]]]) -> str:
    """Of all (key, content) of archives, in the order of the keys."""
    found: list[tuple[str, str]] = []
    for archive, places in objects.items():
        # An object's key and a blank stand before it.
        starts = {at: max(at - len(key.partition("[")[0].encode()) - 1, 0) for at, key in places}
        begins = sorted(starts.values())
        ends = dict(zip(begins, [*begins[1:], Path(archive).stat().st_size], strict=True))
        with Path(archive).open("rb") as stream:
            parts = {at: _digest_part(stream, begin, ends[begin]) for at, begin in starts.items()}
        found += [(key, parts[at]) for at, key in places]
    return digest_json(sorted(found))


def _digest_part(stream: IO[bytes], begin: int, end: int) -> str:
    stream.seek(begin)
    digest = hashlib.sha256()
    while begin < end and (data := stream.read(min(_CHUNK, end - begin))):
        digest.update(data)
        begin += len(data)
    return digest.hexdigest()


def contents(folder: Path, *, ours: bool) -> dict[str, str]:
    """Digests of the visible files in a folder, by their names in it, and of files elsewhere that
    its .scp files name, by these names.

    Links are followed. ours: a step or a data directory, whose log/, split<N>/ and files that are
    being written (.tmp.) do not count.
    """
    files: dict[str, str] = {}
    named: list[str] = []
    archives: set[tuple[int, int]] = set()
    paths = {os.path.relpath(path, folder): path for path in _walk(folder, ours)}
    for name in [name for name in paths if name.endswith(".scp")]:
        files[name], of_files, of_archives = read_scp(Path(paths.pop(name)))
        named += of_files
        archives |= of_archives
    for name, path in paths.items():
        found = _stat(path)
        if found is None or (found.st_dev, found.st_ino) not in archives:
            files[name] = digest_file(path)
    for path in named:
        if os.path.relpath(path, folder) not in files:
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
