"""Utility of protected speech: words, emotions, prosody and estimated quality.

All figures have intervals over speakers; resamples: n_bootstrap and seed of `multiplicities`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from local.metrics.intervals import Figures, Report, bootstrap, key, logger, warn_undefined
from steps.asr.language import NORMALISERS, describe_normaliser
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import StrPath, invert, read_map, sort_ids, to_number

Table = Mapping[str, str]
NOBODY = "no utterance has it"

# ---- Word and character error rates, with intervals over speakers.

_ERRORS = ("substitutions", "insertions", "deletions")
# Counts of an utterance, of which characters have all errors together.
_COUNTS = ("words", *_ERRORS, "characters", "character_errors", "segments", "empty_hypotheses")
# Scripts without blanks: Thai, Lao, Tibetan and Burmese; Khmer; kana; Han.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[int, int, int]:
    """Substitutions, insertions and deletions, the fewest errors (Levenshtein 1966), all of the
    same weight, from a reference to a hypothesis in words or characters.

    Their total is unique; how it divides up may not be (`a b` to `b c`: two substitutions, or a
    deletion and an insertion), and is then the library's choice, not always Kaldi's.
    """
    from rapidfuzz.distance import Levenshtein  # words alone need it

    tags = [edit.tag for edit in Levenshtein.editops(reference, hypothesis)]
    return tags.count("replace"), tags.count("insert"), tags.count("delete")


def kaldi_line(counts: Mapping[str, int]) -> str:
    """%WER line of Kaldi's compute-wer; n_* of `error_figures`. NaN without words."""
    words = counts["n_words"]
    errors = [counts[f"n_{name}"] for name in ("insertions", "deletions", "substitutions")]
    wer = 100 * sum(errors) / words if words else math.nan
    listed = "{} ins, {} del, {} sub".format(*errors)
    return f"%WER {wer:.2f} [ {sum(errors)} / {words}, {listed} ]"


def error_figures(
    reference: Table,
    hypothesis: Table,
    utt2spk: Table,
    normaliser: str = "english",
    **resamples: int,
) -> Report:
    """Figures `wer`, its parts `wer_{substitutions,insertions,deletions}`, `cer`, `normalisation`,
    counts, and intervals.

    reference, hypothesis, utt2spk: by utterance; all of `reference` are in the others. Texts are
    normalised before they are compared; normaliser: one of `steps.asr.language.NORMALISERS`. All
    are fractions: errors over the words (characters, with one blank between two words) of the
    reference, so `wer` and `cer` may be above 1. A reference without any word has no `wer`: NaN,
    with a warning.
    """
    words_of = NORMALISERS[normaliser]
    spk2utt = invert({utt: utt2spk[utt] for utt in reference})
    counts = np.zeros((len(spk2utt), len(_COUNTS)))
    for number, utts in enumerate(spk2utt.values()):
        for utt in utts:
            counts[number] += _count(words_of(reference[utt]), words_of(hypothesis[utt]))
    total = dict(zip(_COUNTS, (int(n) for n in counts.sum(axis=0)), strict=True))
    report: Report = {
        **_error_rates(counts.sum(axis=0)),
        "normalisation": describe_normaliser(normaliser),
        "n_speakers": len(spk2utt),
        **{f"n_{name}": n for name, n in total.items()},
    }
    letters = Counter(letter for text in reference.values() for letter in text if letter.isalpha())
    half = letters.total() / 2
    unspaced = sum(n for letter, n in letters.items() if _UNSPACED.match(letter))
    if unspaced > max(half, total["words"]):  # vpc2026 makes a word of each
        logger.warning(
            "the reference has no blanks between words, so that an utterance counts as a word: "
            "read cer, not wer"
        )
    if (
        normaliser.startswith("english")
        and sum(n for letter, n in letters.items() if letter.isascii()) < half
    ):
        logger.warning("%s is not a spelling for this language; take --spelling plain", normaliser)
    if total["words"] == 0:
        logger.warning("wer is undefined: the reference has no word")
    elif total["empty_hypotheses"] == total["segments"]:
        logger.warning(
            "every hypothesis is empty: the recogniser failed, and its word error rate of 100 % "
            "says nothing of the speech (docs/words.md)"
        )
    return report | bootstrap(lambda own: _error_rates(own @ counts), len(spk2utt), **resamples)


def _count(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """Counts (_COUNTS) of an utterance."""
    spelt = " ".join(reference)
    words, letters = align(reference, hypothesis), align(spelt, " ".join(hypothesis))
    return [len(reference), *words, len(spelt), sum(letters), 1, int(not hypothesis)]


def _error_rates(counts: Float64) -> Figures:
    words, *errors, characters, wrong = counts[:6]
    names = ("wer", *(f"wer_{part}" for part in _ERRORS), "cer")
    shares = (*((n, words) for n in (sum(errors), *errors)), (wrong, characters))
    rates = (float(n / of) if of else math.nan for n, of in shares)
    return dict(zip(names, rates, strict=True))


# ---- Unweighted average recall of emotions, with intervals over speakers.


def recalls(counts: Float64) -> Float64:
    """Recall (K,) of each emotion from confusions (K, L), L >= K; NaN where it never occurs."""
    there = counts.sum(axis=1)
    each: Float64 = np.full(len(there), math.nan)
    np.divide(np.diagonal(counts), there, out=each, where=there > 0)
    return each


def recall_figures(
    reference: Table,
    recognised: Table,
    utt2spk: Table,
    folds: Table | None = None,
    **resamples: int,
) -> Report:
    """Figures `uar`, `recall_<emotion>`, `chance_uar`, `confusion`, and intervals.

    reference, recognised, utt2spk, folds: by utterance; all of `reference` are in the others. With
    folds there are also `uar_vpc24` and `recall_vpc24_<emotion>`: means over folds. The mean of
    `uar` is over the emotions that occur in `reference`. A single one has no UAR: NaN, with a
    warning. A resample of the speakers in which an emotion does not occur has no UAR and no recall
    of it; `interval_report` counts these.
    """
    emotions = sorted(set(reference.values()))
    said = [*emotions, *sorted({recognised[utt] for utt in reference} - set(emotions))]
    speakers = sort_ids({utt2spk[utt] for utt in reference})
    of = folds or dict.fromkeys(reference, "")
    parts = sort_ids({of[utt] for utt in reference})
    counts = np.zeros((len(parts), len(speakers), len(emotions), len(said)))
    for utt, emotion in reference.items():
        part, speaker = parts.index(of[utt]), speakers.index(utt2spk[utt])
        counts[part, speaker, emotions.index(emotion), said.index(recognised[utt])] += 1

    def evaluate(drawn: Float64) -> Figures:
        by_part = np.tensordot(drawn, counts, (0, 1))
        whole = by_part.sum(axis=0)
        each = recalls(whole)
        found: Figures = {
            "uar": float(each.mean()) if len(emotions) > 1 else math.nan,
            **{key("recall", group=e): float(r) for e, r in zip(emotions, each, strict=True)},
        }
        return found | (_over_folds(by_part, emotions) if folds else {})

    total = counts.sum(axis=(0, 1))
    if len(emotions) < 2:
        logger.warning("uar is undefined: %s is the only emotion of the reference", emotions[0])
    return {
        **evaluate(np.ones(len(speakers))),
        key("uar", kind="chance"): 1 / len(emotions) if len(emotions) > 1 else math.nan,
        "n_speakers": len(speakers),
        "n_segments": len(reference),
        "n_emotions": len(emotions),
        "confusion": {
            emotion: {name: int(n) for name, n in zip(said, row, strict=True) if n}
            for emotion, row in zip(emotions, total, strict=True)
        },
        **bootstrap(evaluate, len(speakers), **resamples),
    }


def _over_folds(counts: Float64, emotions: Sequence[str]) -> Figures:
    """UAR and recalls of VoicePrivacy 2024: the mean over folds of scikit-learn's macro recall, in
    percent to three digits, where an emotion that was only said in a fold has recall 0. A fold
    without any speaker of a resample does not count. counts: (folds, K, L)."""
    there = [part for part in counts if part.any()]
    each = np.array([recalls(part) for part in there]).reshape(len(there), len(emotions))
    more = (0, counts.shape[2] - counts.shape[1])  # no utterance has what was only said
    used = [np.count_nonzero(np.pad(part.any(axis=1), more) | part.any(axis=0)) for part in there]
    macro = np.nansum(each, axis=1) / used
    columns = [macro, *(own[~np.isnan(own)] for own in each.T)]
    names = ("uar_vpc24", *(key("recall_vpc24", group=emotion) for emotion in emotions))
    return {
        name: float(np.round(100 * column, 3).mean() / 100) if len(column) else math.nan
        for name, column in zip(names, columns, strict=True)
    }


# ---- Figures of prosody and quality: means over utterances, with intervals over speakers.

KEYS = (  # columns of the table that steps/compare_prosody.py writes
    "f0_correlation", "voicing_agreement", "duration_change", "level_change", "clipping",
    "clipping_original", "n_frames", "n_voiced_both", "f0_correlation_vpc22",
)  # fmt: skip
VPC22 = len(KEYS) - 1
# duration_drift: mean size of the change.
FIGURES = (*KEYS[:6], "duration_drift", "f0_correlation_vpc22")


def read_prosody(path: StrPath) -> dict[str, Float64]:
    """Read utterance -> its figures (9,) in the order of KEYS, NaN where undefined, from the table
    that steps/compare_prosody.py writes; UserError for another one."""
    rows = read_map(path, rest_of_line=True)
    if rows.pop("#", "") != " ".join(("utterance", *KEYS)) or not rows:
        raise UserError(f"{path}:1: not a table of steps/compare_prosody.py, or an empty one")
    found = {utt: np.array([*map(to_number, row.split())]) for utt, row in rows.items()}
    for utt, own in found.items():
        undefined = rows[utt].split().count("-")
        if len(own) != len(KEYS) or np.isfinite(own).sum() + undefined < len(own):
            raise UserError(f"{path}: {utt}: not {len(KEYS)} numbers, or - for none: {rows[utt]}")
    return found


def prosody_figures(table: Mapping[str, Float64], utt2spk: Table, **resamples: int) -> Report:
    """Means over utterances, by speaker and overall, and `intervals` by bootstrap over speakers;
    for `f0_correlation_vpc22` also the standard deviation over utterances, as VoicePrivacy 2022.

    table: of `read_prosody`; utt2spk: of its utterances. An utterance without a defined value does
    not count in that figure; `n_undefined` counts these. A figure that no utterance defines is NaN,
    with a warning.
    """
    spk2utt = invert({utt: utt2spk[utt] for utt in table})
    values = [
        np.array([[*table[u][:6], abs(table[u][2]), table[u][VPC22]] for u in utts])
        for utts in spk2utt.values()
    ]
    total = np.array([np.nansum(v, axis=0) for v in values])
    count = np.array([(~np.isnan(v)).sum(axis=0) for v in values])
    names = FIGURES if count[:, -1].any() else FIGURES[:-1]  # the last needs Praat

    def evaluate(drawn: Float64) -> Figures:
        return _ratios(names, drawn @ total, drawn @ count)

    undefined = dict(zip(names, (len(table) - count.sum(axis=0)).tolist(), strict=False))
    praat = np.concatenate([v[:, -1] for v in values])
    return {
        **warn_undefined(evaluate(np.ones(len(values))), NOBODY),
        **({"f0_correlation_vpc22_std": float(np.nanstd(praat))} if names == FIGURES else {}),
        "n_speakers": len(values),
        "n_segments": len(table),
        "n_undefined": {name: n for name, n in undefined.items() if n},
        "f0_correlation_per_speaker": _ratios(spk2utt, total[:, 0], count[:, 0]),
        **bootstrap(evaluate, len(values), **resamples),
    }


def _ratios(names: Iterable[str], sums: Float64, counts: Float64) -> Figures:
    """Mean for each name, from a sum and a count; NaN without any value."""
    mean = np.divide(sums, counts, out=np.full(len(sums), math.nan), where=counts > 0)
    return dict(zip(names, mean.tolist(), strict=False))


# ---- Estimated mean opinion scores: means over speakers, and their loss by protection.

Scores = Mapping[str, float | str]  # utterance -> score, or the reason for none


PROBLEMS = ("empty", "short", "silent", "clipped")


def read_quality(path: StrPath) -> dict[str, float | str]:
    """Read table `quality` of steps/estimate_quality.py; UserError for a score outside 1 to 5."""
    found: dict[str, float | str] = {}
    for utt, text in read_map(path, rest_of_line=True).items():
        mark, _, problem = text.partition(" ")
        undefined = mark == "-" and problem in PROBLEMS
        found[utt] = problem if undefined else to_number(text)
        if not undefined and not 1 <= to_number(text) <= 5:
            raise UserError(
                f"{path}: {utt}: {text!r} is not a score from 1 to 5, nor - and one of "
                f"{', '.join(PROBLEMS)}; estimate it again"
            )
    return found


def quality_figures(
    scores: Scores, utt2spk: Table, original: Scores | None = None, **resamples: int
) -> Report:
    """`mos`, and with scores of the original speech `mos_original` and `mos_drop`; intervals.

    Each is a mean over speakers of the means of their utterances; intervals are by bootstrap over
    speakers. mos_original and mos_drop (original less protected) rest on the utterances that have
    both scores. original: of all utterances of `scores`. An utterance without a score counts in
    `n_undefined`, by reason; a figure without any speaker is NaN, with a warning.
    """
    columns = {"mos": {utt: _number(score) for utt, score in scores.items()}}
    if original is not None:
        before = {utt: _number(original[utt]) for utt in scores}
        drop = {utt: before[utt] - mos for utt, mos in columns["mos"].items()}
        paired = {utt: math.nan if math.isnan(drop[utt]) else before[utt] for utt in scores}
        columns |= {"mos_original": paired, "mos_drop": drop}
    spk2utt = invert({utt: utt2spk[utt] for utt in scores})
    means = np.array(
        [[_mean([of[utt] for utt in utts]) for of in columns.values()] for utts in spk2utt.values()]
    )

    def evaluate(drawn: Float64) -> Figures:
        weights = drawn[:, None] * ~np.isnan(means)
        return _ratios(columns, np.nansum(drawn[:, None] * means, axis=0), weights.sum(axis=0))

    report: Report = {
        **warn_undefined(evaluate(np.ones(len(means))), NOBODY),
        "n_speakers": len(means),
        "n_segments": len(scores),
        "n_undefined": _reasons(scores),
        "mos_per_speaker": dict(zip(spk2utt, means[:, 0].tolist(), strict=True)),
    }
    if original is not None:
        report["n_undefined_original"] = _reasons({utt: original[utt] for utt in scores})
    return report | bootstrap(evaluate, len(means), **resamples)


def _number(score: float | str) -> float:
    return math.nan if isinstance(score, str) else score


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _reasons(scores: Scores) -> dict[str, int]:
    return dict(sorted(Counter(s for s in scores.values() if isinstance(s, str)).items()))
