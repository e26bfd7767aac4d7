"""The VoicePrivacy challenges' own figures: averages, categories, and what was not measured.

Their result files are read and written in local/report/challenge_files.py, so that a participant's
figures and those of a recipe can stand beside each other.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pandas import DataFrame

from local.protocols.attackers import Privacy, Protocol
from local.report.frame import SIMILARITY, UTILITY, VERIFICATION, where

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
