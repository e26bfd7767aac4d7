"""Figures of a run as tidy tables: pandas DataFrames with a row for each figure, whose columns,
which are text, are `METRICS` or `SPEAKERS`.

Read by `read_figures`, `value`, `low` and `high` are numbers (NaN: not defined), `tag` holds a
value that is not a number, and `figure` names the metric with all of its columns, to look figures
up.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from local.metrics.intervals import COLUMNS as FIGURE
from local.metrics.intervals import is_falsely_sure, key
from local.metrics.registry import KNOWN
from local.plan.labels import Family, Labels
from local.report.measures import COLUMNS, TABLES, Value, read_columns
from utils.cli import UserError
from utils.tables import read_bytes, write_file

# What a figure speaks of. family: what was done; attacker: who did it, or whose evaluator it was;
# empty where that is nobody of local/protocols/attackers.py (of NIST's lists, the profile).
# condition: OO OA AA; OO-OP-PP for voice similarity matrices, OO-OA-AA for gains on the
# enrolment-trial lists.
WHERE = ("corpus", *Labels._fields)
COUNTS = ("n_speakers", "n_segments", "n_target", "n_nontarget")  # people, speech, trials
METRICS = (*WHERE, "metric", *FIGURE, "value", "low", "high", *COUNTS, "settings")
SPEAKERS = (*WHERE, "speaker", "metric", *FIGURE, "value", "settings")
NUMBERS = ("value", "low", "high")
_READ = [*chain(*COLUMNS.values(), read_columns(TABLES["read"]),
                *(read_columns(own["columns"]) for own in KNOWN["tables"].values()))]  # fmt: skip


def read_somewhere(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows that some table, picture or sentence of a report or page reads."""
    names = ["metric", "kind", "gallery", "recordings"]
    known = {(m.name, m.kind, m.gallery, m.recordings) for m in _READ}
    some = [of in known or (*of[:3], "") in known for of in metrics[names].itertuples(index=False)]
    return metrics[some]


def parse(text: str) -> float:
    """A value of the tables; NaN for an undefined one and for a tag."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def read_frame(path: Path, columns: Sequence[str], delimiter: str = ",") -> pd.DataFrame:
    """A table of text; UserError where it is missing, is not a table, or has other columns."""
    try:
        text = read_bytes(path).decode("utf-8")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        if next(reader, None) != list(columns):
            raise UserError(
                f"{path}:1: other columns than this version writes; make it anew: run stage 11"
            )
        rows = []
        for row in filter(None, reader):
            if len(row) != len(columns):
                raise UserError(f"{path}:{reader.line_num}: not {len(columns)} fields")
            rows.append(row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a table of figures: {error}; run stage 11 again") from error
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of text with its values as numbers, and those that are none as `tag`."""
    found = frame.copy()
    for name in NUMBERS:
        if name in frame:
            found[name] = frame[name].map(parse).astype(float)
    if "kind" in found:
        name_of = cache(lambda *row: str(key(row[0], **dict(zip(FIGURE, row[1:], strict=True)))))
        found["figure"] = [*map(name_of, *(found[name] for name in ("metric", *FIGURE)))]
    if "low" in found:  # of an older version
        sure = [*map(is_falsely_sure, found["metric"], found["low"], found["high"])]
        found.loc[sure, ["low", "high"]] = math.nan
    found["tag"] = frame["value"].where(found["value"].isna() & (frame["value"] != "nan"), "")
    return found


def read_figures(path: Path, columns: Sequence[str] = METRICS) -> pd.DataFrame:
    """metrics.csv, or per_speaker.csv with its columns, with values as numbers."""
    return with_numbers(read_frame(path, columns))


def read_folders(page: Path, folders: Iterable[str]) -> pd.DataFrame:
    """metrics.csv of one or more folders beside a page, together."""
    return pd.concat([read_figures(page.parent / folder / "metrics.csv") for folder in folders])


def write_frame(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as CSV with a header, atomically."""
    table = pd.DataFrame([*rows], columns=[*columns]).to_csv(index=False, lineterminator="\n")
    write_file(path, table)


def where(frame: pd.DataFrame, **of: Any) -> pd.DataFrame:
    """The rows with these values in these columns; a list, tuple or set stands for any of its."""
    for name, wanted in of.items():
        many = isinstance(wanted, list | tuple | set | frozenset)
        frame = frame[frame[name].isin([*wanted]) if many else frame[name] == wanted]
    return frame


def eers(metrics: pd.DataFrame, **of: Any) -> pd.DataFrame:
    """EERs of attacks by one recording."""
    return where(metrics, family=Family.VERIFICATION, figure="eer", **of)


def each(frame: pd.DataFrame, column: str) -> list[str]:
    """The values of a column, each once, in the order of the table."""
    return list(dict.fromkeys(frame[column]))


def value_of(row: Any) -> Value:
    """The figure of a row (a named tuple of `frame.itertuples()`)."""
    return Value(row.value, getattr(row, "low", math.nan), getattr(row, "high", math.nan), row.tag)


def values(frame: pd.DataFrame, *by: str) -> dict[Any, Value]:
    """Figures by these columns (tuples, where there are several); of equal ones the last."""
    keys = frame[by[0]] if len(by) == 1 else zip(*(frame[name] for name in by), strict=True)
    return dict(zip(keys, map(value_of, frame.itertuples()), strict=True))
