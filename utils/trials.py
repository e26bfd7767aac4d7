"""Trial lists and score files: checked reading of all usual formats, joining, atomic writing."""

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from utils import tables
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError

# ---- Trial lists and score files: checked reading, joining by id pair, atomic writing.
#
# Trials: `<enrol> <trial> target|nontarget`; scores: `<enrol> <trial> <score>`. Any run of blanks
# or tabs separates fields. A line is one row, so row i stands on line i + 1. The readers split
# pieces of many lines where one blank or tab separates, which is the fastest (pandas takes longer),
# and read the rest of any other file line by line. Ids are codes into a list of distinct names.

T = TypeVar("T", str, bytes)
V = TypeVar("V", np.bool_, np.float64)
_SIDES = ("enrol", "trial")
_PIECE = 1 << 17  # bytes, so that all that is made of a piece stays in the processor's cache
_TAB_AS_BLANK = bytes.maketrans(b"\t", b" ")
_OF_FIELDS = bytes({*range(256)} - {*b" \t\n\v\f\r\0"})

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
        code, rows = defaultdict[str, int](count().__next__), list(column)
        return cls(_encode(code, rows), list(code))

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # no slices
        return self.names[int(self.codes[index])]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[str]:
        return map(self.names.__getitem__, self.codes.tolist())


@dataclass(frozen=True, eq=False)
class Trials:
    """Pairs to compare: `enrol[i]` against `trial[i]`, same speaker where `target[i]`. lines: where
    each stands in its file, if not on line i + 1."""

    enrol: Sequence[str]
    trial: Sequence[str]
    target: Bool
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of pairs, finite float64; higher means more alike. lines: of `Trials`."""

    enrol: Sequence[str]
    trial: Sequence[str]
    score: Float64
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.score)


Pairs = TypeVar("Pairs", Trials, Scores)


def line_of(pairs: Trials | Scores, row: int) -> int:
    """Line of the file on which a row stands (a table has a header, and may have blank lines)."""
    return pairs.lines[row] if pairs.lines else row + 1


def read_trials(path: tables.StrPath) -> Trials:
    """Read a trial list; UserError names file and line of the first fault (a pair listed twice, an
    unknown label, a wrong number of fields, a file that is empty or not text)."""
    return check_pairs_once(path, Trials(*_read_columns(path, _parse_labels)), "listed")


def read_scores(path: tables.StrPath) -> Scores:
    """Read a score file; UserError names file and line of the first fault (a pair scored twice, a
    score that is not a finite number, and the faults of `read_trials`)."""
    return check_pairs_once(path, Scores(*_read_columns(path, _parse_scores)), "scored")


def join_scores(
    trials: Trials,
    scores: Scores,
    *,
    trials_path: tables.StrPath = "trials",
    scores_path: tables.StrPath = "scores",
) -> Float64:
    """Find the score of each trial by the id pair, (n_trials,) in trial order.

    A trial without a score is a UserError naming line and pair; scores of pairs that are not trials
    are left out with a warning that counts them. A warning asks whether the scores are distances
    where they order trials the wrong way, beyond chance.
    """
    (enrol, given_enrol, _), (trial, given_trial, n) = (
        _in_one_numbering(getattr(trials, side), getattr(scores, side)) for side in _SIDES
    )
    wanted, given = enrol * n + trial, given_enrol * n + given_trial
    order = np.argsort(given)
    place = np.searchsorted(given, wanted, sorter=order)
    row = order[np.minimum(place, len(given) - 1)]
    missing = given[row] != wanted
    if missing.any():
        i = int(np.argmax(missing))
        more = int(missing.sum()) - 1
        raise UserError(
            f"{trials_path}:{line_of(trials, i)}: no score for {trials.enrol[i]} {trials.trial[i]} "
            f"in {scores_path}" + (f" (nor for {more} more trials)" if more else "")
        )
    if more := len(scores) - len(trials):
        where = f"for pairs that are not in {trials_path}; left out"
        logger.warning("%s: %d of %d scores are %s", scores_path, more, len(scores), where)
    _warn_of_distances(trials, scores.score[row], scores_path)
    return scores.score[row]


BEYOND_CHANCE = 3.0  # standard errors


def _warn_of_distances(trials: Trials, score: Float64, path: tables.StrPath) -> None:
    """Warn where target trials score below the others so often that it is hardly chance.

    The error is that of the area under the ROC over the enrolled and over the tried ids, whose
    trials go together (Obuchowski 1997), added, and at least that of as many independent trials
    without any difference (Mann and Whitney 1947).
    """
    target = trials.target
    n, n_other = np.count_nonzero(target), np.count_nonzero(~target)
    if not n or not n_other or np.median(score[target]) >= np.median(score[~target]):
        return  # the EER is at most 50 %
    right = np.empty(len(score))  # share of the trials of the other kind that are on the right side
    right[target] = _share_below(score[target], score[~target])
    right[~target] = 1.0 - _share_below(score[~target], score[target])
    area = right[target].mean()
    part = (right - area) / np.where(target, n, n_other)
    ids = (np.bincount(Ids.of(side).codes, part) for side in (trials.enrol, trials.trial))
    error = sum(float((own**2).sum()) * len(own) / max(len(own) - 1, 1) for own in ids)
    if area < 0.5 - BEYOND_CHANCE * math.sqrt(max(error, (n + n_other + 1) / (12 * n * n_other))):
        logger.warning(
            "%s: the EER lies above 50 %%, beyond chance (a target trial scores below a nontarget "
            "trial in %.1f %% of comparisons): are lower scores more alike, as distances are? Then "
            "give them with the other sign",
            *(path, 100.0 * (1.0 - area)),
        )


def _share_below(value: Float64, other: Float64) -> Float64:
    """Share of the other values that are smaller, for each value, (n,); equal ones count half."""
    ordered = np.sort(other)
    both = (np.searchsorted(ordered, value, side) for side in ("left", "right"))
    return np.asarray(sum(both) / (2.0 * len(other)))


def check_not_itself(
    path: tables.StrPath,
    trials: Trials,
    *,
    allowed: bool = False,
    enrolled: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise a UserError for the first trial of a recording against itself, or against a model that
    is made of it (enrolled: recordings by model). allowed: warn with their number instead."""
    enrol, trial, _ = _in_one_numbering(trials.enrol, trials.trial)
    same = enrol == trial
    if enrolled:
        pairs = zip(trials.enrol, trials.trial, strict=True)
        same |= np.array([utt in enrolled.get(model, ()) for model, utt in pairs])
    if not same.any():
        return
    i = int(np.argmax(same))
    model, utt = trials.enrol[i], trials.trial[i]
    what = "itself" if model == utt else f"{model}, a model that is made of it"
    message = (
        f"{path}:{line_of(trials, i)}: recording {utt} is compared with {what} "
        f"({int(same.sum())} of {len(trials)} trials are of this kind); "
    )
    if not allowed:
        raise UserError(f"{message}take them out, or give --allow-self to count them")
    logger.warning("%sthey are counted", message)


def merge(parts: Mapping[Path, Pairs]) -> Pairs:
    """Join the trials, or the scores, of several files; UserError for a pair that is in two."""
    first, *more = parts.values()
    if not more:
        return first
    enrol, trial = (
        Ids.of(chain.from_iterable(getattr(part, side) for part in parts.values()))
        for side in _SIDES
    )
    name, verb = ("target", "listed") if isinstance(first, Trials) else ("score", "scored")
    merged = type(first)(enrol, trial, np.concatenate([getattr(p, name) for p in parts.values()]))
    return check_pairs_once(" + ".join(map(str, parts)), merged, verb)


def write_trials(path: tables.StrPath, trials: Trials) -> None:
    """Write a trial list sorted in C order, atomically."""
    labels = ("nontarget", "target")
    _write(path, trials, [labels[right] for right in trials.target.tolist()], "listed")


def write_scores(path: tables.StrPath, scores: Scores) -> None:
    """Write a score file sorted in C order, atomically; scores read back exactly (float64)."""
    finite = np.isfinite(scores.score)
    if not finite.all():
        i = int(np.argmin(finite))
        raise UserError(
            f"{path}: the score of {scores.enrol[i]} {scores.trial[i]} is {scores.score[i]}, "
            "not a finite number"
        )
    _write(path, scores, [repr(value) for value in scores.score.tolist()], "scored")


def _write(path: tables.StrPath, pairs: Pairs, values: Sequence[str], verb: str) -> None:
    for name in (*Ids.of(pairs.enrol).names, *Ids.of(pairs.trial).names):
        if name.split() != [name]:
            raise UserError(f"{path}: {name!r} cannot be an id: ids have no blanks")
    check_pairs_once(path, pairs, verb)
    rows = (f"{e} {t} {v}\n" for e, t, v in zip(pairs.enrol, pairs.trial, values, strict=True))
    with tables.atomic_write(path, "wb") as stream:
        stream.writelines(sorted(row.encode("utf-8") for row in rows))


def _read_columns(
    path: tables.StrPath, parse: Callable[[tables.StrPath, int, list[bytes]], npt.NDArray[V]]
) -> tuple[Ids, Ids, npt.NDArray[V]]:
    """Ids of both sides, and what `parse` makes of the third column. UserError names the first line
    that is not so."""
    enrol, trial = (defaultdict[bytes, int](count().__next__) for _ in _SIDES)
    rows = [
        (_encode(enrol, fields[::3]), _encode(trial, fields[1::3]), parse(path, line, fields[2::3]))
        for line, fields in _pieces(path)
    ]
    if not rows:
        raise UserError(f"{path}:1: the file is empty")
    codes, other_codes, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    names, other_names = ([name.decode() for name in code] for code in (enrol, trial))
    return Ids(codes, names), Ids(other_codes, other_names), values


def _pieces(path: tables.StrPath) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of a line, and the fields of it and of lines behind it, three of each."""
    content, line, start = tables.read_bytes(path), 1, 0
    while start < len(content):
        end = content.find(b"\n", start + _PIECE) + 1 or len(content)
        if not (fields := _split_plain(content[start:end])):
            break
        yield line, fields
        line, start = line + len(fields) // 3, end
    else:
        return
    fields = []
    for number, row in islice(tables.read_rows(path, 3), line - 1, None):
        fields += (encoded := [field.encode() for field in row])
        if b" ".join(encoded).split() != encoded:
            raise UserError(
                f"{path}:{number}: a field holds a blank character other than a space or tab"
            )
        if len(fields) > _PIECE:
            yield line, fields
            line, fields = number + 1, []
    if fields:
        yield line, fields


def _split_plain(content: bytes) -> list[bytes]:
    """Fields of lines that have three, one blank or tab between them; none of any other text."""
    between, fields = content.translate(_TAB_AS_BLANK, _OF_FIELDS), content.split()
    plain = between == b"  \n" * (len(fields) // 3) and len(between) == len(fields)
    mark = content.startswith(tables.BYTE_ORDER_MARK)
    return fields if plain and not mark and _is_utf8(content) else []


def _is_utf8(content: bytes) -> bool:
    try:
        return content.isascii() or bool(content.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _encode(code: Mapping[T, int], column: Sequence[T]) -> Int64:
    return np.fromiter(map(code.__getitem__, column), np.int64, count=len(column))


def _parse_labels(path: tables.StrPath, line: int, column: list[bytes]) -> Bool:
    if wrong := set(column).difference((b"target", b"nontarget")):
        i, label = next((i, label) for i, label in enumerate(column, line) if label in wrong)
        raise UserError(f"{path}:{i}: label {label.decode()} is neither target nor nontarget")
    return np.fromiter(map(b"target".__eq__, column), np.bool_, count=len(column))


def _parse_scores(path: tables.StrPath, line: int, column: list[bytes]) -> Float64:
    """Numbers of a column; UserError names the first that is none or not finite."""
    if b"_" not in b"".join(column):
        with suppress(ValueError):
            values = np.fromiter(map(float, column), np.float64, count=len(column))
            if np.isfinite(values).all():
                return values
    texts = enumerate(map(bytes.decode, column), line)
    i, text = next((i, text) for i, text in texts if math.isnan(tables.to_number(text)))
    raise UserError(f"{path}:{i}: score {text} is not a finite number")


def check_pairs_once(path: tables.StrPath, pairs: Pairs, verb: str) -> Pairs:
    """Return the pairs; UserError names the second line of one; verb: the repeated action."""
    enrol, trial = Ids.of(pairs.enrol), Ids.of(pairs.trial)
    keys = enrol.codes * len(trial.names) + trial.codes
    ordered = np.sort(keys)  # places, which take twice as long, are for what is refused
    if not (ordered[1:] == ordered[:-1]).any():
        return pairs
    order = np.argsort(keys, kind="stable")
    again = order[1:][keys[order[1:]] == keys[order[:-1]]]
    i = int(again.min())
    line, first = (line_of(pairs, row) for row in (i, int(np.argmax(keys == keys[i]))))
    raise UserError(
        f"{path}:{line}: {pairs.enrol[i]} {pairs.trial[i]} is {verb} twice (first on line {first})"
    )


def _in_one_numbering(one: Sequence[str], other: Sequence[str]) -> tuple[Int64, Int64, int]:
    """Codes of two columns of ids in one list of names, and its length."""
    first, second = Ids.of(one), Ids.of(other)
    shared = Ids.of([*first.names, *second.names])
    of_first, of_second = np.split(shared.codes, [len(first.names)])
    return of_first[first.codes], of_second[second.codes], len(shared.names)


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
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (  # of lines: format, and meaning of each column
    ("kaldi", ("enrol", "trial", "label")),
    ("kaldi", ("enrol", "trial", "score")),
    ("speechbrain", ("enrol", "trial", "label", "score")),
    ("voxceleb", ("label", "enrol", "trial")),
    ("voxceleb", ("label", "enrol", "trial", "score")),
)
EXAMPLES = {
    "kaldi": "ann ann-01 target",
    "speechbrain": "ann ann-01 1 0.73",
    "voxceleb": "1 ann ann-01",
    "csv": "enrol,trial,label,score",
}


def _fits(kind: str, shape: Sequence[str], values: Sequence[str]) -> bool:
    """Whether a line has that shape."""
    if len(shape) != len(values):
        return False
    row = dict(zip(shape, values, strict=True))
    labels = ("target", "nontarget") if kind == "kaldi" else LABELS
    known = row.get("label", "target").lower() in labels and row["enrol"] and row["trial"]
    return bool(known) and not math.isnan(tables.to_number(row.get("score", "0")))


def _header(line: str) -> dict[int, str]:
    """Positions of the columns that a header names."""
    known = {alias: name for name, aliases in COLUMNS.items() for alias in aliases.split()}
    names = [name.strip().lower() for name in next(_split_csv([line]), [])]
    return {i: known[name] for i, name in enumerate(names) if name in known}


def _split_csv(lines: Sequence[str]) -> Iterator[list[str]]:
    import csv  # one format of many needs it

    return csv.reader(lines, delimiter=max(",;\t", key=lines[0].count))


def _find_format(path: Path, kind: str) -> tuple[str, dict[str, list[str]], list[int]]:
    """Common format of all lines, their columns and numbers. UserError for none, for more than one,
    and for the first line of another format than `kind`, if that is not `auto`."""
    lines = [(number, line) for number, line in tables.read_lines(path) if line.strip()]
    if not lines:
        raise UserError(f"{path}:1: the file is empty")
    place, header = f"{path}:{lines[0][0]}", _header(lines[0][1])
    if kind == "csv" or (kind == "auto" and len(header) > 1):
        if not {"enrol", "trial"} <= set(header.values()) or len(header) < 3:
            known = "; ".join(f"{name}: {words}" for name, words in COLUMNS.items())
            lacking = "the header names no enrol, trial and label or score"
            raise UserError(f"{place}: {lacking}; known names: {known}")
        if twice := [name for name, count in Counter(header.values()).items() if count > 1]:
            raise UserError(f"{place}: the header names {twice[0]} twice; leave one column out")
        _, *found = _split_csv([line for _, line in lines])
        rows = [[row[i] if i < len(row) else "" for i in header] for row in found]
        kind, shapes, lines = "csv", [("csv", tuple(header.values()))], lines[1:]
    else:
        rows = [line.split() for _, line in lines]
        shapes = [shape for shape in _SHAPES if kind in ("auto", shape[0])]
    right = [(name, shape) for name, shape in shapes if all(_fits(name, shape, r) for r in rows)]
    if len(right) == 1:
        ((kind, shape),) = right
        columns = {name: [row[i] for row in rows] for i, name in enumerate(shape)}
        return kind, columns, [number for number, _ in lines]
    if kind == "auto":
        known = "; ".join(f"{name}: {EXAMPLES[name]}" for name in EXAMPLES)
        may_be = " or ".join(name for name, _ in right)
        what = f"may be {may_be}" if right else "is in no format that is known"
        raise UserError(f"{place}: {what}; give --format ({known})")
    shape = next((shape for _, shape in shapes if _fits(kind, shape, rows[0])), shapes[0][1])
    wrong = (line for line, row in zip(lines, rows, strict=True) if not _fits(kind, shape, row))
    number, text = next(wrong)
    example = f"{kind}; an example: {EXAMPLES[kind]}"
    raise UserError(f"{path}:{number}: {text.strip()!r} is not as in {example}")


def guess_format(path: Path) -> str:
    """Common format of all lines; `kaldi` or `csv` if the first line is so, and `kaldi` without
    lines: their readers report the fault (`utils.trials`)."""
    try:
        first = next((line for _, line in tables.read_lines(path) if line.strip()), "")
        if any(_fits(kind, shape, first.split()) for kind, shape in _SHAPES if kind == "kaldi"):
            return "kaldi"
        return "csv" if len(_header(first)) > 1 else _find_format(path, "auto")[0]
    except UserError:
        return "kaldi"


def read_any(path: Path, kind: str = "auto") -> tuple[str, Trials | None, Scores | None]:
    """Read the format, trials if there are labels, and scores if there are scores.

    UserError names file and line of the first fault, with an example of the format; also for a
    duplicate pair.
    """
    kind, columns, lines = _find_format(path, kind)
    enrol, trial = columns["enrol"], columns["trial"]
    trials = scores = None
    if "label" in columns:
        target = np.array([LABELS[label.lower()] for label in columns["label"]])
        trials = check_pairs_once(path, Trials(enrol, trial, target, lines), "listed")
    if "score" in columns:
        scores = check_pairs_once(
            path, Scores(enrol, trial, np.array(columns["score"], np.float64), lines), "scored"
        )
    return kind, trials, scores
