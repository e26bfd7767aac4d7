# SPDX-License-Identifier: Apache-2.0
"""The VoicePrivacy challenges' own figures: averages, categories, and their result file.

The result file is that of 2024 and 2026 (`result_for_rank<suffix>`): sections `---- <name> results
----`, each a table with a header, in percent. It is read and written, so that a participant's
figures and those of a recipe can stand beside each other.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.protocols.challenge import Privacy, Protocol
from local.report.results import Figure
from local.report.words import GROUPS
from utils.cli import UserError
from utils.tables import read_lines

EMPTY = "-"


@dataclass(frozen=True)
class Score:
    """A figure of a challenge, a fraction. what: eer, wer or uar; split: such as libri_test_f;
    protected: whether speech was. low, high: of its interval, NaN where there is none."""

    what: str
    split: str
    protected: bool
    value: float
    low: float = math.nan
    high: float = math.nan


def scores_of(
    figures: Iterable[Figure], protocol: Protocol, system: str, evaluator: str
) -> list[Score]:
    """What a recipe measured of a system and of unprotected speech, as far as the protocol asks.

    evaluator: whose EERs; of two recognisers of words the first in the table counts. A split that
    was not measured is left out.
    """
    found: dict[tuple[str, str, bool], Score] = {}
    privacy = {split for splits in protocol.privacy.sets.values() for split in splits}
    for f in figures:
        protected = f.system == system
        if f.system not in (system, "original") or not f.value:
            continue
        wanted = (
            (f.metric == "eer" and f.split in privacy and f.evaluator == evaluator
             and f.attacker == (protocol.privacy.attacker if protected else "unprotected"))
            or (f.metric == "wer" and _whole(f.split) in protocol.words)
            or (f.metric in ("uar_vpc24", "uar") and _whole(f.split) in protocol.emotions)
        )  # fmt: skip
        if wanted:
            what = "uar" if f.metric.startswith("uar") else f.metric
            split = f.split if what == "eer" else _whole(f.split)
            low, high = (float(text) if text else math.nan for text in (f.low, f.high))
            score = Score(what, split, protected, float(f.value), low, high)
            found.setdefault((what, split, protected), score)
    return list(found.values())


def _whole(split: str) -> str:
    """Mixed trials are all there are: what is left of use in them is that of the set."""
    return split.removesuffix("_mixed")


def averages(scores: Sequence[Score], privacy: Privacy) -> dict[str, float]:
    """The (weighted) mean EER of protected speech of each set; NaN where a split is missing."""
    eer = {s.split: s.value for s in scores if s.what == "eer" and s.protected}
    found = {}
    for name, splits in privacy.sets.items():
        weights = privacy.weights or (1.0,) * len(splits)
        values = [eer.get(split, math.nan) for split in splits]
        total = sum(w * v for w, v in zip(weights, values, strict=True))
        found[name] = total / sum(weights)
    return found


def category(average: float, categories: Sequence[float]) -> int:
    """How many of the lowest EERs an average reaches, 0 to all of them; it is ranked with systems
    of the same category."""
    return sum(average >= least for least in categories)


_SECTION = re.compile(r"---- (?P<name>.+) results ----")
_SECTIONS = {"ASV_eval": "eer", "ASV_eval^anon": "eer", "ASR": "wer", "SER": "uar"}


def _set_and_rest(split: str) -> tuple[str, str, str]:
    """libri_test_f as (libri, test, f); IEMOCAP_dev as (IEMOCAP, dev, '')."""
    head, _, tail = split.rpartition("_")
    if tail in GROUPS:
        data, _, part = head.rpartition("_")
        return data or head, part if data else "", tail
    return head or split, tail if head else "", ""


def write_results(scores: Sequence[Score], stamp: str) -> str:
    """The text of a result file. stamp: the time that stands in it, as the challenge writes it."""
    parts = [f"---- Time: {stamp} ----"]
    uar = [s for s in scores if s.what == "uar"]
    if uar:
        rows = [[*_set_and_rest(s.split)[:2], _kind(s), f"{100 * s.value:.4f}"] for s in uar]
        parts.append(_section("SER", ["dataset", "split", "ser", "UAR"], rows))
    for name, protected in (("ASV_eval", False), ("ASV_eval^anon", True)):
        own = [s for s in scores if s.what == "eer" and s.protected == protected]
        rows = [[*_set_and_rest(s.split), _kind(s), _kind(s), f"{100 * s.value:.3f}"] for s in own]
        header = ["dataset", "split", "gender", "enrollment", "trial", "EER"]
        if rows:
            parts.append(_section(name, header, rows))
    wer = [s for s in scores if s.what == "wer"]
    if wer:
        rows = [[*_set_and_rest(s.split)[:2], _kind(s), f"{100 * s.value:.3f}"] for s in wer]
        parts.append(_section("ASR", ["dataset", "split", "asr", "WER"], rows))
    return "\n\n".join(parts) + "\n"


def _kind(score: Score) -> str:
    return "anon" if score.protected else "original"


def _section(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = [["", *header], *([str(n), *row] for n, row in enumerate(rows))]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in table]
    return "\n".join([f"---- {name} results ----", *lines])


def read_results(path: Path) -> list[Score]:
    """The figures of a result file, of 2024 or 2026. UserError names the first line at fault."""
    found: list[Score] = []
    section = ""
    header: list[str] = []
    for number, line in read_lines(path):
        words = line.split()
        if match := _SECTION.fullmatch(line.strip()):
            section, header = match["name"], []
        elif not words or line.startswith("---- Time") or section not in _SECTIONS:
            continue
        elif not header:
            header = words
        elif set(words) == {"mean"}:
            continue
        else:
            numbered = len(words) > len(header)  # a file of several runs has both kinds
            found.append(_read_row(f"{path}:{number}", section, header, words[numbered:]))
    if not found:
        raise UserError(f"{path}: has no section such as '---- ASV_eval results ----'")
    return found


def _read_row(where: str, section: str, header: list[str], words: list[str]) -> Score:
    what = _SECTIONS[section]
    row: Mapping[str, str] = dict(zip(header, words, strict=False))
    kind = row.get({"eer": "trial", "wer": "asr", "uar": "ser"}[what], "")
    try:
        value = float(row[what.upper()]) / 100
        parts = (row["dataset"], row["split"], row.get("gender", ""))
    except (KeyError, ValueError) as error:
        raise UserError(f"{where}: no row of a {section} table: {' '.join(words)}") from error
    bounds = [float(row[f"EER-ci_{end}"]) / 100 if f"EER-ci_{end}" in row else math.nan
              for end in ("lower", "upper")]  # fmt: skip
    split = "_".join(part for part in parts if part and part != EMPTY)
    return Score(what, split, kind == "anon", value, *bounds)
