# SPDX-License-Identifier: Apache-2.0
"""Word and character error rates, with intervals over speakers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein

from local.metrics.intervals import Figures, interval_report, logger
from steps.asr.text import NORMALISERS, describe_normaliser
from utils.arrays import Float64
from utils.tables import invert

_ERRORS = ("substitutions", "insertions", "deletions")
# First four counts for words and for characters of an utterance; then its other counts.
_COUNTS = ("words", *_ERRORS, "characters", *(f"character_{name}" for name in _ERRORS))
_COUNTS += ("segments", "wrong_sentences", "empty_hypotheses")


@dataclass(frozen=True)
class Errors:
    """Fewest edits from a reference to a hypothesis, in words or characters."""

    substitutions: int
    insertions: int
    deletions: int

    @property
    def total(self) -> int:
        """Number of all edits."""
        return self.substitutions + self.insertions + self.deletions


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> Errors:
    """Fewest errors (Levenshtein 1966), all of the same weight.

    Their total is unique; how it divides up may not be (`a b` to `b c`: two substitutions, or a
    deletion and an insertion), and is then the library's choice, not always Kaldi's.
    """
    tags = [edit.tag for edit in Levenshtein.editops(reference, hypothesis)]
    return Errors(tags.count("replace"), tags.count("insert"), tags.count("delete"))


def kaldi_lines(counts: Mapping[str, int]) -> list[str]:
    """Lines of Kaldi's compute-wer; n_* of `error_figures`. NaN without words."""
    words, sentences = counts["n_words"], counts["n_segments"]
    errors = [counts[f"n_{name}"] for name in ("insertions", "deletions", "substitutions")]
    wer = 100 * sum(errors) / words if words else math.nan
    listed = "{} ins, {} del, {} sub".format(*errors)
    ser = 100 * counts["n_wrong_sentences"] / sentences
    return [
        f"%WER {wer:.2f} [ {sum(errors)} / {words}, {listed} ]",
        f"%SER {ser:.2f} [ {counts['n_wrong_sentences']} / {sentences} ]",
        f"Scored {sentences} sentences, 0 not present in hyp.",
    ]


def error_figures(
    reference: Mapping[str, str],
    hypothesis: Mapping[str, str],
    utt2spk: Mapping[str, str],
    *,
    normaliser: str = "english",
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """Figures `wer` and `cer`, their parts `wer_{substitutions,insertions,deletions}` and
    `cer_...`, `ser`, `normalisation`, counts, and intervals.

    reference, hypothesis, utt2spk: by utterance; all of `reference` are in the others. Texts are
    normalised before they are compared; normaliser: one of `steps.asr.text.NORMALISERS`. All are
    fractions: errors over the words (characters, with one blank between two words) of the
    reference, so `wer` and `cer` may be above 1; `ser` is the share of utterances with an error. A
    reference without any word has no `wer`: NaN, with a warning.
    """
    words_of = NORMALISERS[normaliser]
    spk2utt = invert({utt: utt2spk[utt] for utt in reference})
    counts = np.zeros((len(spk2utt), len(_COUNTS)))
    for number, utts in enumerate(spk2utt.values()):
        for utt in utts:
            counts[number] += _count(words_of(reference[utt]), words_of(hypothesis[utt]))
    total = dict(zip(_COUNTS, (int(n) for n in counts.sum(axis=0)), strict=True))
    report: dict[str, object] = {
        **_figures(counts.sum(axis=0)),
        "normalisation": describe_normaliser(normaliser),
        "n_speakers": len(spk2utt),
        **{f"n_{name}": n for name, n in total.items()},
    }
    if total["words"] == 0:
        logger.warning("wer is undefined: the reference has no word")
    elif total["empty_hypotheses"] == total["segments"]:
        logger.warning(
            "every hypothesis is empty: the recogniser failed, and its word error rate of 100 % "
            "says nothing of the speech (docs/words.md)"
        )
    if n_bootstrap:

        def evaluate(drawn: Float64) -> Figures:
            return _figures(drawn @ counts)

        report |= interval_report(evaluate, len(spk2utt), n_bootstrap, seed)
    return report


def _count(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """Counts (_COUNTS) of an utterance."""
    spelt = " ".join(reference)
    words, letters = align(reference, hypothesis), align(spelt, " ".join(hypothesis))
    rows = [[e.substitutions, e.insertions, e.deletions] for e in (words, letters)]
    wrong = int(words.total > 0)
    return [len(reference), *rows[0], len(spelt), *rows[1], 1, wrong, int(not hypothesis)]


def _figures(counts: Float64) -> Figures:
    found = {"ser": float(counts[9] / counts[8])}
    for name, (length, *errors) in (("wer", counts[:4]), ("cer", counts[4:8])):
        rates = [float(n / length) if length else math.nan for n in (sum(errors), *errors)]
        found |= dict(zip((name, *(f"{name}_{part}" for part in _ERRORS)), rates, strict=True))
    return found
