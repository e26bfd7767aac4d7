"""Figures of a run in tidy tables: one row a figure, beside it all that says what was measured."""

import csv
import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from local.report.words import GROUPS
from utils.cli import LossError, UserError
from utils.jsonfiles import read_json_object
from utils.stamps import provenance
from utils.tables import atomic_write, read_bytes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json = dict[str, object]
Missing = dict[str, str]  # what: a folder or file; why
logger = logging.getLogger(__name__)

COUNTS = ("n_speakers", "n_segments", "n_target", "n_nontarget")


@dataclass(frozen=True)
class Where:
    """What a figure speaks of. `condition`: OO OA AA; OO-OP-PP for voice similarity matrices,
    OO-OA-AA for gains on the enrolment-trial lists."""

    corpus: str
    split: str
    gender: str
    system: str
    attacker: str
    evaluator: str
    condition: str


@dataclass(frozen=True)
class Figure(Where):
    """One figure, in fractions, dB or bit; `low` and `high` bound its 95 % interval. n_target,
    n_nontarget: trials; of voice similarity matrices and of gains those of all three."""

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


@dataclass(frozen=True)
class Timing:
    """How long a stage of a system took; `missing`: why it was not measured.

    rtf: seconds / audio_seconds. seconds: wall time of its jobs, added up; audio_seconds: of the
    speech before protection; threads: of a job; hosts: where.
    """

    corpus: str
    system: str
    stage: str
    rtf: str
    seconds: str
    audio_seconds: str
    jobs: str
    threads: str
    hosts: str
    missing: str


Row = TypeVar("Row", bound="DataclassInstance")


def where_is(folder: Path, corpus: str) -> Where:
    """Read system, attacker, evaluator, condition and split off a folder of the recipe.

    The recipe writes figures to .../<system>/<attacker>.<evaluator>/<condition>/<split>, the split
    ending in the gender (_f, _m, _mixed), and + for each / of an evaluator such as ecapa_mini/plda.
    """
    if len(folder.parts) < 4 or "." not in folder.parts[-3]:
        raise UserError(
            f"{folder}: not a folder of figures: "
            "expected <system>/<attacker>.<evaluator>/<condition>/<split>"
        )
    system, who, condition, split = folder.parts[-4:]
    attacker, _, evaluator = who.replace("+", "/").partition(".")
    ending = split.rpartition("_")[2]
    gender = ending if ending in GROUPS else ""
    return Where(corpus, split, gender, system, attacker, evaluator, condition)


def read_figures(path: Path) -> Json:
    """Read one metrics.json; UserError where it is missing or not a JSON object."""
    return read_json_object(path, "remove it and run stage 9")


def _text(value: object) -> str:
    """A scalar as it stands in the table; nothing for an undefined one."""
    return "" if value is None else str(value)


def _settings(folder: Path) -> str:
    """The digest of all that made a folder's figures (its stamp), shortened as git does."""
    digest = provenance(folder)
    if digest is None:
        raise UserError(f"{folder}: has no stamp, so nobody can say how it was made; run stage 9")
    return digest[:12]


def _count(figures: Json, name: str) -> object:
    """A count of a metrics.json, or the sum of those of its three matrices or lists."""
    parts = [figures.get(f"{name}_{setting}") for setting in ("oo", "op", "pp", "oa", "aa")]
    whole = [part for part in parts if isinstance(part, int)]
    return sum(whole) if len(whole) == 3 else figures.get(name)


def tabulate(folder: Path, corpus: str) -> tuple[list[Figure], list[SpeakerFigure]]:
    """The rows of one folder of figures: scalars, and figures by speaker.

    Matrices and zoo points stay in the JSON.
    """
    where, settings = asdict(where_is(folder, corpus)), _settings(folder)
    figures = read_figures(folder / "metrics.json")
    intervals = figures.get("intervals")
    bounds = intervals if isinstance(intervals, dict) else {}
    counts = {name: _text(_count(figures, name)) for name in COUNTS}
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
        elif not isinstance(value, Mapping | list) and _is_figure(metric):
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


def _is_figure(metric: str) -> bool:
    """Whether a scalar of a metrics.json has a row of its own; counts are columns, but for that of
    people with target trials."""
    return metric == "n_target_speakers" or not metric.startswith(("n_", "cmc_curve"))


def lacks(what: object, error: UserError) -> Missing:
    """Note, and warn of, what is left out."""
    logger.warning("left out: %s", error)
    return {"what": str(what), "why": str(error)}


def check_losses(missing: Sequence[Missing], allowed: int) -> None:
    """LossError where more is left out than allowed; it names the first."""
    if len(missing) > allowed:
        raise LossError(
            f"{missing[0]['why']} ({len(missing)} left out in all; --allow-loss is {allowed})"
        )


def write_table(
    path: Path,
    kind: type[Figure] | type[SpeakerFigure] | type[Timing],
    rows: Iterable[Where] | Iterable[Timing],
) -> None:
    """Write rows as CSV with a header, atomically."""
    with atomic_write(path) as stream:
        writer = csv.DictWriter(stream, [f.name for f in fields(kind)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def tabulate_all(
    folders: Sequence[Path], corpus: str
) -> tuple[list[Figure], list[SpeakerFigure], list[Missing]]:
    """The rows of all folders of figures, and the folders that could not be used, each with why."""
    figures: list[Figure] = []
    speakers: list[SpeakerFigure] = []
    missing: list[Missing] = []
    for folder in folders:
        where_is(folder, corpus)  # a folder that cannot be one is a mistake of the caller
        try:
            rows, speaker_rows = tabulate(folder, corpus)
        except UserError as error:
            missing.append(lacks(folder, error))
            continue
        figures += rows
        speakers += speaker_rows
    return figures, speakers, missing


def read_table(path: Path, kind: type[Row], delimiter: str = ",") -> Iterator[Row]:
    """The rows of a metrics.csv (Figure), per_speaker.csv (SpeakerFigure), rtf.csv (Timing), ...:
    words, whatever `kind` says that they are.

    UserError where the file is missing, is no such table, or has other columns.
    """
    names = [f.name for f in fields(kind)]
    try:
        text = read_bytes(path).decode("utf-8")
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        if reader.fieldnames != names:
            raise UserError(f"{path}:1: other columns than this version writes; run stage 11 again")
        for row in reader:
            if None in row or None in row.values():
                raise UserError(f"{path}:{reader.line_num}: not {len(names)} fields")
            yield kind(**row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a table of figures: {error}; run stage 11 again") from error
