"""The VoicePrivacy challenges' own figures: averages, categories, and what was not measured.

Their result files are also read and written, so that a participant's
figures and those of a recipe can stand beside each other.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame, MultiIndex

from local.metrics.detection import tag
from local.protocols.attackers import Privacy, Protocol
from local.report.frame import SIMILARITY, UTILITY, VERIFICATION, where
from utils.cli import UserError
from utils.tables import read_lines

UNPROTECTED = "unprotected"
TRAINED = "trained"  # a recogniser that learnt from protected speech, where it hears the original
# By what a challenge calls a figure: ours that are it, the first that there is counts.
OF_LISTS = {
    "eer": ("eer",), "eer_rocch": ("eer_rocch",), "cllr_min": ("cllr_min",), "cllr": ("cllr",),
    "linkability": ("linkability",), "d_ece": ("d_ece",), "l_w": ("l_w",),
}  # fmt: skip
OF_VOICES = {"deid_2020": ("deid_2020",), "g_vd_2020": ("g_vd_2020",)}
OF_SPEECH = {
    "wer": ("wer",),
    "uar": ("uar_vpc24", "uar"),  # 2024 and 2026: the mean over folds
    "f0_correlation_vpc22": ("f0_correlation_vpc22",),
}
SHORT = {"anger": "ang", "happiness": "hap", "neutral": "neu", "sadness": "sad"}
COUNTED = ("substitutions", "insertions", "deletions")


@dataclass(frozen=True)
class Score:
    """A figure of a challenge, a fraction (of `g_vd_2020`: dB). what: as in OF_LISTS, OF_VOICES and
    OF_SPEECH; split: such as libri_test_f; protected: whether speech was. attacker: whose; empty
    for words (but TRAINED), emotions and pitch. An evaluator that learnt from protected speech and
    hears original enrolment, or also trials: semi_informed_OA, semi_informed_OO. low, high: of its
    interval, NaN where there is none. parts: for wer the counts `words` and those of COUNTED, for
    uar the recall of each emotion, for f0_correlation_vpc22 `std`. note: where it comes from."""

    what: str
    split: str
    protected: bool
    value: float
    attacker: str = ""
    low: float = math.nan
    high: float = math.nan
    parts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def joined(word: str) -> tuple[str, list[str]]:
    """The name of `a+b` of a protocol, a, and the splits whose words count together."""
    splits = word.split("+")
    return splits[0], splits


def scores_of(figures: DataFrame, protocol: Protocol, system: str, evaluator: str) -> list[Score]:
    """Figures of a recipe of a system and of unprotected speech, as far as the protocol asks.

    evaluator: whose EERs; of two recognisers of words the first in the table counts. A split that
    was not measured is left out, and so are words of which a part was not.
    """
    own = where(figures, system=(system, "original")).dropna(subset=["value"])
    lists = {split for splits in protocol.privacy.sets.values() for split in splits}
    of = where(own, family=VERIFICATION, evaluator=evaluator)
    asked = (UNPROTECTED, *protocol.attackers.split())
    theirs = "eer_speechbrain" if protocol.layout.startswith("rank") else "eer_kaldi"
    kinds = OF_LISTS | {"eer": (theirs, "eer")}
    found = _pick(where(of, attacker=asked, split=lists), kinds, system)
    voices = where(own, family=SIMILARITY, evaluator=evaluator, attacker="", split=lists)
    found += _pick(voices, OF_VOICES, system)
    speech = where(own, family=UTILITY)
    # Mixed trials are all there are: what is left of use in them is that of the set.
    speech = speech.assign(split=[split.removesuffix("_mixed") for split in speech["split"]])
    found += [s for s in _pick(speech, OF_SPEECH, system) if s.what != "wer" and _asks(protocol, s)]
    heard = {(s.split, s.protected): s for s in _pick(speech, OF_SPEECH, system) if s.what == "wer"}
    for word in protocol.words:
        for protected in (False, True):
            parts = [heard.get((split, protected)) for split in joined(word)[1]]
            if there := [part for part in parts if part]:
                found += [_join(there)] if len(there) == len(parts) else []
    return found


def _asks(protocol: Protocol, score: Score) -> bool:
    lists = [split for splits in protocol.privacy.sets.values() for split in splits]
    return score.split in (protocol.emotions if score.what == "uar" else lists)


def _pick(figures: DataFrame, kinds: Mapping[str, Sequence[str]], system: str) -> list[Score]:
    """The first figure of each kind, split, system and attacker, by the order of the kinds."""
    found: dict[tuple[str, str, bool, str], Score] = {}
    for what, names in kinds.items():
        for name in names:
            for row in where(figures, metric=name).itertuples():
                protected, attacker = row.system == system, row.attacker
                if attacker and protected == (attacker == UNPROTECTED):
                    continue  # such as a system's column of an attack on original speech
                parts = _parts(figures, row, what)
                score = Score(
                    what, row.split, protected, row.value, attacker, row.low, row.high, parts
                )
                found.setdefault((what, row.split, protected, attacker), score)
    return list(found.values())


def _parts(figures: DataFrame, row: Any, what: str) -> dict[str, float]:
    """Parts of a figure (see `Score`), of the same recogniser and speech."""
    same = where(figures, split=row.split, system=row.system, evaluator=row.evaluator)
    by = dict(zip(same["metric"], same["value"], strict=True))
    if what == "uar":
        start = "recall_vpc24_" if row.metric == "uar_vpc24" else "recall_"
        found = {n.removeprefix(start): v for n, v in by.items() if n.startswith(start)}
        return {SHORT.get(n, n): v for n, v in found.items() if not n.startswith("vpc24_")}
    if what == "wer" and "n_words" in by:
        words = by["n_words"]
        return {"words": words} | {n: round(by[f"wer_{n}"] * words) for n in COUNTED}
    if what == "f0_correlation_vpc22" and f"{what}_std" in by:
        return {"std": by[f"{what}_std"]}
    return {}


def _join(scores: Sequence[Score]) -> Score:
    """Word error rate of several splits together: all errors over all words; NaN where the words
    were not counted."""
    first, *more = scores
    if not more:
        return first
    counts = {n: sum(s.parts.get(n, math.nan) for s in scores) for n in ("words", *COUNTED)}
    errors = sum(counts[name] for name in COUNTED)
    return Score("wer", first.split, first.protected, errors / counts["words"], parts=counts)


def averages(
    scores: Sequence[Score], privacy: Privacy, what: str = "eer", *, attacker: str | None = None
) -> dict[str, float]:
    """The (weighted) mean of each set, of EERs by the attacker that counts or another; NaN where a
    split is missing."""
    who = (privacy.attacker if attacker is None else attacker) if what == "eer" else ""
    found = {s.split: s.value for s in scores if s.what == what and s.attacker == who}
    return {
        name: float(
            np.average([found.get(s, math.nan) for s in own], weights=privacy.weights or None)
        )
        for name, own in privacy.sets.items()
    }


_MEANS: Sequence[tuple[str, str, str | None]] = (  # title, figure, attacker
    ("Weighted average EER {} orig", "eer", UNPROTECTED),
    ("Weighted average EER {} anon", "eer", None),
    ("Average WER {} orig", "wer", "original"),
    ("Average WER {} anon", "wer", "anon"),
    ("Weighted average pitch correlation {}", "f0_correlation_vpc22", None),
    ("Weighted average gain of voice distinctiveness {}", "g_vd_2020", None),
)


def kaldi_percent(value: float) -> str:
    """A fraction in percent as Kaldi's recipes print it: four digits that count."""
    return f"{100 * value:.4g}%"


def _printed(score: Score) -> float:
    """A figure as it stands in the file."""
    if score.what == "eer":
        return float(kaldi_percent(score.value)[:-1])
    digits = {"wer": 2, "f0_correlation_vpc22": 4}.get(score.what)
    value = 100 * score.value if score.what == "wer" else score.value
    return value if digits is None else float(f"{value:.{digits}f}")


def means(scores: Sequence[Score], protocol: Protocol) -> list[str]:
    """The averages of 2022 that all their figures are there for: EER, pitch and voice
    distinctiveness by the weights of the protocol, words over LibriSpeech and VCTK alike. As there
    they are of the figures as printed."""
    lines = []
    scores = [replace(s, value=_printed(s)) for s in scores]
    for title, what, of in _MEANS:
        if what == "wer":
            protected = of == "anon"
            own = [s for s in scores if (s.what, s.protected) == (what, protected)]
            wer = {s.split: s.value for s in own if s.attacker != TRAINED}
            by = {
                name: sum(wer.get(f"{data}_{name}", math.nan) for data in ("libri", "vctk")) / 2
                for name in protocol.privacy.sets
            }
        else:
            by = averages(scores, protocol.privacy, what, attacker=of)
        lines += [
            f"{title.format(name)}: {value:.3f}"
            for name, value in by.items()
            if not math.isnan(value)
        ]
    return lines


def category(average: float, categories: Sequence[float]) -> int:
    """Number of the lowest EERs that an average reaches, 0 to all of them; a system is ranked with
    those of its category."""
    return sum(average >= least for least in categories)


def conclusions(scores: Sequence[Score], protocol: Protocol) -> Iterator[str]:
    """Sentences: the average EER of each set and its category, and what was not measured. A
    challenge that averages nothing has the EER of each split."""
    privacy = protocol.privacy
    who = {s.split: s.value for s in scores if s.what == "eer" and s.attacker == privacy.attacker}
    for name, value in averages(scores, privacy).items():
        if lacking := [split for split in privacy.sets[name] if split not in who]:
            yield f"{name}: no average EER: not measured: {' '.join(lacking)}"
        if not privacy.averaged:
            yield from (f"{s}: EER {100 * who[s]:.3f} %" for s in privacy.sets[name] if s in who)
        elif not lacking:
            yield f"{name}: average EER {100 * value:.3f} %{_ranked(value, protocol.categories)}"
    if protocol.layout == "summary2022":
        yield from means(scores, protocol)
    there = {(s.what, s.split) for s in scores if s.protected}
    asked = {("wer", joined(w)[0]) for w in protocol.words}
    asked |= {("uar", split) for split in protocol.emotions}
    if missing := sorted(" of ".join(one) for one in asked - there):
        yield f"not measured: {', '.join(missing)}"


def _ranked(value: float, categories: Sequence[float]) -> str:
    if not categories:
        return ""
    n = category(value, categories)
    least = f" (at least {100 * categories[n - 1]:.0f} %)" if n else ""
    return f", category {n} of {len(categories)}{least}"


# ---- Result files of the challenges, read and written as their tools write them.
#
# result_for_rank<suffix> of 2024 and 2026 has sections `---- <name> results ----`, each a table of
# pandas, in percent. results.txt of 2020, and of 2022 together with results_summary.txt, has lines
# of Kaldi's programs. Nothing of the challenges' code is here: the layouts follow their published
# files.


GENDERS = ("f", "m", "mixed")
CONDITIONS = ("original", "anon")

# ---- result_for_rank<suffix>

LAZY, INFORMED = "ASV_eval", "ASV_eval^anon"
_LABELS = ("dataset", "split", "gender", "enrollment", "trial", "ser", "asr")
_SECTIONS = {"SER": ("uar", "ser"), LAZY: ("eer", ""), INFORMED: ("eer", ""), "ASR": ("wer", "asr")}


@dataclass(frozen=True)
class Layout:
    """Layout of a year. first: the attacker of the section ASV_eval. emotions: in their order.
    counted: whether rows keep the number that they had before others were left out: each pair of
    sets has three conditions, and protected words follow those of all sets, of which `unlisted` are
    not of words. mean: whether a second header says so. digits: of UAR; text: whether it is written
    as such. apart: data sets with a section of their own."""

    first: str
    emotions: str
    counted: bool = True
    unlisted: int = 2
    mean: bool = True
    digits: int = 4
    text: bool = False
    apart: tuple[str, ...] = ()


LAYOUTS = {
    "rank2024": Layout(UNPROTECTED, "sad neu ang hap"),
    "rank2026": Layout("lazy_informed", "sad ang hap neu", counted=False, mean=False),
    "rank2026_track2": Layout(
        "lazy_informed", "hap neu ang sad", unlisted=0, digits=3, text=True,
        apart=("en", "de", "es", "fr"),
    ),
}  # fmt: skip


@dataclass
class Section:
    """Table of a result file. numbers: of its rows; none: it has none. mean, text: see `Layout`."""

    name: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    mean: bool = False
    text: bool = False

    def __str__(self) -> str:
        """As pandas writes it."""
        frame = DataFrame(self.rows, columns=self.columns)
        figures = [name for name in self.columns if name not in _LABELS]
        if not self.text:
            frame = frame.astype(dict.fromkeys(figures, float))
        if self.numbers:
            frame.index = self.numbers  # type: ignore[assignment]
        if self.mean:
            second = ["mean" if name in figures else "" for name in self.columns]
            frame.columns = MultiIndex.from_arrays([self.columns, second])
        return f"---- {self.name} results ----\n{frame.to_string(index=bool(self.numbers))}"

    def scores(self, informed: str) -> Iterator[Score]:
        """The figures in it. informed: the attacker of ASV_eval^anon."""
        what, column = _SECTIONS[self.name]
        for cells in self.rows:
            row = dict(zip(self.columns, cells, strict=True))
            split = _split_of(row["dataset"], row["split"], row.get("gender", ""))
            value = float(row[what.upper()]) / 100
            low, high = (float(row.get(f"EER-ci_{end}", "nan")) / 100 for end in ("lower", "upper"))
            if what == "eer":
                sides = row["enrollment"], row["trial"]
                attacker = _attacker(self.name, *sides, informed)
                yield Score(what, split, sides[1] == "anon", value, attacker, low, high)
                continue
            parts = {
                name.removeprefix("ACC_"): float(cell) / 100
                for name, cell in row.items()
                if name.startswith("ACC_")
            }
            yield Score(what, split, row[column] == "anon", value, parts=parts)


def _attacker(section: str, enrolment: str, trial: str, informed: str) -> str:
    """The attacker of a row. KeyError for one that no challenge has."""
    if section == INFORMED:
        return {("anon", "anon"): informed}[enrolment, trial]
    known = {("original", "original"): UNPROTECTED, ("original", "anon"): "ignorant",
             ("anon", "anon"): "lazy_informed"}  # fmt: skip
    return known[enrolment, trial]


def _split_of(data: str, part: str, gender: str) -> str:
    """Our name of a row: vctk, dev, f_common is vctk_dev_common_f."""
    own, common, _ = gender.partition("_common")
    words = [data, part, "common" if common else "", own]
    return "_".join(word for word in words if word not in ("", "-"))


def _row_of(split: str) -> tuple[str, str, str]:
    """Their data set, part and gender of our split; no gender: an empty one."""
    head, _, tail = split.rpartition("_")
    head, gender = (head, tail) if tail in GENDERS else (split, "")
    if head.endswith("_common"):
        head, gender = head.removesuffix("_common"), f"{gender}_common"
    data, _, part = head.rpartition("_")
    return data or head, part if data else "", gender


@dataclass
class Ranked:
    """A file result_for_rank: times and sections in their order, and the lines behind them."""

    blocks: list[str | Section]
    behind: int = 0

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.blocks)) + "\n" * (1 + self.behind)


def parse_rank(path: Path) -> Ranked:
    """The sections of a file result_for_rank. UserError names the first line at fault."""
    found = Ranked([])
    for number, line in read_lines(path):
        words = line.split()
        if line.startswith("----"):
            title = line.strip("- \n")
            known = title.removesuffix(" results")
            is_section = known != title
            if is_section and known not in _SECTIONS:
                raise UserError(f"{path}:{number}: {title}: not a section of a challenge")
            found.blocks.append(Section(known) if is_section else line.strip())
        elif words and found.blocks and isinstance(found.blocks[-1], Section):
            try:
                _take(found.blocks[-1], words)
            except (KeyError, ValueError) as error:
                at = f"{path}:{number}: no row of a {found.blocks[-1].name} table"
                raise UserError(f"{at}: {' '.join(words)}") from error
    text = path.read_text(encoding="utf-8")
    found.behind = len(text) - len(text.rstrip("\n")) - 1
    for section in found.blocks:
        if isinstance(section, Section) and str(section) not in text:
            section.text = True  # the tools of track 2 wrote text
    return found


def _take(section: Section, words: list[str]) -> None:
    """Add a line to a section. ValueError, KeyError: it does not fit."""
    if not section.columns:
        section.columns = words
    elif set(words) == {"mean"}:
        section.mean = True
    else:
        if len(words) > len(section.columns):  # a file of several runs has both kinds
            section.numbers.append(int(words.pop(0)))
        section.rows.append(words)
        list(replace(section, rows=[words]).scores(""))


def write_rank(scores: Sequence[Score], protocol: Protocol, stamps: Sequence[str]) -> str:
    """The text of result_for_rank. stamps: its times, as the challenge writes them; the last one
    stands for further ones."""
    layout = LAYOUTS[protocol.layout]
    lists = [split for own in protocol.privacy.sets.values() for split in own]
    heard = [joined(word)[0] for word in protocol.words]

    def listed(name: str, attacker: str) -> Section:
        own = {s.split: s for s in scores if s.what == "eer" and s.attacker == attacker}
        speech = "original" if attacker == UNPROTECTED else "anon"
        rows = [
            ([*_row_of(split), speech, speech, f"{100 * own[split].value:.3f}"],
             3 * n + (0 if speech == "original" else 2))
            for n, split in enumerate(lists)
            if split in own
        ]  # fmt: skip
        return _section(name, [*_LABELS[:5], "EER"], rows, layout)

    def measured(name: str, what: str, splits: Sequence[str], order: Sequence[str]) -> Section:
        own = {(s.split, s.protected): s for s in scores if s.what == what}
        felt = {name for s in own.values() for name in s.parts} if what == "uar" else set()
        emotions = [name for name in layout.emotions.split() if name in felt]
        digits, ahead = (layout.digits, 0) if what == "uar" else (3, len(splits) + layout.unlisted)
        rows = []
        for n, split in enumerate(splits):
            for speech in order:
                if score := own.get((split, speech == "anon")):
                    values = [score.value, *(score.parts.get(e, math.nan) for e in emotions)]
                    cells = [
                        *_row_of(split)[:2],
                        speech,
                        *(f"{100 * v:.{digits}f}" for v in values),
                    ]
                    rows.append((cells, n + ahead * (speech == "anon")))
        columns = ["dataset", "split", name.lower(), what.upper(), *(f"ACC_{e}" for e in emotions)]
        return _section(name, columns, rows, layout)

    before = [measured("SER", "uar", protocol.emotions, ("anon", "original"))]
    before += [listed(LAZY, layout.first), measured("ASR", "wer", heard, CONDITIONS)]
    times = [*stamps, *[stamps[-1]] * 4]
    after = [listed(INFORMED, protocol.privacy.attacker)]
    if layout.apart:
        rows = after[0].rows
        after = [
            replace(after[0], rows=[row for row in rows if row[0] == data], numbers=[])
            for data in layout.apart
        ]
    blocks: list[str | Section] = [f"---- Time: {times.pop(0)} ----"]
    blocks += [section for section in before if section.rows]
    for section in after:
        if section.rows:
            blocks += [f"---- Time: {times.pop(0)} ----", section]
    return str(Ranked(blocks, behind=int(bool(layout.apart))))


def _section(
    name: str, columns: list[str], rows: Sequence[tuple[list[str], int]], layout: Layout
) -> Section:
    """A section of rows and their numbers, sorted as there; emotions keep the order of rows."""
    ranked = sorted(rows, key=lambda row: row[0][:2])
    numbers = [number for _, number in ranked]
    if name == "SER" or not layout.counted:
        numbers = list(range(len(ranked)))
    emotions = name == "SER"
    return Section(
        name, columns, [cells for cells, _ in ranked], numbers, emotions and layout.mean,
        emotions and layout.text,
    )  # fmt: skip


# ---- results.txt of 2020 and 2022, and results_summary.txt of 2022
#
# 2022 has two evaluators and a results.txt of each: of one trained on protected speech in
# results/, and of one trained on original speech in results.orig/. Either file has enrolment and
# trials as OO, OA and AA. The summary takes OO from the latter and AA from the former.

_ORIGINAL = re.compile(r"(.*[._-])?orig([._-].*)?")  # such as results.orig_mcadams
SUMMARY, OWN = "results_summary.txt", "results.txt"
Whose = tuple[str, str, str]  # attackers of OO, OA and AA


def _whose(protocol: Protocol, name: str) -> Whose:
    """The attackers of a file."""
    informed = protocol.privacy.attacker
    if protocol.layout == "summary2022" and name == OWN:
        return f"{informed}_OO", f"{informed}_OA", informed
    return UNPROTECTED, "ignorant", informed if name == SUMMARY else "lazy_informed"


_LISTS = re.compile(
    r"ASV-(\w+?)_enrolls(?P<e>\w*)-(?P<set>\w+?)_trials_(?P<g>[fm](?:_common)?)(?P<t>\w*)"
)
_WORDS = re.compile(r"ASR-(?P<set>\w+?)_asr(?P<t>\w*)")
_ERRORS = re.compile(
    r"%WER (?P<wer>\S+) \[ (?P<n>\d+) / (?P<words>\d+), (?P<insertions>\d+) ins, "
    r"(?P<deletions>\d+) del, (?P<substitutions>\d+) sub \] ?(?P<note>.*)"
)
_TRIALS = re.compile(r"(?P<set>\w+?)_trials_(?P<g>[fm](?:_common)?)")
_FIGURES: Mapping[str, tuple[str, ...]] = {  # by what stands before them
    "EER:": ("eer",), "Cllr (min/act):": ("cllr_min", "cllr"), "ROCCH-EER:": ("eer_rocch",),
    "linkability:": ("linkability",), "Population:": ("d_ece",), "Individual:": ("l_w",),
    "De-Identification :": ("deid_2020",), "Gain of voice distinctiveness :": ("g_vd_2020",),
}  # fmt: skip
_PITCH = re.compile(r"Pitch_correlation: mean=(?P<mean>\S+) std=(?P<std>\S+)")
_PERCENT = ("eer", "eer_rocch")


def parse_lines(path: Path, protocol: Protocol) -> list[Score]:
    """The figures of results.txt or results_summary.txt. UserError names the first line at fault;
    averages are left out, because they are computed anew."""
    found: list[Score] = []
    of = ""
    original = any(_ORIGINAL.fullmatch(part) for part in path.absolute().parts[-2:])
    whose = {True: _whose(protocol, "" if original else OWN), False: _whose(protocol, SUMMARY)}
    for number, line in read_lines(path):
        inside = line.startswith("  ")
        head, _, rest = (of, "", line.strip()) if inside else line.rstrip("\n").partition("  ")
        of = head
        if not rest or re.match("(Weighted a|A)verage ", head):
            continue
        try:
            found += _scores_of_line(head, rest.strip(), whose[inside])
        except (KeyError, ValueError) as error:
            at = f"{path}:{number}"
            raise UserError(f"{at}: no line of a result file: {line.strip()}") from error
    return found


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    if found := pattern.fullmatch(text):
        return found
    raise ValueError(text)


def _scores_of_line(head: str, text: str, whose: Whose) -> list[Score]:
    """The figures of an item. KeyError or ValueError: it is none."""
    if errors := _ERRORS.fullmatch(text):
        of = _match(_WORDS, head)
        counts = {name: int(errors[name]) for name in ("words", *COUNTED)}
        wer, note = int(errors["n"]) / counts["words"], errors["note"]
        who = TRAINED if "/user_" in note and not of["t"] else ""
        return [Score("wer", of["set"], bool(of["t"]), wer, who, parts=counts, note=note)]
    attacker, protected = "", True
    if head.startswith("ASV-"):
        of = _match(_LISTS, head)
        sides = bool(of["e"]), bool(of["t"])
        at = {(False, False): 0, (False, True): 1, (True, True): 2}[sides]
        attacker, protected = whose[at], sides[1]
    else:
        of = _match(_TRIALS, head)
    gender, _, common = of["g"].partition("_")
    split = "_".join(filter(None, (of["set"], common, gender)))
    if pitch := _PITCH.fullmatch(text):
        parts = {"std": float(pitch["std"])}
        return [Score("f0_correlation_vpc22", split, True, float(pitch["mean"]), parts=parts)]
    start = next((start for start in _FIGURES if text.startswith(start)), "")
    values = text.removeprefix(start).strip().partition(" ")[0].rstrip("%").split("/")
    return [
        Score(what, split, protected, float(x) / (100 if what in _PERCENT else 1), attacker)
        for what, x in zip(_FIGURES[start], values, strict=True)
    ]


def _lists_of(split: str) -> str:
    """Their name of a list: vctk_dev_trials_f_common for vctk_dev_common_f."""
    data, part, gender = _row_of(split)
    return f"{data}_{part}_trials_{gender}"


class _Lines:
    """Lines of the figures of a system. suffix: of its sets."""

    def __init__(self, scores: Sequence[Score], protocol: Protocol, suffix: str = "_anon") -> None:
        self.protocol, self.suffix = protocol, suffix
        self.by: dict[tuple[str, str, bool, str], list[Score]] = {}
        for score in scores:
            key = score.what, score.split, score.protected, score.attacker
            self.by.setdefault(key, []).append(score)
        self.splits = [split for own in protocol.privacy.sets.values() for split in own]

    def one(
        self, what: str, split: str, protected: bool = True, attacker: str = ""
    ) -> Score | None:
        """The last figure of a kind, which is that with the large language model."""
        return self.by.get((what, split, protected, attacker), [None])[-1]

    def lists(self, whose: Whose) -> Iterator[tuple[str, str, bool, str]]:
        """Titles of attacks on lists, the list, whether its speech is protected, the attacker."""
        for split in self.splits:
            name, data = _lists_of(split), "_".join(_row_of(split)[:2])
            behind = self.suffix
            yield f"ASV-{data}_enrolls-{name}", split, False, whose[0]
            yield f"ASV-{data}_enrolls-{name}{behind}", split, True, whose[1]
            yield f"ASV-{data}_enrolls{behind}-{name}{behind}", split, True, whose[2]

    def words(self, score: Score) -> str:
        """Kaldi's line of words."""
        n = {name: int(score.parts[name]) for name in score.parts}
        errors = sum(n[name] for name in COUNTED)
        counts = f"{n['insertions']} ins, {n['deletions']} del, {n['substitutions']} sub"
        told = f"%WER {100 * score.value:.2f} [ {errors} / {n['words']}, {counts} ]"
        return f"{told} {score.note}".rstrip()

    def heard(self, *who: str) -> Iterator[tuple[str, list[Score]]]:
        """Titles of recognised sets, and their figures by the first recogniser that heard it."""
        for word in self.protocol.words:
            name = joined(word)[0]
            for protected in (False, True):
                heard = (self.by.get(("wer", name, protected, one)) for one in who)
                if found := next(filter(None, heard), None):
                    yield f"ASR-{name}_asr{self.suffix * protected}", found

    def pitch(self) -> list[str]:
        """Lines of the correlation of pitch."""
        return [
            f"{_lists_of(split)}  Pitch_correlation: mean={score.value:.4f} "
            f"std={score.parts.get('std', math.nan):.4f}"
            for split in self.splits
            if (score := self.one("f0_correlation_vpc22", split))
        ]


_ITEMS: Sequence[tuple[str, Callable[..., str]]] = (
    ("eer", lambda x: f"EER: {kaldi_percent(x)}"),
    ("cllr", lambda low, x: f"Cllr (min/act): {low:.3f}/{x:.3f}"),
    ("eer_rocch", lambda x: f"ROCCH-EER: {100 * x:.3f}%"),
    ("linkability", lambda x: f"linkability: {x:.6f}"),
    ("d_ece", lambda x: f"Population: {_zebra(x)} bit"),
    ("l_w", lambda x: f"Individual: {_zebra(x)} ({tag(x)})"),
)


def _zebra(x: float) -> str:
    """A figure as ZEBRA prints it: 0, one digit below 0.0005, or three decimals."""
    return f"{x:.3f}" if x > 5e-4 else f"{x:.0e}" if x else "0"


def write_full(scores: Sequence[Score], protocol: Protocol, *, original: bool = False) -> str:
    """The text of results.txt, of 2020 or 2022. original: of the evaluator that is trained on
    original speech."""
    of, lines = _Lines(scores, protocol), []
    whose = _whose(protocol, "" if original else OWN)
    for title, split, protected, attacker in sorted(of.lists(whose)):
        at = split, protected, attacker
        items = []
        for what, say in _ITEMS:
            names = ("cllr_min", "cllr") if what == "cllr" else (what,)
            found = [score for name in names if (score := of.one(name, *at))]
            if len(found) == len(names):
                items.append("  " + say(*(score.value for score in found)))
        lines += [title, *items] if items else []
    for title, heard in sorted(of.heard(TRAINED, "")):
        lines += [title, *(f"  {of.words(score)}" for score in heard if score.parts)]
    lines += [] if original else of.pitch()
    for split in () if original else of.splits:
        deid, gain = (of.one(what, split) for what in ("deid_2020", "g_vd_2020"))
        if deid and gain:
            lines += [
                _lists_of(split),
                f"  De-Identification : {deid.value!r}",
                f"  Gain of voice distinctiveness : {gain.value!r}",
            ]
    return "\n".join([*lines, ""])


def write_summary(scores: Sequence[Score], protocol: Protocol) -> str:
    """The text of results_summary.txt of 2022, with its averages."""
    of, lines = _Lines(scores, protocol), []
    own, all_lists = protocol.privacy.attacker, list(of.lists(_whose(protocol, SUMMARY)))
    for wanted in (UNPROTECTED, own):
        for splits in protocol.privacy.sets.values():
            named = [row for row in all_lists if row[3] == wanted and row[1] in splits]
            for title, split, protected, attacker in named if wanted != own else sorted(named):
                if score := of.one("eer", split, protected, attacker):
                    lines.append(f"{title}  EER: {kaldi_percent(score.value)}")
    heard = sorted(of.heard(""), key=lambda one: one[0].endswith(of.suffix))
    lines += [f"{title}  {of.words(found[-1])}" for title, found in heard if found[-1].parts]
    lines += of.pitch()
    for split in of.splits:
        if score := of.one("g_vd_2020", split):
            lines.append(f"{_lists_of(split)}  Gain of voice distinctiveness : {score.value!r}")
    return "\n".join([*lines, *means(scores, protocol), ""])


# ---- Any of them


def read_results(path: Path, protocol: Protocol) -> list[Score]:
    """The figures of a result file of any year; protocol: says whose its EERs are. UserError names
    the first line at fault."""
    informed = protocol.privacy.attacker
    if protocol.layout in LAYOUTS:
        sections = [block for block in parse_rank(path).blocks if isinstance(block, Section)]
        found = [score for section in sections for score in section.scores(informed)]
    else:
        found = parse_lines(path, protocol)
    if not found:
        expected = "---- ASV_eval results ----" if protocol.layout in LAYOUTS else "ASV-<lists>"
        raise UserError(f"{path}: has no line such as '{expected}'")
    return found


def write_results(
    scores: Sequence[Score], protocol: Protocol, system: str, at: time.struct_time
) -> dict[str, str]:
    """The text of each result file that the challenge's own tools would write, by its name."""
    if protocol.layout in LAYOUTS:
        stamp = time.strftime("%d-%m-%y_%H:%M", at)
        return {f"result_for_rank_{system}": write_rank(scores, protocol, [stamp])}
    texts = {OWN: write_full(scores, protocol)}
    if protocol.layout == "summary2022":
        original = write_full(scores, protocol, original=True)
        texts |= {f"results.orig/{OWN}": original} if original.startswith("ASV-") else {}
        texts[SUMMARY] = write_summary(scores, protocol)
    return texts
