"""Kaldi archives (.ark and .scp) of vectors and matrices: checked reading, atomic writing.

Binary objects are decoded and encoded by kaldiio; the rest is done here, because a shared archive
is untrusted input: kaldiio unpickles `PKL` objects, runs `cmd |` through a shell, misreads small
text archives, takes a vector cut at a whole number for a shorter one, and names neither file nor
key when it fails. Every error here is a UserError with file and key.

A path in an .scp is relative to the current directory, as in Kaldi. Ranges `[first:last]` count
from zero, include `last`, and are for matrices only.
"""

import io
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt
from kaldiio.matio import read_matrix_or_vector, write_array

from utils.arrays import Float32, Float64
from utils.cli import BadValue, UserError, positive, refusing
from utils.tables import StrPath, atomic_write, file_problem, read_map, write_map

Array = npt.NDArray[np.float64] | npt.NDArray[np.float32]

_BROKEN = (ValueError, AssertionError, struct.error, OverflowError, MemoryError)  # of kaldiio
_LONGEST_OFFSET = 18  # digits; below 2^63
_LONGEST_KEY = 4096  # bytes; a longer "key" means that binary data is misread
_FOREIGN = {b"PKL": "a Python pickle, which can run code", b"NPY": "a NumPy file"} | dict.fromkeys(
    (b"AUD", b"RIF", b"fLa"), "audio"
)
_RXFILENAME = re.compile(r"(?P<file>.+?)(?::(?P<offset>\d+))?(?:\[(?P<range>[\d:, ]*)\])?", re.S)


def read_vectors(path: StrPath, *, check_finite: bool = True) -> dict[str, Float32]:
    """Read all vectors of an .scp or .ark file, binary or text, in file order: key -> (D,) float32.

    Raises UserError naming file and key: duplicate key, not a vector, of another length than the
    first (x-vectors of two extractors in one file), empty, truncated, not finite, pickled, pipe
    (nothing is run).
    """
    suffix = Path(path).suffix
    if suffix not in (".ark", ".scp"):
        raise UserError(f"{path}: neither an .ark nor an .scp file")
    objects = _read_ark(path) if suffix == ".ark" else ObjectReader(path).objects()
    return dict(_check_vectors(path, objects, check_finite=check_finite))


def _check_vectors(
    path: StrPath, objects: Iterable[tuple[str, Array]], *, check_finite: bool = True
) -> Iterator[tuple[str, Float32]]:
    """Objects checked as `read_vectors` describes."""
    seen: set[str] = set()
    first, length = "", 0
    for key, array in objects:
        where = f"{path}: {key}"
        if key in seen:
            raise UserError(f"{where} is listed twice; keep one entry for it")
        vector = _checked(array, 1, where, check_finite=check_finite)
        first, length = first or key, length or len(array)
        if len(array) != length:
            raise UserError(
                f"{where}: length {len(array)}, but {first} has {length}; "
                "do not mix vectors of different extractors"
            )
        seen.add(key)
        yield key, vector
    if not seen:
        raise UserError(f"{path}: is empty; make it again")


class ObjectReader:
    """Single matrices or vectors of an .scp file, read on demand; only its lines are kept.

    Pipes are refused. Errors as in `read_vectors`, and for an unknown key.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._entries = read_map(path, rest_of_line=True)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def vector(self, key: str) -> Float32:
        """Vector (D,) float32 of a key."""
        return self._read(key, 1)

    def matrix(self, key: str) -> Float32:
        """Matrix (T, D) float32 of a key."""
        return self._read(key, 2)

    def vectors(self) -> Iterator[tuple[str, Float32]]:
        """All vectors, of one length, one by one in the order of the file: (key, (D,) float32)."""
        return _check_vectors(self.path, self.objects())

    def objects(self) -> Iterator[tuple[str, Array]]:
        """All objects in the order of the file, as they are."""
        return read_entries(self.path, self._entries)

    def _read(self, key: str, ndim: int) -> Float32:
        if key not in self._entries:
            raise UserError(f"{self.path}: {key} is not in it")
        ((_, array),) = read_entries(self.path, {key: self._entries[key]})
        return _checked(array, ndim, f"{self.path}: {key}")


def _checked(array: Array, ndim: int, where: str, *, check_finite: bool = True) -> Float32:
    """Vector or matrix as float32; UserError for an object of another kind."""
    _check_shape(array, ndim, where)
    with np.errstate(over="ignore"):  # overflow becomes infinite and is found below
        single = array.astype(np.float32)
    if check_finite and not np.isfinite(single).all():
        raise UserError(f"{where}: holds a value that is not a finite number; make it again")
    return single


def _check_shape(array: Array, ndim: int, where: str) -> None:
    if array.ndim != ndim or array.size == 0:
        wanted = "vector" if ndim == 1 else "matrix"
        raise UserError(f"{where}: {_shape(array)} where a {wanted} is expected")


class ArchiveWriter:
    """Writer of `<stem>.ark` and `<stem>.scp`; both appear if the `with` block succeeds, or none.

    >>> with ArchiveWriter("exp/x/xvector") as writer:  # doctest: +SKIP
    ...     writer.write("1089-0001", np.zeros(512))

    Vectors (D,) and matrices (T, D) are stored as little-endian float32, uncompressed.
    The .scp is sorted in C order and is put in place after its .ark; an older .scp is removed
    first, so an .scp that exists always points at whole data. UserError if nothing was written, and
    for a bad or duplicate key.
    """

    def __init__(self, stem: StrPath) -> None:
        self.ark, self.scp = (Path(f"{os.fspath(stem)}.{end}") for end in ("ark", "scp"))
        self._offsets: dict[str, int] = {}
        self._block = self._open()

    @contextmanager
    def _open(self) -> Iterator[None]:
        with atomic_write(self.ark, "wb") as self._stream:
            yield
            if not self._offsets:
                raise UserError(f"{self.ark}: there is nothing to write; the input gave no items")
            self.scp.unlink(missing_ok=True)
        write_map(self.scp, {key: f"{self.ark}:{at}" for key, at in self._offsets.items()})

    def __enter__(self) -> Self:
        self._block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)

    def __len__(self) -> int:
        """Number of objects written."""
        return len(self._offsets)

    def write(self, key: str, array: npt.NDArray[Any]) -> None:
        """Append one vector or matrix."""
        if key.split() != [key] or not key.isprintable():
            raise UserError(
                f"{self.ark}: {key!r} cannot be a key: blanks and the like are not allowed"
            )
        if key in self._offsets:
            raise UserError(f"{self.ark}: {key} is written twice")
        if array.ndim not in (1, 2) or array.size == 0:
            raise UserError(f"{self.ark}: {key}: {_shape(array)} is neither a vector nor a matrix")
        self._stream.write(f"{key} ".encode())
        self._offsets[key] = self._stream.tell()
        write_array(self._stream, np.ascontiguousarray(array, dtype=np.float32))


def write_archive(stem: StrPath, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write `<stem>.ark` and `<stem>.scp` of vectors or matrices; see ArchiveWriter."""
    with ArchiveWriter(stem) as writer:
        for key, array in arrays.items():
            writer.write(key, array)


def read_counts(path: StrPath) -> dict[str, int]:
    """Read a table of counts such as num_utts.ark (`<speaker> <count>`, text), counts from 1."""
    counts: dict[str, int] = {}
    for key, value in read_map(path).items():
        with refusing(f"{path}: {key}: {{}}", BadValue):
            counts[key] = positive(value)
    if not counts:
        raise UserError(f"{path}: is empty; make it again")
    return counts


def read_object(path: StrPath, ndim: int) -> Float64:
    """Read the vector (D,) or matrix (R, C) in a Kaldi object file, binary or text."""
    with _open(str(path), str(path)) as stream:
        array = _read_object(stream, str(path))
    _check_shape(array, ndim, str(path))
    if not np.isfinite(array).all():
        raise UserError(f"{path}: holds a value that is not a finite number")
    return array.astype(np.float64)


def write_object(path: StrPath, array: Float64) -> None:
    """Write a vector (D,) as Kaldi text, such as mean.vec, or a matrix (R, C) in binary, such as
    transform.mat, atomically; reading it back gives the same float64."""
    if array.size == 0 or not np.isfinite(array).all():
        raise UserError(f"{path}: not written: {_shape(array)}, or a value that is not finite")
    with atomic_write(path, "wb") as stream:
        if array.ndim == 2:
            write_array(stream, np.ascontiguousarray(array, dtype=np.float64))
            return
        # trim="0" keeps a decimal point in the number: kaldiio takes "1e-05" for an integer.
        numbers = " ".join(np.format_float_scientific(x, trim="0") for x in array)
        stream.write(f" [ {numbers} ]\n".encode())


def _shape(array: npt.NDArray[Any]) -> str:
    if array.size == 0:
        return "an empty object"
    if array.ndim == 1:
        return f"a vector of {len(array)}"
    return f"a {' x '.join(map(str, array.shape))} {'matrix' if array.ndim == 2 else 'array'}"


def _open(name: str, where: str) -> IO[bytes]:
    listed = where != name
    place = f"{where}: {name}" if listed else name
    with refusing(f"{place}: cannot be read: {{}}", OSError):
        if problem := file_problem(name):
            hint = "; paths in it are relative to the current directory" * listed
            raise UserError(f"{place}: {problem}{hint}")
        return Path(name).open("rb")


def read_entries(path: StrPath, entries: Mapping[str, str]) -> Iterator[tuple[str, Array]]:
    """Objects that the entries (key -> extended file name) of an .scp `path` refer to, in order."""
    last_name, stream = "", None
    with ExitStack() as stack:
        for key, rxfilename in entries.items():
            where = f"{path}: {key}"
            name, offset, ranges = _split_rxfilename(rxfilename, where)
            if stream is None or name != last_name:
                stack.close()
                stream = stack.enter_context(_open(name, where))
                last_name = name
            stream.seek(offset)
            array = _read_object(stream, f"{where} ({name}:{offset})")
            yield key, array if ranges is None else _cut(array, ranges, where)


def _read_ark(path: StrPath) -> Iterator[tuple[str, Array]]:
    with _open(str(path), str(path)) as stream:
        while (key := _read_key(stream, str(path))) is not None:
            yield key, _read_object(stream, f"{path}: {key}")


def _split_rxfilename(rxfilename: str, where: str) -> tuple[str, int, str | None]:
    """Split `file[:offset][range]` into its parts. UserError for a pipe, among others."""
    if rxfilename.endswith("|") or rxfilename.startswith("|"):
        raise UserError(f"{where}: {rxfilename!r} is a pipe, which would run a command; refused")
    match = _RXFILENAME.fullmatch(rxfilename)
    if match is None or rxfilename == "-":
        raise UserError(f"{where}: {rxfilename!r} names no file")
    if len(match["offset"] or "") > _LONGEST_OFFSET:
        raise UserError(f"{where}: the offset {match['offset'][:20]}... is beyond all files")
    return match["file"], int(match["offset"] or 0), match["range"]


def _cut(array: Array, ranges: str, where: str) -> Array:
    """Cut rows, or rows and columns, of a matrix: `[first:last,first:last]`, last included."""
    parts = ranges.replace(" ", "").split(",")
    if array.ndim != 2 or len(parts) > 2:
        raise UserError(f"{where}: the range [{ranges}] does not fit {_shape(array)}")
    slices = []
    for part, size in zip(parts, array.shape, strict=False):
        if part in ("", ":"):
            slices.append(slice(None))
            continue
        match = re.fullmatch(r"(\d+):(\d+)", part)
        if match is None or not int(match[1]) <= int(match[2]) < size:
            raise UserError(f"{where}: the range [{ranges}] does not fit {_shape(array)}")
        slices.append(slice(int(match[1]), int(match[2]) + 1))
    return array[tuple(slices)]


def _read_key(stream: IO[bytes], path: str) -> str | None:
    """Read the key before the next object, with its blank; None at the end of the archive."""
    while (char := stream.read(1)) in (b"\n", b" "):
        pass
    if not char:
        return None
    key = bytearray()
    while char not in (b" ", b"\t", b"\n", b"") and len(key) < _LONGEST_KEY:
        key += char
        char = stream.read(1)
    text = key.decode("utf-8", errors="replace")
    if char not in (b" ", b"\t") or "\N{REPLACEMENT CHARACTER}" in text or not text.isprintable():
        raise UserError(
            f"{path}: no key at byte {stream.tell() - len(key)}; the archive is damaged"
        )
    return text


def _read_object(stream: IO[bytes], where: str) -> Array:
    """Read the object at the stream's position, and leave the stream after it."""
    head = stream.read(3)
    if head in _FOREIGN:
        raise UserError(f"{where}: holds {_FOREIGN[head]}; only Kaldi's own objects are read")
    stream.seek(-len(head), io.SEEK_CUR)
    if head == b"\0B\4":
        raise UserError(f"{where}: holds integers where floating-point numbers are expected")
    return _read_binary(stream, where) if head[:2] == b"\0B" else _read_text(stream, where)


def _read_binary(stream: IO[bytes], where: str) -> Array:
    start = stream.tell()
    with refusing(f"{where}: truncated or not a Kaldi object; make it again", *_BROKEN):
        array, size = read_matrix_or_vector(stream, return_size=True)
    if array.ndim == 1 and stream.tell() - start != size:
        raise UserError(f"{where}: truncated; make it again")
    return np.asarray(array)


def _read_text(stream: IO[bytes], where: str) -> Array:
    """Read ` [ 1 2 3 ]` as a vector, and with a line break after the bracket as a matrix."""
    text = bytearray()
    while not text.endswith(b"]"):
        line = stream.readline()
        text += line.rstrip()
        if not line or (not text.lstrip().startswith(b"[") and text.strip()):
            raise UserError(f"{where}: truncated, or no vector or matrix (`[ ... ]`)")
        text += b"" if text.endswith(b"]") else b"\n"
    body = text.strip()[1:-1].decode("ascii", errors="replace")
    rows = [line.split() for line in body.split("\n") if line.strip()]
    with refusing(f"{where}: a word that is not a number, or rows of unequal length", ValueError):
        array = np.array(rows, dtype=np.float64)
    return array if "\n" in body or not rows else array[0]
