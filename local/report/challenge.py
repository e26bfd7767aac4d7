"""The VoicePrivacy challenges' own figures: averages, categories, and what was not measured.

Their result files are also read and written, so that a participant's
figures and those of a recipe can stand beside each other.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame, MultiIndex, concat

from local.metrics.detection import tag
from local.metrics.registry import read_table
from local.plan.labels import Family
from local.protocols.attackers import Privacy, Protocol, Sets
from local.report.frame import where
from local.report.measures import ROOT
from utils.cli import UserError
from utils.tables import read_lines

_TOLD = read_table(ROOT / "local/report/challenge.yaml")
UNPROTECTED = "unprotected"
TRAINED = "trained"  # a recogniser that learnt from protected speech, where it hears the original
VOICES = ("deid_2020", "g_vd_2020")
FIGURES = (*_TOLD["figures"], *VOICES)
_ROUNDED = 1e-4  # by which one figure may differ in the files of a year
COUNTED = ("substitutions", "insertions", "deletions")


@dataclass(frozen=True)
class Score:
    """A figure of a challenge, a fraction (of `g_vd_2020`: dB). what: of FIGURES; split: such as
    libri_test_f; protected: whether speech was. attacker: whose; empty for words (but TRAINED),
    emotions and pitch. An evaluator that learnt from protected speech and hears original enrolment,
    or also trials: semi_informed_OA, semi_informed_OO. low, high: of its interval, NaN where there
    is none. parts: for wer the counts `words` and those of COUNTED, for uar the recall of each
    emotion, for f0_correlation_vpc22 `std`. note: where words are from; of a recipe's others the
    metric."""

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
    # Mixed trials are all there are: what is left of use in them is that of the set.
    mixed = own["split"].str.removesuffix("_mixed")
    own = own.assign(split=own["split"].where(own["family"] != Family.UTILITY, mixed))
    lists = _lists(protocol)
    of = where(own, evaluator=evaluator, split=lists)
    asked = (UNPROTECTED, *protocol.attackers.split())
    attacks = where(of, family=Family.VERIFICATION, attacker=asked)
    voices = where(of, family=Family.SIMILARITY, attacker="", metric=VOICES)
    theirs = "eer_speechbrain" if protocol.layout.startswith("rank") else "eer_kaldi"
    named = {theirs: "eer", "uar_vpc24": "uar"}  # 2024 and 2026: the mean over folds
    every = _pick(concat([attacks, voices, where(own, family=Family.UTILITY)]), named, system)
    heard = {(s.split, s.protected): s for s in every if s.what == "wer"}
    splits = {"wer": (), "uar": protocol.emotions}
    found = [s for s in every if s.split in splits.get(s.what, lists)]
    for word, protected in product(protocol.words, (False, True)):
        parts = [(split, protected) for split in joined(word)[1]]
        if heard.keys() >= {*parts}:
            together = _join([heard[part] for part in parts])
            found += [] if math.isnan(together.value) else [together]
    return found


def _lists(protocol: Protocol) -> list[str]:
    return [split for splits in protocol.privacy.sets.values() for split in splits]


def _pick(figures: DataFrame, named: Mapping[str, str], system: str) -> list[Score]:
    """The first figure of each kind, split, system and attacker. named: metrics that are taken for
    a figure, before one that is called so."""
    own = figures.assign(protected=figures["system"] == system)
    own = where(own.assign(what=own["figure"].replace(named)), what=FIGURES)
    own = own.sort_values("figure", key=lambda name: ~name.isin(named), kind="stable")
    # Such as a system's column of an attack on original speech.
    odd = (own["attacker"] != "") & (own["protected"] == (own["attacker"] == UNPROTECTED))
    own = own[~odd].drop_duplicates(["what", "split", "protected", "attacker"])
    return [
        Score(
            f.what, f.split, f.protected, f.value, f.attacker, f.low, f.high, _parts(figures, f),
            "" if f.what == "wer" else f.metric,
        )
        for f in own.itertuples()
    ]  # fmt: skip


def _parts(figures: DataFrame, row: Any) -> dict[str, float]:
    """Parts of a figure (see `Score`), of the same recogniser and speech."""
    same = where(figures, split=row.split, system=row.system, evaluator=row.evaluator)
    by = dict(zip(same["figure"], same["value"], strict=True))
    if row.what == "uar":
        own = where(same, metric="recall_vpc24" if row.metric == "uar_vpc24" else "recall")
        found = zip(own["group"], own["value"], strict=True)
        return {_TOLD["short"].get(emotion, emotion): value for emotion, value in found}
    if row.what == "wer" and "n_words" in by:
        words = by["n_words"]
        return {"words": words} | {n: round(by[f"wer_{n}"] * words) for n in COUNTED}
    std = by.get(f"{row.what}_std")  # of pitch
    return {} if std is None else {"std": std}


def _join(scores: Sequence[Score]) -> Score:
    """Word error rate of several splits together: all errors over all words; NaN where the words
    were not counted."""
    first, *more = scores
    if not more:
        return first
    counts = {n: sum(s.parts.get(n, math.nan) for s in scores) for n in ("words", *COUNTED)}
    errors = sum(counts[name] for name in COUNTED)
    return Score("wer", first.split, first.protected, errors / counts["words"], parts=counts)


def check_one_run(found: Mapping[Path, Sequence[Score]]) -> None:
    """Raise a UserError where results of two runs have different figures of one kind and split."""
    first: dict[tuple[str, str, bool, str], tuple[Path, float]] = {}
    for path, score in ((path, score) for path, own in found.items() for score in own):
        key = score.what, score.split, score.protected, score.attacker
        other, value = first.setdefault(key, (path, score.value))
        if other != path and abs(value - score.value) > _ROUNDED:
            raise UserError(
                f"{path}: {score.what} of {score.split} is {score.value:.4g} there, and "
                f"{value:.4g} in {other}; give results of one run"
            )


def averages(
    scores: Sequence[Score], privacy: Privacy, what: str = "eer", *, attacker: str | None = None
) -> dict[str, float]:
    """The (weighted) mean of each set, of EERs by the attacker that counts or another; NaN where a
    split is missing."""
    who = (privacy.attacker if attacker is None else attacker) if what == "eer" else ""
    found = {s.split: s.value for s in scores if s.what == what and s.attacker == who}
    values = {name: [found.get(s, math.nan) for s in own] for name, own in privacy.sets.items()}
    weights = privacy.weights or None
    return {name: float(np.average(own, weights=weights)) for name, own in values.items()}


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
    lines, privacy = [], protocol.privacy
    alike = Sets({name: [f"libri_{name}", f"vctk_{name}"] for name in privacy.sets})
    for title, what, protected in _TOLD["means"]:
        own = [replace(s, value=_printed(s)) for s in scores if s.protected == protected]
        of = replace(privacy, sets=alike, weights=()) if what == "wer" else privacy
        by = averages(own, of, what, attacker=None if protected else UNPROTECTED)
        lines += [f"{title.format(name)}: {x:.3f}" for name, x in by.items() if not math.isnan(x)]
    return lines


def category(average: float, categories: Sequence[float]) -> int:
    """Number of the lowest EERs that an average reaches, 0 to all of them; a system is ranked with
    those of its category."""
    return sum(round(average, 9) >= least for least in categories)  # 40 %, but for its last bit


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
    own = {"eer": "EER on a line between thresholds; the challenge's is at one (--protocol)"}
    if protocol.layout != "rank2026_track2":  # where all are one fold
        own["uar"] = "UAR over all utterances; the challenge's is over folds (spk2fold)"
    yield from sorted({f"{s.split}: {own[s.note]}" for s in scores if s.note in own})
    there = {(s.what, s.split) for s in scores if s.protected}
    asked = {("wer", joined(w)[0]) for w in protocol.words}
    asked |= {("uar", split) for split in protocol.emotions}
    if protocol.layout == "summary2022":
        for what in ("f0_correlation_vpc22", "g_vd_2020"):
            by = averages(scores, privacy, what)
            asked |= {(what, name) for name, mean in by.items() if math.isnan(mean)}
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
Rows = list[tuple[list[str], int]]  # cells, and the number of the row
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
    apart: Sequence[str] = ()


LAYOUTS = {name: Layout(**own) for name, own in _TOLD["layouts"].items()}


# Attackers by what of enrolment and trials is protected.
_ATTACKERS = {("original", "original"): UNPROTECTED, ("original", "anon"): "ignorant",
              ("anon", "anon"): "lazy_informed"}  # fmt: skip


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


def _read_rank(path: Path, informed: str) -> Iterator[Score]:
    """The figures of a file result_for_rank. informed: the attacker of ASV_eval^anon. UserError
    names the first line at fault."""
    section, columns = "", list[str]()
    for number, line in read_lines(path):
        words = line.split()
        if line.startswith("----"):
            title = line.strip("- \n")
            section, columns = title.removesuffix(" results"), []
            if section == title:  # a time
                section = ""
            elif section not in _SECTIONS:
                raise UserError(f"{path}:{number}: {title}: not a section of a challenge")
        elif words and section and not columns:
            columns = words
        elif words and section and set(words) != {"mean"}:
            try:
                cells = words
                if len(words) > len(columns):  # some runs number their rows, others do not
                    int(words[0])
                    cells = words[1:]
                yield _score(section, dict(zip(columns, cells, strict=True)), informed)
            except (KeyError, ValueError) as error:
                at = f"{path}:{number}: no row of a {section} table"
                raise UserError(f"{at}: {line.strip()}") from error


def _read(what: str, text: str) -> float:
    """A figure; ValueError for an EER of nan, whose average would have the lowest category."""
    if math.isnan(value := float(text)) and what == "eer":
        raise ValueError(text)
    return value


def _score(section: str, row: Mapping[str, str], informed: str) -> Score:
    """The figure of a row. ValueError, KeyError: it has none."""
    what, column = _SECTIONS[section]
    split = _split_of(row["dataset"], row["split"], row.get("gender", ""))
    value = _read(what, row[what.upper()]) / 100
    if what == "eer":
        low, high = (float(row.get(f"EER-ci_{end}", "nan")) / 100 for end in ("lower", "upper"))
        known = {("anon", "anon"): informed} if section == INFORMED else _ATTACKERS
        attacker = known[row["enrollment"], row["trial"]]
        return Score(what, split, row["trial"] == "anon", value, attacker, low, high)
    felt = [name for name in row if name.startswith("ACC_")]
    parts = {name.removeprefix("ACC_"): float(row[name]) / 100 for name in felt}
    return Score(what, split, row[column] == "anon", value, parts=parts)


def write_rank(scores: Sequence[Score], protocol: Protocol, stamps: Sequence[str]) -> str:
    """The text of result_for_rank. stamps: its times, as the challenge writes them; the last one
    stands for further ones."""
    layout, times = LAYOUTS[protocol.layout], [*stamps, *[stamps[-1]] * 4]
    felt = {name for s in scores if s.what == "uar" for name in s.parts}
    emotions = [name for name in layout.emotions.split() if name in felt]

    def listed(attacker: str) -> Rows:
        own = [s for s in scores if s.attacker == attacker]
        return measured("eer", _lists(protocol), own)

    def measured(
        what: str, splits: Sequence[str], found: Sequence[Score] = scores, parts: Sequence[str] = ()
    ) -> Rows:
        own = {(s.split, s.protected): s for s in found if s.what == what}
        digits = layout.digits if what == "uar" else 3
        # An EER has a gender, the speech of enrolment and trials, and every third row.
        of_pair, behind = what == "eer", 2 if what == "eer" else len(splits) + layout.unlisted
        rows = []
        for (n, split), protected in product(enumerate(splits), (False, True)):
            if score := own.get((split, protected)):
                values = [score.value, *(score.parts.get(e, math.nan) for e in parts)]
                speech = [CONDITIONS[protected]]
                cells = [*_row_of(split)[: 2 + of_pair], *speech, *speech * of_pair]
                cells += [f"{100 * value:.{digits}f}" for value in values]
                rows.append((cells, (3 if of_pair else 1) * n + behind * protected))
        return rows

    heard = [joined(word)[0] for word in protocol.words]
    told = [
        _table("SER", measured("uar", protocol.emotions, parts=emotions), layout, emotions),
        _table(LAZY, listed(layout.first), layout),
        _table("ASR", measured("wer", heard), layout),
    ]
    informed = listed(protocol.privacy.attacker)
    blocks = [f"---- Time: {times.pop(0)} ----", *filter(None, told)]
    for data in layout.apart or ("",):
        own = [row for row in informed if data in ("", row[0][0])]
        if table := _table(INFORMED, own, layout):
            blocks += [f"---- Time: {times.pop(0)} ----", table]
    return "\n\n".join(blocks) + "\n" * (2 if layout.apart else 1)


def _table(name: str, rows: Rows, layout: Layout, emotions: Sequence[str] = ()) -> str:
    """A section as pandas writes it, its rows sorted as there; nothing without rows."""
    what, column = _SECTIONS[name]
    figures = [what.upper(), *(f"ACC_{emotion}" for emotion in emotions)]
    columns = [*_LABELS[:2], *([column] if column else _LABELS[2:5]), *figures]
    of_emotions = name == "SER"
    ranked = sorted(rows, key=lambda row: row[0][: 3 if of_emotions else 2])
    numbers = [n for _, n in ranked] if layout.counted and not of_emotions else None
    table = DataFrame([cells for cells, _ in ranked], numbers, columns)
    if not (of_emotions and layout.text):
        table = table.astype(dict.fromkeys(figures, float))
    if of_emotions and layout.mean:
        second = ["mean" if name in figures else "" for name in columns]
        table.columns = MultiIndex.from_arrays([columns, second])
    text = table.to_string(index=not (layout.apart and name == INFORMED))
    return f"---- {name} results ----\n{text}" if rows else ""


# ---- results.txt of 2020 and 2022, and results_summary.txt of 2022
#
# 2022 has two evaluators and a results.txt of each: of one trained on protected speech in
# results/, and of one trained on original speech in results.orig/. Either file has enrolment and
# trials as OO, OA and AA. The summary takes OO from the latter and AA from the former.

_ORIGINAL = re.compile(r"(.*[._-])?orig([._-].*)?")  # such as results.orig_mcadams
SUMMARY, OWN = "results_summary.txt", "results.txt"
Whose = tuple[str, str, str]  # attackers of OO, OA and AA
_SIDES = (("", ""), ("", "_anon"), ("_anon", "_anon"))  # what enrolment and trials end with there


def _whose(protocol: Protocol, name: str) -> Whose:
    """The attackers of a file."""
    informed = protocol.privacy.attacker
    if protocol.layout == "summary2022" and name == OWN:
        return f"{informed}_OO", f"{informed}_OA", informed
    return UNPROTECTED, "ignorant", informed if name == SUMMARY else "lazy_informed"


_LISTS = re.compile(
    r"ASV-\w+?_enrolls(?P<e>\w*)-(?P<set>\w+?)_trials_(?P<g>[fm](?:_common)?)(?P<t>\w*)"
)
_WORDS = re.compile(r"ASR-(?P<set>\w+?)_asr(?P<t>\w*)")
_ERRORS = re.compile(
    r"%WER (?P<wer>\S+) \[ (?P<n>\d+) / (?P<words>\d+), (?P<insertions>\d+) ins, "
    r"(?P<deletions>\d+) del, (?P<substitutions>\d+) sub \] ?(?P<note>.*)"
)
_TRIALS = re.compile(r"(?P<set>\w+?)_trials_(?P<g>[fm](?:_common)?)")
_PITCH = re.compile(r"Pitch_correlation: mean=(?P<mean>\S+) std=(?P<std>\S+)")
# What stands before figures, these, and how they are written.
_ITEMS: Mapping[str, tuple[tuple[str, ...], Callable[..., str]]] = {
    "EER:": (("eer",), kaldi_percent),
    "Cllr (min/act):": (("cllr_min", "cllr"), lambda low, x: f"{low:.3f}/{x:.3f}"),
    "ROCCH-EER:": (("eer_rocch",), lambda x: f"{100 * x:.3f}%"),
    "linkability:": (("linkability",), lambda x: f"{x:.6f}"),
    "Population:": (("d_ece",), lambda x: f"{_zebra(x)} bit"),
    "Individual:": (("l_w",), lambda x: f"{_zebra(x)} ({tag(x)})"),
    "De-Identification :": (("deid_2020",), repr),
    "Gain of voice distinctiveness :": (("g_vd_2020",), repr),
}


def _zebra(x: float) -> str:
    """A figure as ZEBRA prints it: 0, one digit below 0.0005, or three decimals."""
    return f"{x:.3f}" if x > 5e-4 else f"{x:.0e}" if x else "0"


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
        except (KeyError, ValueError, ZeroDivisionError) as error:
            at = f"{path}:{number}"
            raise UserError(f"{at}: no line of a result file: {line.strip()}") from error
    return found


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    if found := pattern.fullmatch(text):
        return found
    raise ValueError(text)


def _scores_of_line(head: str, text: str, whose: Whose) -> list[Score]:
    """The figures of an item. KeyError or ValueError for anything else."""
    if errors := _ERRORS.fullmatch(text):
        of = _match(_WORDS, head)
        counts = {name: int(errors[name]) for name in ("words", *COUNTED)}
        wer, note = int(errors["n"]) / counts["words"], errors["note"]
        who = TRAINED if "/user_" in note and not of["t"] else ""
        return [Score("wer", of["set"], bool(of["t"]), wer, who, parts=counts, note=note)]
    attacker, protected = "", True
    of = _match(_LISTS if head.startswith("ASV-") else _TRIALS, head)
    if "t" in of.groupdict():
        protected = bool(of["t"])
        attacker = whose[_SIDES.index(("_anon" * bool(of["e"]), "_anon" * protected))]
    split = _split_of(of["set"], "", of["g"])
    if pitch := _PITCH.fullmatch(text):
        parts = {"std": float(pitch["std"])}
        return [Score("f0_correlation_vpc22", split, True, float(pitch["mean"]), parts=parts)]
    start = next((start for start in _ITEMS if text.startswith(start)), "")
    names, told = _ITEMS[start][0], text.removeprefix(start).strip().partition(" ")[0]
    scale = 100 if names[0] in ("eer", "eer_rocch") else 1  # also where nobody wrote the %
    return [
        Score(what, split, protected, _read(what, x) / scale, attacker)
        for what, x in zip(names, told.rstrip("%").split("/"), strict=True)
    ]


def _lists_of(split: str) -> str:
    """Their name of a list: vctk_dev_trials_f_common for vctk_dev_common_f."""
    data, part, gender = _row_of(split)
    return f"{data}_{part}_trials_{gender}"


class _Lines:
    """Lines of the figures of a system."""

    def __init__(self, scores: Sequence[Score], protocol: Protocol) -> None:
        self.words, self.splits = protocol.words, _lists(protocol)
        self.by: dict[tuple[str, str, bool, str], list[Score]] = {}
        for score in scores:
            key = score.what, score.split, score.protected, score.attacker
            self.by.setdefault(key, []).append(score)

    def items(self, split: str, protected: bool = True, attacker: str = "") -> dict[str, str]:
        """Lines on a list, by what they begin with; of several figures of a kind the last."""
        found = {}
        for start, (names, tell) in _ITEMS.items():
            scores = [self.by.get((name, split, protected, attacker)) for name in names]
            if all(scores):
                found[start] = f"  {start} {tell(*(own[-1].value for own in scores if own))}"
        return found

    def lists(self, whose: Whose) -> Iterator[tuple[str, tuple[str, bool, str]]]:
        """Titles of attacks; the list, whether its speech is protected, the attacker."""
        for split, ((enrol, trial), who) in product(self.splits, zip(_SIDES, whose, strict=True)):
            data, name = "_".join(_row_of(split)[:2]), _lists_of(split)
            yield f"ASV-{data}_enrolls{enrol}-{name}{trial}", (split, bool(trial), who)

    def heard(self, *who: str) -> Iterator[tuple[str, list[str]]]:
        """Titles of recognised sets, and Kaldi's lines by the first recogniser that heard them."""
        for word, protected in product(self.words, (False, True)):
            heard = (self.by.get(("wer", joined(word)[0], protected, one)) for one in who)
            if found := next(filter(None, heard), None):
                lines = [_say_words(score) for score in found if score.parts]
                yield f"ASR-{joined(word)[0]}_asr{'_anon' * protected}", lines

    def pitch(self) -> list[str]:
        """Lines of the correlation of pitch."""
        return [
            f"{_lists_of(split)}  Pitch_correlation: mean={scores[-1].value:.4f} "
            f"std={scores[-1].parts.get('std', math.nan):.4f}"
            for split in self.splits
            if (scores := self.by.get(("f0_correlation_vpc22", split, True, "")))
        ]


def _say_words(score: Score) -> str:
    """Kaldi's line of words."""
    n = {name: int(score.parts[name]) for name in score.parts}
    errors = sum(n[name] for name in COUNTED)
    counts = f"{n['insertions']} ins, {n['deletions']} del, {n['substitutions']} sub"
    told = f"  %WER {100 * score.value:.2f} [ {errors} / {n['words']}, {counts} ]"
    return f"{told} {score.note}".rstrip()


def write_full(scores: Sequence[Score], protocol: Protocol, *, original: bool = False) -> str:
    """The text of results.txt, of 2020 or 2022. original: of the evaluator that is trained on
    original speech."""
    of, lines = _Lines(scores, protocol), []
    lists = sorted(of.lists(_whose(protocol, "" if original else OWN)))
    blocks = [(title, [*of.items(*at).values()]) for title, at in lists]
    blocks += [(title, heard or [""]) for title, heard in sorted(of.heard(TRAINED, ""))]
    blocks += [] if original else [(line, [""]) for line in of.pitch()]
    blocks += [(_lists_of(s), [*of.items(s).values()]) for s in of.splits if not original]
    for title, items in blocks:
        lines += [title, *filter(None, items)] if items else []
    return "\n".join([*lines, ""])


def write_summary(scores: Sequence[Score], protocol: Protocol) -> str:
    """The text of results_summary.txt of 2022, with its averages."""
    of, lines = _Lines(scores, protocol), []
    own, all_lists = protocol.privacy.attacker, list(of.lists(_whose(protocol, SUMMARY)))
    for wanted, splits in product((UNPROTECTED, own), protocol.privacy.sets.values()):
        named = [one for one in all_lists if one[1][2] == wanted and one[1][0] in splits]
        for title, at in named if wanted != own else sorted(named):
            lines += [title + line for start, line in of.items(*at).items() if start == "EER:"]
    heard = sorted(of.heard(""), key=lambda one: one[0].endswith("_anon"))
    lines += [title + found[-1] for title, found in heard if found]
    lines += of.pitch()
    for split in of.splits:
        found = of.items(split).items()
        lines += [_lists_of(split) + line for start, line in found if start.startswith("Gain")]
    return "\n".join([*lines, *means(scores, protocol), ""])


# ---- Any of them


def read_results(path: Path, protocol: Protocol) -> list[Score]:
    """The figures of a result file of any year; protocol: says whose its EERs are. UserError names
    the first line at fault."""
    ranked = protocol.layout in LAYOUTS
    informed = protocol.privacy.attacker
    found = [*_read_rank(path, informed)] if ranked else parse_lines(path, protocol)
    if not found:
        expected = "---- ASV_eval results ----" if ranked else "ASV-<lists>"
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
