"""The VoicePrivacy challenges' own figures: averages, categories, and their result file.

The result file is that of 2024 and 2026 (`result_for_rank<suffix>`): sections `---- <name> results
----`, each a table with a header, in percent. It is read and written, so that a participant's
figures and those of a recipe can stand beside each other.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pandas import DataFrame

from local.protocols.attackers import Privacy, Protocol
from local.report.frame import where
from local.report.words import GROUPS
from utils.cli import UserError
from utils.tables import read_lines

# By its section: a figure, whether of protected speech (None: of both), columns, decimals.
_SPLIT = ["dataset", "split", "gender"]
_TRIALS = ("enrollment", "trial")
_SECTIONS: Mapping[str, tuple[str, bool | None, Sequence[str], int]] = {
    "SER": ("uar", None, ("ser",), 4),
    "ASV_eval": ("eer", False, _TRIALS, 3),
    "ASV_eval^anon": ("eer", True, _TRIALS, 3),
    "ASR": ("wer", None, ("asr",), 3),
}


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


def scores_of(figures: DataFrame, protocol: Protocol, system: str, evaluator: str) -> list[Score]:
    """Figures of a recipe of a system and of unprotected speech, as far as the protocol asks.

    evaluator: whose EERs; of two recognisers of words the first in the table counts. A split that
    was not measured is left out.
    """
    found: dict[tuple[str, str, bool], Score] = {}
    privacy = {split for splits in protocol.privacy.sets.values() for split in splits}
    asked = {"eer": privacy, "wer": protocol.words, "uar": protocol.emotions}
    own = where(figures, system=(system, "original")).dropna(subset=["value"])
    for f in where(own, metric=("eer", "wer", "uar_vpc24", "uar")).itertuples():
        what, protected = f.metric.partition("_")[0], f.system == system
        who = evaluator, protocol.privacy.attacker if protected else "unprotected"
        # Mixed trials are all there are: what is left of use in them is that of the set.
        split = f.split if what == "eer" else f.split.removesuffix("_mixed")
        if split in asked[what] and (what != "eer" or (f.evaluator, f.attacker) == who):
            score = Score(what, split, protected, f.value, f.low, f.high)
            found.setdefault((what, split, protected), score)
    return list(found.values())


def averages(scores: Sequence[Score], privacy: Privacy) -> dict[str, float]:
    """The (weighted) mean EER of protected speech of each set; NaN where a split is missing."""
    eer = {s.split: s.value for s in scores if s.what == "eer" and s.protected}
    return {
        name: float(
            np.average([eer.get(s, math.nan) for s in own], weights=privacy.weights or None)
        )
        for name, own in privacy.sets.items()
    }


def category(average: float, categories: Sequence[float]) -> int:
    """Number of the lowest EERs that an average reaches, 0 to all of them; a system is ranked with
    those of its category."""
    return sum(average >= least for least in categories)


def conclusions(scores: Sequence[Score], protocol: Protocol) -> Iterator[str]:
    """Sentences: the average EER of each set and its category, and what was not measured. A
    challenge that averages nothing has the EER of each split."""
    there = {(s.what, s.split) for s in scores if s.protected}
    if not protocol.privacy.averaged:
        each = {s.split: s.value for s in scores if s.what == "eer" and s.protected}
        yield from (f"{split}: EER {100 * value:.3f} %" for split, value in each.items())
    for name, value in averages(scores, protocol.privacy).items():
        lacking = [split for split in protocol.privacy.sets[name] if ("eer", split) not in there]
        if lacking:
            yield f"{name}: no average EER: not measured: {' '.join(lacking)}"
            continue
        if not protocol.privacy.averaged:
            continue
        told = f"{name}: average EER {100 * value:.3f} %"
        if protocol.categories:
            n = category(value, protocol.categories)
            least = f" (at least {100 * protocol.categories[n - 1]:.0f} %)" if n else ""
            told += f", category {n} of {len(protocol.categories)}{least}"
        yield told
    asked = {("wer", s) for s in protocol.words} | {("uar", s) for s in protocol.emotions}
    if lacking := sorted(" of ".join(one) for one in asked - there):
        yield f"not measured: {', '.join(lacking)}"


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
    for name, (what, protected, columns, digits) in _SECTIONS.items():
        own = [s for s in scores if s.what == what and protected in (None, s.protected)]
        names = _SPLIT[: 3 if what == "eer" else 2]
        table = [["", *names, *columns, what.upper()]]
        for n, s in enumerate(own):
            kinds = ["anon" if s.protected else "original"] * len(columns)
            parted = _set_and_rest(s.split)[: len(names)]
            table.append([str(n), *parted, *kinds, f"{100 * s.value:.{digits}f}"])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        if own:
            parts.append("\n".join([f"---- {name} results ----", *lines]))
    return "\n\n".join(parts) + "\n"


def read_results(path: Path) -> list[Score]:
    """The figures of a result file, of 2024 or 2026. UserError names the first line at fault."""
    found: list[Score] = []
    section, header = "", [""]
    for number, line in read_lines(path):
        words = line.split()
        if line.startswith("----"):
            section, header = line.strip("- \n").removesuffix(" results"), []
        elif words and section in _SECTIONS and not header:
            header = words
        elif words and section in _SECTIONS and set(words) != {"mean"}:
            numbered = len(words) > len(header)  # a file of several runs has both kinds
            row = dict(zip(header, words[numbered:], strict=False))
            try:
                found.append(_read_row(section, row))
            except (KeyError, ValueError) as error:
                told = " ".join(words[numbered:])
                at = f"{path}:{number}"
                raise UserError(f"{at}: no row of a {section} table: {told}") from error
    if not found:
        raise UserError(f"{path}: has no section such as '---- ASV_eval results ----'")
    return found


def _read_row(section: str, row: Mapping[str, str]) -> Score:
    what, _, columns, _ = _SECTIONS[section]
    bounds = (float(row.get(f"EER-ci_{end}", "nan")) / 100 for end in ("lower", "upper"))
    parts = (row["dataset"], row["split"], row.get("gender", ""))
    split = "_".join(part for part in parts if part not in ("", "-"))
    value = float(row[what.upper()]) / 100
    return Score(what, split, row.get(columns[-1], "") == "anon", value, *bounds)
