"""Rows of the report's tables, made up for tests, and results made of them."""

import html
import re
from collections.abc import Iterable
from dataclasses import asdict, make_dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from local.metrics.intervals import COLUMNS as FIGURE
from local.plan.labels import Family
from local.report import page as pages
from local.report.frame import METRICS, SPEAKERS, WHERE, read_frame, with_numbers, write_frame
from local.report.pictures import Section
from local.report.results import Results

Figure: Any = make_dataclass("Figure", METRICS, frozen=True)  # values as text, as in metrics.csv
SpeakerFigure: Any = make_dataclass("SpeakerFigure", SPEAKERS, frozen=True)
FAMILIES = ("", "similarity", "gains", "leakage", "calibration", "utility", "strongest",
            "groups")  # fmt: skip
COLUMNS = {Figure: METRICS, SpeakerFigure: SPEAKERS}


def named(who: str) -> tuple[str, str]:
    """Family and attacker of `utility`, of `inference aligned` or, verified, `ignorant`."""
    family, _, attacker = who.partition(" ")
    return (family, attacker) if attacker or family in FAMILIES else (Family.VERIFICATION, who)


def figure(
    system: str, who: str, metric: str, value: object, low: object = "", high: object = "",
    **more: str,
) -> Figure:  # fmt: skip
    """A figure of women by evaluator e, if nothing else is said; who: as `named` has it, metric: as
    `of_metric` has it."""
    family, attacker = named(who)
    own = {"system": system, "family": family, "attacker": attacker, "evaluator": "e",
           "value": str(value), "low": str(low), "high": str(high)}  # fmt: skip
    of = {"corpus": "toy", "split": "t_f", "gender": "f", "condition": "X", "n_speakers": "8"}
    more |= of_metric(more.get("metric", metric))
    return Figure(**dict.fromkeys(METRICS, "") | of | own | {"settings": "digest"} | more)


def speaker_figure(*values: str) -> SpeakerFigure:
    """A figure of one speaker, of the values of WHERE, then speaker, metric, value and settings."""
    *where, speaker, metric, value, settings = values
    found = dict(zip(WHERE, where, strict=True)) | of_metric(metric)
    told = {"speaker": speaker, "value": value, "settings": settings}
    return SpeakerFigure(**dict.fromkeys(SPEAKERS, "") | found | told)


def of_metric(words: str) -> dict[str, str]:
    """Columns of a figure such as `eer/recordings=all/kind=p`, or of a `Key`."""
    metric, *columns = words.split("/")
    found: dict[str, str] = {"metric": metric, "kind": "value"}
    return found | getattr(words, "columns", dict(word.split("=") for word in columns))


def frame(rows: Iterable[Any], kind: Any = Figure) -> pd.DataFrame:
    """Rows as the report has them."""
    table = [asdict(row) for row in rows]
    return with_numbers(pd.DataFrame(table, columns=[*COLUMNS[kind]], dtype=object))


def results(figures: Iterable[Any] = (), speakers: Iterable[Any] = (), **more: Any) -> Results:
    """Results as they are loaded."""
    people = frame(speakers, SpeakerFigure)
    return Results(metrics=frame(figures), speakers=people, **more)


def write_table(path: Path, kind: Any, rows: Iterable[Any]) -> None:
    """Write metrics.csv (Figure) or per_speaker.csv (SpeakerFigure)."""
    write_frame(path, COLUMNS[kind], map(asdict, rows))


def read_table(path: Path, kind: Any) -> list[Any]:
    """Read it again."""
    return [kind(*row) for row in read_frame(path, COLUMNS[kind]).itertuples(index=False)]


def metrics_csv(text: str) -> str:
    """metrics.csv of lines `split system family attacker evaluator condition metric value [low
    high]`; - for nothing."""
    lines = [",".join(METRICS)]
    for row in filter(None, map(str.split, text.splitlines())):
        split, *words = ("" if word == "-" else word for word in row)
        gender = split.rpartition("_")[2] if "_" in split else ""
        values = ["c", split, gender, *words, "", ""][:12]
        of = of_metric(values[8])
        columns = [of.get(name, "") for name in ("metric", *FIGURE)]
        lines.append(",".join([*values[:8], *columns, *values[9:], "13,120,99,1210,aa"]))
    return "\n".join(lines) + "\n"


def page_of(results: Results, *, with_audio: bool = False) -> str:
    """The page without pictures."""
    return pages.page(results, [], [], Section("Utility", []), with_audio=with_audio)


def words(text: str) -> str:
    """The visible text of a page, roughly."""
    text = re.sub(r"<(script|style).*?</\1>", " ", text.replace("<wbr>", ""), flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", text).split()))
