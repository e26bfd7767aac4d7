"""Trial lists and score files: checked reading of all usual formats, joining, atomic writing."""

import io
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import overload

import numpy as np

from utils.arrays import Bool, Fields, Float64, Int64, read_fields
from utils.cli import UserError
from utils.tables import StrPath, atomic_write, read_lines

# ---- Trial lists and score files: checked reading, joining by id pair, atomic writing.
#
# Trials: `<enrol> <trial> target|nontarget`; scores: `<enrol> <trial> <score>`. Any run of blanks
# or tabs separates fields. A line is one row, so row i stands on line i + 1. The readers work on
# whole columns (950,000 rows in half a second): ids are kept as codes into a list of the distinct
# names.

_LABELS = (b"nontarget", b"target")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Ids(Sequence[str]):
    """Column of ids: row i is `names[codes[i]]`; the names are distinct.

    >>> Ids.of(["a", "b", "a"]).codes.tolist()
    [0, 1, 0]
    """

    codes: Int64
    names: list[str]

    @classmethod
    def of(cls, column: Iterable[str]) -> "Ids":
        """Make ids of a column, unchanged if they are ids already."""
        if isinstance(column, Ids):
            return column
        texts = list(column)
        code = {name: i for i, name in enumerate(dict.fromkeys(texts))}
        codes = np.fromiter(map(code.__getitem__, texts), np.int64, count=len(texts))
        return cls(codes, list(code))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "Ids": ...
    def __getitem__(self, index: int | slice) -> "str | Ids":
        if isinstance(index, slice):
            return Ids(self.codes[index], self.names)
        return self.names[int(self.codes[index])]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str]:
        return map(self.names.__getitem__, self.codes.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Trials:
    """Pairs to compare: `enrol[i]` against `trial[i]`, same speaker where `target[i]`."""

    enrol: Sequence[str]
    trial: Sequence[str]
    target: Bool

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of pairs, finite float64; higher means more alike."""

    enrol: Sequence[str]
    trial: Sequence[str]
    score: Float64

    def __len__(self) -> int:
        return len(self.score)


def read_trials(path: StrPath) -> Trials:
    """Read a trial list; UserError names file and line of the first fault (a pair listed twice, an
    unknown label, a wrong number of fields, a file that is empty or no text)."""
    fields = read_fields(path, 3)
    target = _parse_labels(path, fields)
    pairs = Trials(_ids(fields, 0), _ids(fields, 1), target)
    check_pairs_once(path, pairs, "listed")
    return pairs


def read_scores(path: StrPath) -> Scores:
    """Read a score file; UserError names file and line of the first fault (a pair scored twice, a
    score that is not a finite number, and the faults of `read_trials`)."""
    fields = read_fields(path, 3)
    values = _parse_scores(path, fields)
    pairs = Scores(_ids(fields, 0), _ids(fields, 1), values)
    check_pairs_once(path, pairs, "scored")
    return pairs


def join_scores(
    trials: Trials,
    scores: Scores,
    *,
    trials_path: StrPath = "trials",
    scores_path: StrPath = "scores",
) -> Float64:
    """Find the score of each trial by the id pair, (n_trials,) in trial order.

    A trial without a score is a UserError naming line and pair; scores of pairs that are not trials
    are left out with a warning that counts them.
    """
    wanted, given = _shared_keys(trials, scores)
    order = np.argsort(given)
    place = np.searchsorted(given, wanted, sorter=order)
    row = order[np.minimum(place, len(given) - 1)]
    missing = given[row] != wanted
    if missing.any():
        i = int(np.argmax(missing))
        more = int(missing.sum()) - 1
        raise UserError(
            f"{trials_path}:{i + 1}: no score for {trials.enrol[i]} {trials.trial[i]} in "
            f"{scores_path}" + (f" (nor for {more} more trials)" if more else "")
        )
    if len(scores) > len(trials):
        logger.warning(
            "%s: %d of %d scores are for pairs that are not in %s; left out",
            scores_path,
            len(scores) - len(trials),
            len(scores),
            trials_path,
        )
    return scores.score[row]


def merge_scores(parts: Mapping[Path, Scores]) -> Scores:
    """Join the scores of several files; UserError for a pair that is in two of them."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    enrol, trial = (
        Ids.of(chain.from_iterable(getattr(part, side) for part in parts.values()))
        for side in ("enrol", "trial")
    )
    merged = Scores(enrol, trial, np.concatenate([part.score for part in parts.values()]))
    check_pairs_once(" + ".join(map(str, parts)), merged, "scored")
    return merged


def write_trials(path: StrPath, trials: Trials) -> None:
    """Write a trial list sorted in C order, atomically."""
    labels = [_LABELS[code].decode() for code in trials.target.astype(int)]
    _write(path, trials, labels, "listed")


def write_scores(path: StrPath, scores: Scores) -> None:
    """Write a score file sorted in C order, atomically; scores read back exactly (float64)."""
    finite = np.isfinite(scores.score)
    if not finite.all():
        i = int(np.argmin(finite))
        raise UserError(
            f"{path}: the score of {scores.enrol[i]} {scores.trial[i]} is {scores.score[i]}, "
            "not a finite number"
        )
    _write(path, scores, [repr(value) for value in scores.score.tolist()], "scored")


def _write(path: StrPath, pairs: Trials | Scores, values: Sequence[str], verb: str) -> None:
    for name in (*Ids.of(pairs.enrol).names, *Ids.of(pairs.trial).names):
        if name.split() != [name]:
            raise UserError(f"{path}: {name!r} cannot be an id: ids have no blanks")
    check_pairs_once(path, pairs, verb)
    rows = (f"{e} {t} {v}\n" for e, t, v in zip(pairs.enrol, pairs.trial, values, strict=True))
    with atomic_write(path, "wb") as stream:
        stream.writelines(sorted(row.encode("utf-8") for row in rows))


def _ids(fields: Fields, column: int) -> Ids:
    codes, texts = fields.numbered(column)
    return Ids(codes, [text.decode("utf-8") for text in texts])


def _parse_labels(path: StrPath, fields: Fields) -> Bool:
    codes, labels = fields.numbered(2)
    wrong = np.array([label not in _LABELS for label in labels])
    if wrong.any():
        line = int(np.argmax(wrong[codes]))
        label = labels[codes[line]].decode("utf-8")
        raise UserError(f"{path}:{line + 1}: label {label} is neither target nor nontarget")
    return np.array([label == b"target" for label in labels])[codes]


def _parse_scores(path: StrPath, fields: Fields) -> Float64:
    """Numbers of the third column; UserError names the first that is none or not finite."""
    texts = fields.texts(2)
    try:
        values = np.fromiter(map(float, texts), np.float64, count=len(texts))
    except ValueError:
        values = np.array([_number(text) for text in texts])
    values[fields.rows_with(2, b"_")] = np.nan  # Python reads 1_000 as a number; nobody else does
    finite = np.isfinite(values)
    if not finite.all():
        i = int(np.argmin(finite))
        raise UserError(f"{path}:{i + 1}: score {texts[i].decode()} is not a finite number")
    return values


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _keys(pairs: Trials | Scores) -> Int64:
    """Key of each pair: a whole number, the same for the same pair."""
    enrol, trial = Ids.of(pairs.enrol), Ids.of(pairs.trial)
    return enrol.codes * len(trial.names) + trial.codes


def check_pairs_once(path: StrPath, pairs: Trials | Scores, verb: str) -> None:
    """Raise a UserError that names the second line of a pair; verb: the repeated action."""
    keys = _keys(pairs)
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    _, first = np.unique(keys, return_index=True)
    again = np.ones(len(keys), np.bool_)
    again[first] = False
    i = int(np.argmax(again))
    line = int(np.argmax(keys == keys[i])) + 1
    raise UserError(
        f"{path}:{i + 1}: {pairs.enrol[i]} {pairs.trial[i]} is {verb} twice (first on line {line})"
    )


def _shared_keys(trials: Trials, scores: Scores) -> tuple[Int64, Int64]:
    """Pair keys of trials and of scores in one numbering; -1 for a scored pair of unknown ids."""
    enrol, trial = Ids.of(trials.enrol), Ids.of(trials.trial)
    e = _recode(Ids.of(scores.enrol), enrol.names)
    t = _recode(Ids.of(scores.trial), trial.names)
    given = np.where((e < 0) | (t < 0), -1, e * len(trial.names) + t)
    return _keys(trials), given


def _recode(column: Ids, names: list[str]) -> Int64:
    """Codes of a column in another list of names, -1 for a name that is not in it."""
    code = {name: i for i, name in enumerate(names)}
    table = np.array([code.get(name, -1) for name in column.names], np.int64)
    return table[column.codes]


# ---- Trials and scores in the formats of other toolkits.
#
# kaldi: `<enrol> <trial> target|nontarget`, or `<enrol> <trial> <score>`; speechbrain: `<enrol>
# <trial> <label> <score>`; voxceleb: `<label> <enrol> <trial>`, also with `<score>` behind it; csv:
# a header that names the columns. A label is target or nontarget, 1 or 0, true or false, same or
# different.

LABELS = {
    name: value
    for value, names in ((True, "target 1 true same"), (False, "nontarget 0 false different"))
    for name in names.split()
}
COLUMNS = {  # possible names in a header
    "enrol": "enrol enroll enrolment enrollment enrol_id enroll_id model reference ref utt1 file1",
    "trial": "trial test probe trial_id test_id utt2 file2",
    "label": "label target key same is_target",
    "score": "score similarity llr",
}
FORMATS: dict[str, tuple[tuple[str, ...], ...]] = {  # meaning of each column in a line
    "kaldi": (("enrol", "trial", "label"), ("enrol", "trial", "score")),
    "speechbrain": (("enrol", "trial", "label", "score"),),
    "voxceleb": (("label", "enrol", "trial"), ("label", "enrol", "trial", "score")),
}
EXAMPLES = {
    "kaldi": "ann ann-01 target",
    "speechbrain": "ann ann-01 1 0.73",
    "voxceleb": "1 ann ann-01",
    "csv": "enrol,trial,label,score",
}
Row = dict[str, str]


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def _fits(kind: str, shape: Sequence[str], values: Sequence[str]) -> Row | None:
    """Columns of a line, if it has that shape."""
    if len(shape) != len(values):
        return None
    row = dict(zip(shape, values, strict=True))
    label = row.get("label", "target").lower()
    known = label in (("target", "nontarget") if kind == "kaldi" else LABELS)
    right = known and ("score" not in row or _is_number(row["score"]))
    return row if right and row["enrol"] and row["trial"] else None


def find_format(path: Path, lines: Sequence[tuple[int, str]]) -> str:
    """Common format of all lines; UserError for none, and for more than one."""
    if not lines:
        raise UserError(f"{path}:1: the file is empty")
    if len(_header(lines[0][1])) > 1:
        return "csv"
    rows = [line.split() for _, line in lines]
    found = [
        name
        for name, shapes in FORMATS.items()
        for shape in shapes
        if all(_fits(name, shape, row) for row in rows)
    ]
    if len(found) != 1:
        known = "; ".join(f"{name}: {EXAMPLES[name]}" for name in EXAMPLES)
        what = f"may be {' or '.join(found)}" if found else "is in no format that is known"
        raise UserError(f"{path}:{lines[0][0]}: {what}; give --format ({known})")
    return found[0]


def _header(line: str) -> dict[int, str]:
    """Positions of the columns that a header names."""
    known = {alias: name for name, aliases in COLUMNS.items() for alias in aliases.split()}
    import csv  # one format of many needs it

    names = next(csv.reader([line], delimiter=_delimiter(line)), [])
    return {i: known[n.strip().lower()] for i, n in enumerate(names) if n.strip().lower() in known}


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def read_rows(path: Path, lines: Sequence[tuple[int, str]], kind: str) -> Iterator[Row]:
    """Columns of all lines. UserError names the first line of another format."""
    shapes = FORMATS.get(kind, ())
    if kind == "csv":
        header = _header(lines[0][1])
        if not {"enrol", "trial"} <= set(header.values()) or len(header) < 3:
            known = "; ".join(f"{name}: {words}" for name, words in COLUMNS.items())
            raise UserError(
                f"{path}:{lines[0][0]}: the header names no enrol, trial and label or score; "
                f"known names: {known}"
            )
        text = "\n".join(line for _, line in lines)
        import csv

        found = csv.reader(io.StringIO(text), delimiter=_delimiter(lines[0][1]))
        next(found)
        fields = [[row[i] if i < len(row) else "" for i in header] for row in found]
        shapes, lines = (tuple(header.values()),), lines[1:]
    else:
        fields = [line.split() for _, line in lines]
    shape = next((s for s in shapes if fields and _fits(kind, s, fields[0])), shapes[0])
    for (number, line), values in zip(lines, fields, strict=True):
        row = _fits(kind, shape, values)
        if row is None:
            example = f"{kind}; an example: {EXAMPLES[kind]}"
            raise UserError(f"{path}:{number}: {line.strip()!r} is not as in {example}")
        yield row


def guess_format(path: Path) -> str:
    """Common format of all lines; `kaldi` if the first line is so, and without lines: its readers
    report the fault (`utils.trials`)."""
    try:
        lines = _lines(path)
        fields = lines[0][1].split() if lines else []
        if any(_fits("kaldi", shape, fields) for shape in FORMATS["kaldi"]):
            return "kaldi"
        return find_format(path, lines)
    except UserError:
        return "kaldi"


def _lines(path: Path) -> list[tuple[int, str]]:
    return [(number, line.rstrip("\n")) for number, line in read_lines(path) if line.strip()]


def read_any(path: Path, kind: str = "auto") -> tuple[str, Trials | None, Scores | None]:
    """Read the format, trials if there are labels, and scores if there are scores.

    UserError names file and line of the first fault, with an example of the format; also for a
    duplicate pair.
    """
    lines = _lines(path)
    kind = find_format(path, lines) if kind == "auto" else kind
    rows = list(read_rows(path, lines, kind))
    enrol, trial = ([row[name] for row in rows] for name in ("enrol", "trial"))
    trials = scores = None
    if all("label" in row for row in rows):
        target = np.array([LABELS[row["label"].lower()] for row in rows])
        trials = Trials(enrol, trial, target)
        check_pairs_once(path, trials, "listed")
    if all("score" in row for row in rows):
        scores = Scores(enrol, trial, np.array([float(row["score"]) for row in rows]))
        check_pairs_once(path, scores, "scored")
    return kind, trials, scores
