"""Figures of a run in tidy tables: one row a figure, beside it all that says what was measured."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from utils.cli import UserError
from utils.stamps import provenance
from utils.tables import atomic_write

Json = dict[str, object]
COUNTS = ("n_speakers", "n_segments", "n_target", "n_nontarget")


@dataclass(frozen=True)
class Where:
    """What a figure speaks of. `condition`: OO OA AA, or OO-OP-PP for voice similarity matrices."""

    corpus: str
    split: str
    gender: str
    system: str
    attacker: str
    evaluator: str
    condition: str


@dataclass(frozen=True)
class Figure(Where):
    """One figure, in fractions, dB or bit; `low` and `high` bound its 95 % interval."""

    metric: str
    value: str
    low: str
    high: str
    n_speakers: str
    n_segments: str
    n_target: str
    n_nontarget: str
    settings: str


@dataclass(frozen=True)
class SpeakerFigure(Where):
    """A figure of one speaker."""

    speaker: str
    metric: str
    value: str
    settings: str


def where_is(folder: Path, corpus: str) -> Where:
    """Read system, attacker, evaluator, condition and split off a folder of the recipe.

    The recipe writes figures to .../<system>/<attacker>.<evaluator>/<condition>/<split>, the split
    ending in the gender (_f, _m).
    """
    if len(folder.parts) < 4 or "." not in folder.parts[-3]:
        raise UserError(
            f"{folder}: not a folder of figures: "
            "expected <system>/<attacker>.<evaluator>/<condition>/<split>"
        )
    system, who, condition, split = folder.parts[-4:]
    attacker, _, evaluator = who.partition(".")
    gender = split.rpartition("_")[2] if split.endswith(("_f", "_m")) else ""
    return Where(corpus, split, gender, system, attacker, evaluator, condition)


def read_figures(path: Path) -> Json:
    """Read one metrics.json; UserError where it is missing or not a JSON object."""
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; run stage 9") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}; remove it and run stage 9") from error
    if not isinstance(figures, dict):
        raise UserError(f"{path}: not a JSON object; remove it and run stage 9")
    return figures


def _text(value: object) -> str:
    """A scalar as it stands in the table; nothing for an undefined one."""
    return "" if value is None else str(value)


def _settings(folder: Path) -> str:
    """The digest of all that made a folder's figures (its stamp), shortened as git does."""
    digest = provenance(folder)
    if digest is None:
        raise UserError(f"{folder}: has no stamp, so nobody can say how it was made; run stage 9")
    return digest[:12]


def tabulate(folder: Path, corpus: str) -> tuple[list[Figure], list[SpeakerFigure]]:
    """The rows of one folder of figures: scalars, and figures by speaker.

    Matrices and zoo points stay in the JSON.
    """
    where, settings = asdict(where_is(folder, corpus)), _settings(folder)
    figures = read_figures(folder / "metrics.json")
    intervals = figures.get("intervals")
    bounds = intervals if isinstance(intervals, dict) else {}
    counts = {name: _text(figures.get(name)) for name in COUNTS}
    rows, speaker_rows = [], []
    for metric, value in figures.items():
        if isinstance(value, Mapping) and metric.endswith("_per_speaker"):
            name = metric.removesuffix("_per_speaker")
            speaker_rows += [
                SpeakerFigure(
                    **where, speaker=speaker, metric=name, value=_text(own), settings=settings
                )
                for speaker, own in value.items()
            ]
        elif not isinstance(value, Mapping | list) and not metric.startswith("n_"):
            low, high = (_text(bound) for bound in bounds.get(metric) or (None, None))
            rows.append(
                Figure(
                    **where,
                    **counts,
                    metric=metric,
                    value=_text(value),
                    low=low,
                    high=high,
                    settings=settings,
                )
            )
    return rows, speaker_rows


def write_table(
    path: Path, kind: type[Figure] | type[SpeakerFigure], rows: Iterable[Where]
) -> None:
    """Write rows as CSV with a header, atomically."""
    with atomic_write(path) as stream:
        writer = csv.DictWriter(stream, [f.name for f in fields(kind)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def collect(folders: Sequence[Path], corpus: str, out: Path) -> int:
    """Write `metrics.csv` and `per_speaker.csv` of all folders to `out`; the number of figures."""
    figures: list[Figure] = []
    speakers: list[SpeakerFigure] = []
    for folder in folders:
        rows, speaker_rows = tabulate(folder, corpus)
        figures += rows
        speakers += speaker_rows
    write_table(out / "per_speaker.csv", SpeakerFigure, speakers)
    write_table(out / "metrics.csv", Figure, figures)
    return len(figures)


def read_metrics(path: Path) -> Iterator[Figure]:
    """The rows of a metrics.csv; UserError where the file is missing or its columns are others."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if reader.fieldnames != [f.name for f in fields(Figure)]:
                raise UserError(
                    f"{path}:1: other columns than this version writes; run stage 11 again"
                )
            for row in reader:
                yield Figure(**row)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; run stage 11") from error
