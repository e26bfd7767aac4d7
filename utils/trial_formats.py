# SPDX-License-Identifier: Apache-2.0
"""Trials and scores in the formats of other toolkits.

kaldi: `<enrol> <trial> target|nontarget`, or `<enrol> <trial> <score>`; speechbrain: `<enrol>
<trial> <label> <score>`; voxceleb: `<label> <enrol> <trial>`, also with `<score>` behind it; csv: a
header that names the columns. A label is target or nontarget, 1 or 0, true or false, same or
different.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from utils.cli import UserError
from utils.tables import read_lines
from utils.trials import Scores, Trials, check_pairs_once

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
