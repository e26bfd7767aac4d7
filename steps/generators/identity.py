# SPDX-License-Identifier: Apache-2.0
"""Identity indices: the random vector of an index, and which index a key gets (004, section IV).

Training speakers have the indices 0 ... S - 1. Keys get indices from S on, each by a hash of what
it is, so that the index of a key depends neither on order nor on machine. A file of used indices
(`UsedIndices`) makes sure that no two keys ever share one, whoever draws them.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from utils.arrays import Float32, Int64
from utils.cli import UserError
from utils.seeds import derive_seed

DISTRIBUTIONS = ("gaussian", "uniform")
END = 2**63  # indices are below; PCG64 takes more, Kaldi-style tables and int64 do not
N_HASHED = 32  # attempts by hash before the next free index is taken

HEADER = b"#index\t[seed, draw, level, names ...]\n"


def identity_vectors(indices: Int64, dimension: int, distribution: str) -> Float32:
    """(n,) indices -> (n, D) random vectors, each of mean 0 and variance 1 over its dimensions.

    The D values come from PCG64 seeded with the index: N(0, 1), or U(-1, 1) (004, IV.A.1; the
    normalisation: VI.A, where its scope is not said; here by vector).
    """
    vectors = np.empty((len(indices), dimension))
    for row, index in zip(vectors, indices, strict=True):
        rng = np.random.Generator(np.random.PCG64(int(index)))
        if distribution == "gaussian":
            rng.standard_normal(out=row)
        else:
            row[:] = rng.uniform(-1.0, 1.0, dimension)
    vectors -= vectors.mean(axis=1, keepdims=True)
    vectors /= np.sqrt(np.mean(vectors * vectors, axis=1, keepdims=True))
    return vectors.astype(np.float32)


def hashed_index(name: str, attempt: int, first: int, size: int) -> int:
    """The index of a name in [first, first + size); other attempts give others.

    The first are hashes. n names share none with a probability of at least 1 - n^2 / (2 size):
    for two million names and 2^63 indices, all but 2.2e-7. Later attempts go on to the next index,
    so that every index is reached in at most `size` more.
    """
    hashed = derive_seed(0, "identity index", name, f"attempt {min(attempt, N_HASHED - 1)}")
    return first + (hashed + max(0, attempt - N_HASHED + 1)) % size


def key_name(seed: int, draw: int, parts: Sequence[str]) -> str:
    """What has an index: a key in a run with a seed and a draw. One line, without tabs."""
    return json.dumps([seed, draw, *parts])


class UsedIndices:
    """A file with a line for each index in use: the index, a tab, the name that has it.

    Any number of processes may assign at the same time: each holds a lock on the whole file
    (flock; over NFS the kernel makes it a lock at the server), reads what others have added,
    appends, and returns after fsync. A process may be killed at any time: what it was writing was
    never returned, and the next one cuts off a line that is not whole. Nothing is ever removed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start_anew()

    def _start_anew(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_index: dict[int, str] = {}
        self._offset = self._n_lines = 0  # what has been read

    def assign(self, names: Sequence[str], first: int, size: int) -> list[int]:
        """The index of each name: the one in the file, else a free one in [first, first + size).

        UserError where none is free, and where a name has an index out of the range (it was
        assigned for a generator with another number of training speakers).
        """
        with self._locked() as file:
            self._read(file)
            size_before, lines = self._offset, []
            for name in dict.fromkeys(names):
                if name not in self._by_name:
                    index = self._free_index(name, first, size)
                    self._note(name, index)
                    lines.append(f"{index}\t{name}\n")
            if lines:
                self._append(file, "".join(lines).encode("ascii"), size_before)
        indices = [self._by_name[name] for name in names]
        for name, index in zip(names, indices, strict=True):
            if not first <= index < first + size:
                raise UserError(
                    f"{self.path}: {name} has index {index}, and this generator has {first} to "
                    f"{first + size - 1}; keep a file for each number of training speakers"
                )
        return indices

    def _free_index(self, name: str, first: int, size: int) -> int:
        if len(self._by_index) >= size:  # else one is free, if all others are in the range
            taken = sum(first <= index < first + size for index in self._by_index)
            if taken >= size:
                raise UserError(f"{self.path}: all {size} identity indices are in use")
        attempts = range(N_HASHED + size)
        candidates = (hashed_index(name, attempt, first, size) for attempt in attempts)
        return next(index for index in candidates if index not in self._by_index)

    def _note(self, name: str, index: int) -> None:
        self._by_name[name] = index
        self._by_index[index] = name

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, locked; made where it is not there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not self.path.exists()
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                raise UserError(
                    f"{self.path}: cannot be locked ({error.strerror}); put it on a file system "
                    "with locks"
                ) from error
            if is_new:
                _sync_folder(self.path.parent)
            yield file
        finally:
            os.close(file)  # and with it the lock

    def _read(self, file: int) -> None:
        """What was added since the last time; cut off a last line that is not whole."""
        size = os.fstat(file).st_size
        if size < self._offset:
            self._start_anew()
        data = b"".join(_read_all(file, self._offset, size))
        if self._offset == 0 and not data.startswith(HEADER):
            if not HEADER.startswith(data):
                raise UserError(f"{self.path}:1: not a file of used indices; name another file")
            os.ftruncate(file, 0)
            self._append(file, HEADER, 0)
            self._n_lines = 1
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._read_line(line)
        self._offset += len(data) - len(rest)
        if rest:  # whole but for its end: keep it, its index may be known to someone
            if _parse(rest) is None:
                os.ftruncate(file, self._offset)
            else:
                self._read_line(rest)
                self._offset += len(rest)
                self._append(file, b"\n", self._offset)

    def _read_line(self, line: bytes) -> None:
        self._n_lines += 1
        if line + b"\n" == HEADER and self._n_lines == 1:
            return
        where = f"{self.path}:{self._n_lines}"
        if (found := _parse(line)) is None:
            self._start_anew()
            raise UserError(f"{where}: not an index, a tab and a name; correct or remove the line")
        name, index = found
        if index in self._by_index or name in self._by_name:
            self._start_anew()
            raise UserError(f"{where}: index {index} or its name is there twice; keep one line")
        self._note(name, index)

    def _append(self, file: int, data: bytes, size_before: int) -> None:
        """All of it, on the disk; or none, and nothing is known of what was read so far."""
        try:
            written = 0
            while written < len(data):
                written += os.write(file, data[written:])
            os.fsync(file)
        except OSError as error:
            self._start_anew()
            os.ftruncate(file, size_before)
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._offset = size_before + len(data)


def _read_all(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        data = os.pread(file, min(end - start, 2**24), start)
        if not data:
            return
        start += len(data)
        yield data


def _parse(line: bytes) -> tuple[str, int] | None:
    index, tab, name = line.partition(b"\t")
    if not (tab and index.isdigit() and int(index) < END):
        return None
    try:
        text = name.decode("ascii")
        parts: Any = json.loads(text)
    except ValueError:  # UnicodeDecodeError is one
        return None
    return (text, int(index)) if isinstance(parts, list) else None


def _sync_folder(folder: Path) -> None:
    """So that a new file is not lost with the power."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_assigner(
    used: Path | None, first: int, size: int | None
) -> Callable[[Sequence[str]], list[int]]:
    """What gives names their indices, in [first, first + size); `size` None: all up to 2^63.

    Without a file two names may share an index, with the probability that `hashed_index` states;
    UserError where the range is chosen and so this is not negligible.
    """
    if used is not None:
        indices = UsedIndices(used)
        return lambda names: indices.assign(names, first, size or END - first)
    if size is not None:
        raise UserError("a range of identity indices needs a file of used ones (used_indices)")
    return lambda names: [hashed_index(name, 0, first, END - first) for name in names]
