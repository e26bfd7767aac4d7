"""Types of arrays, and large text tables read into arrays, column by column."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from utils.cli import UserError
from utils.tables import ADVICE_FOR_MARK, BYTE_ORDER_MARK, StrPath, file_problem

# ---- One name for each type of array; docstrings give the shapes.

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Int16 = npt.NDArray[np.int16]
Bool = npt.NDArray[np.bool_]
Intp = npt.NDArray[np.intp]


# ---- Large text tables as columns: fields found, packed and numbered by whole columns.
#
# A trial list of a million lines makes three million strings if it is split line by line. Here
# fields stay positions in the file's bytes; ids become numbers by a vectorised hash table that
# compares all bytes (no two ids are ever mixed up), and only the distinct ids become strings.

Bytes = npt.NDArray[np.uint8]
Words = list[npt.NDArray[np.uint64]]

_TAB, _NEWLINE, _CR, _BLANK = 9, 10, 13, 32
_WORD = 8  # bytes
_SHORT = 128  # bytes of the longest field that is worth packing
# The first k bytes of a little-endian word.
_FIRST_BYTES = np.array([(1 << 8 * k) - 1 for k in range(_WORD + 1)], np.uint64)


@dataclass(frozen=True, eq=False)
class Fields:
    """Table of n lines with c fields each. data: the file, padded with one word of zeros; start,
    end: (n, c) positions of the fields in it."""

    data: Bytes
    start: Int64
    end: Int64

    def texts(self, column: int, rows: Int64 | None = None) -> list[bytes]:
        """Fields of a column, for some rows (from 0) or for all."""
        start, end = self._column(column, rows)
        if _is_short(start, end):
            texts: list[bytes] = _as_strings(self._pack(start, end)).tolist()
            return texts
        data = self.data.tobytes()
        return [data[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]

    def numbered(self, column: int) -> tuple[Int64, list[bytes]]:
        """Column as codes (n,) from 0, and the distinct texts that they number."""
        start, end = self._column(column, None)
        if _is_short(start, end):
            codes, rows = number(self._pack(start, end))
            return codes, self.texts(column, rows)
        texts = self.texts(column)
        code = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        return np.array([code[text] for text in texts]), list(code)

    def rows_with(self, column: int, byte: bytes) -> Int64:
        """Rows whose field in a column holds a byte."""
        at = np.flatnonzero(self.data == ord(byte))
        row = np.searchsorted(self.start[:, column], at, side="right") - 1
        inside: Int64 = row[(row >= 0) & (at < self.end[row, column])]
        return inside

    def _column(self, column: int, rows: Int64 | None) -> tuple[Int64, Int64]:
        start, end = self.start[:, column], self.end[:, column]
        return (start, end) if rows is None else (start[rows], end[rows])

    def _pack(self, start: Int64, end: Int64) -> Words:
        """Fields as little-endian words of eight bytes, padded with zeros: an array (n,) for each
        eight bytes of the longest field. Equal where the fields are equal."""
        width, size = end - start, len(self.data) - _WORD + 1
        view = np.ndarray((size,), "<u8", self.data.data, strides=(1,))
        words = []
        for at in range(0, int(width.max()), _WORD):
            mask = _FIRST_BYTES[np.clip(width - at, 0, _WORD)]
            words.append(view[np.minimum(start + at, size - 1)] & mask)
        return words


def _is_short(start: Int64, end: Int64) -> bool:
    return bool((end - start).max() <= _SHORT)


def _as_strings(words: Words) -> npt.NDArray[np.bytes_]:
    block = np.stack(words, axis=1).astype("<u8")
    return block.view(f"S{_WORD * len(words)}")[:, 0]  # remove the padding


def read_fields(path: StrPath, n_fields: int) -> Fields:
    """Find the fields of a table; any run of blanks or tabs separates them.

    UserError names file and line: a line of another number of fields, a file that is missing, empty
    or no UTF-8 text, Windows line ends.
    """
    try:
        if Path(path).exists() and (problem := file_problem(path)):
            raise UserError(f"{path}:1: {problem}")
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}:1: cannot be read: {error.strerror}") from error
    if not content or content.isspace():
        raise UserError(f"{path}:1: the file is empty")
    if content.startswith(BYTE_ORDER_MARK):
        raise UserError(f"{path}:1: {ADVICE_FOR_MARK}")
    content = content.rstrip(b" \t\n") + b"\n"
    data = np.frombuffer(content + bytes(_WORD), np.uint8)
    gap = np.flatnonzero(data[:-_WORD] <= _BLANK)  # blanks, tabs, newlines, and non-text
    _check_text(path, content, gap, data[gap])
    before = np.concatenate(([-1], gap[:-1]))
    field = gap - before > 1
    line_end = data[gap] == _NEWLINE
    counts = np.diff(np.cumsum(field)[line_end], prepend=0)
    if (counts != n_fields).any():
        line = int(np.argmax(counts != n_fields))
        raise UserError(f"{path}:{line + 1}: {counts[line]} fields where {n_fields} are expected")
    shape = (len(counts), n_fields)
    return Fields(data, (before[field] + 1).reshape(shape), gap[field].reshape(shape))


def _check_text(path: StrPath, content: bytes, gap: Int64, separator: Bytes) -> None:
    control = (separator != _BLANK) & (separator != _NEWLINE) & (separator != _TAB)
    fault, at = "", 0
    if control.any():
        at = int(gap[np.argmax(control)])
        windows = content[at : at + 2] == b"\r\n"
        fault = "Windows line end (CR LF)" if windows else "a control character: not text"
    elif not content.isascii():
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            fault, at = "not a text file (not UTF-8)", error.start
    if fault:
        line = content.count(b"\n", 0, at) + 1
        raise UserError(f"{path}:{line}: {fault}")


def number(words: Words) -> tuple[Int64, Int64]:
    """Number the distinct values of a packed column: codes (n,) from 0, and one row of each value,
    ascending.

    A hash table in whole columns: every value goes to a bucket, the bucket to one row, and the
    values that equal that row's are done; the few that fell into another's bucket go on with
    another hash. Expected time linear in n.
    """
    n = len(words[0])
    codes, found = np.empty(n, np.int64), []
    n_found, rows = 0, np.arange(n)
    rng = np.random.Generator(np.random.PCG64(0))  # hash functions: any will do
    bits = max(8, min(20, n.bit_length()))
    while len(rows):
        factors = rng.integers(0, 2**63, len(words), np.uint64) * np.uint64(2) + np.uint64(1)
        here = [w[rows] for w in words] if len(rows) < n else words
        hashed = np.zeros(len(rows), np.uint64)
        for w, factor in zip(here, factors, strict=True):
            hashed = (hashed ^ w) * factor
            hashed ^= hashed >> np.uint64(32)
        bucket = (hashed * factors[0]) >> np.uint64(64 - bits)
        owner = np.full(1 << bits, -1)
        owner[bucket] = np.arange(len(rows))  # the last row of each bucket
        mine = owner[bucket]
        equal = np.logical_and.reduce([w == w[mine] for w in here])
        used = np.flatnonzero(owner >= 0)
        code = np.empty(1 << bits, np.int64)
        code[used] = np.arange(n_found, n_found + len(used))
        codes[rows[equal]] = code[bucket[equal]]
        found.append(rows[owner[used]])
        n_found += len(used)
        rows = rows[~equal]
    row = np.concatenate(found)
    order = np.argsort(row)  # as in the file: sorted values stay sorted
    place = np.empty(n_found, np.int64)
    place[order] = np.arange(n_found)
    return place[codes], row[order]
