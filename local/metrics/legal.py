"""Two criteria of data-protection law, and how surely recordings lead to their person."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import numpy.typing as npt
from legal_eval import (
    average_embeddings,
    build_conversations,
    build_speaker_embeddings,
    singling_out,
)
from legal_eval.embeddings import SpeakerConversations
from legal_eval.metrics.singling_out import ConversationScores, score_conversations
from legal_eval.scoring import cosine_similarity_matrix

from local.metrics import intervals
from local.metrics.intervals import Report
from local.metrics.leakage import directed
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.tables import StrPath, invert, sort_ids

logger = logging.getLogger(__name__)

# ---- Singling Out and legal Linkability: two criteria of data-protection law as attacks on
# x-vectors.
#
# Source: Vauquier, Srivastava, Hosseini and Vincent, Interspeech 2025, after Opinion 05/2014 of the
# Article 29 Working Party. The authors' package voice-anonymization-legal-eval does the averaging,
# the cosines, the thresholds and the counting; this module decides what a recipe of few speakers
# needs before (speakers, utterances, ties) and after (means by speaker, intervals, chance levels).
# Neither figure is D_sys, the "linkability" of Champion et al. 2021: see docs/metrics/legal.md.

Vectors = dict[str, Float64]

PACKAGE = "voice-anonymization-legal-eval"
LINKABILITY, SINGLING_OUT = "legal_linkability", "legal_singling_out"
MAX_CALIBRATION = 9  # calibration conversations of a speaker (the paper's M)
FEWEST_SPEAKERS = 2
MORE_LENGTHS = (10, 30)  # of linkability alone, where somebody has so many
# Cosines that differ by less are equal: the last digits depend on where a row stands in a matrix.
COSINE_DIGITS = 12


@dataclass(frozen=True, eq=False)
class AttackSide:
    """One side of the attack: vectors of unit length, (D,) each, by utterance; speakers."""

    vectors: Vectors
    spk2utt: dict[str, list[str]]

    def only(self, speakers: Sequence[str]) -> "AttackSide":
        """Restrict the side to some speakers."""
        kept = {speaker: self.spk2utt[speaker] for speaker in speakers}
        return AttackSide({utt: self.vectors[utt] for utts in kept.values() for utt in utts}, kept)


def make_side(
    vectors: Mapping[str, npt.NDArray[np.float32]],
    utt2spk: Mapping[str, str],
    *,
    vectors_path: StrPath,
    utt2spk_path: StrPath,
) -> AttackSide:
    """Group x-vectors by speaker and scale them to unit length, as the package expects.

    Vectors that are zero are left out with a warning. Raises UserError naming the utterance where
    one file misses it, or where all are zero.
    """
    for utt in sort_ids(vectors.keys() ^ utt2spk.keys()):
        if utt in vectors:
            raise UserError(f"{vectors_path}: utterance {utt} is not in {utt2spk_path}")
        raise UserError(f"{utt2spk_path}: utterance {utt} has no vector in {vectors_path}")
    kept = directed(vectors, vectors_path)
    doubles = {utt: vector.astype(np.float64) for utt, vector in kept.items()}
    normed = {utt: x / float(np.linalg.norm(x)) for utt, x in doubles.items()}
    return AttackSide(normed, invert({utt: utt2spk[utt] for utt in normed}))


def check_sides(
    enrol: AttackSide, trial: AttackSide, *, enrol_path: StrPath, trial_path: StrPath
) -> None:
    """Refuse sides that cannot be compared: other sizes, a shared utterance, no shared speaker."""
    sizes = [next(iter(side.vectors.values())).size for side in (enrol, trial)]
    if sizes[0] != sizes[1]:
        raise UserError(
            f"{trial_path}: vectors of {sizes[1]} values, but of {sizes[0]} in {enrol_path}; "
            "take both from one encoder"
        )
    twice = enrol.vectors.keys() & trial.vectors.keys()
    if twice:
        raise UserError(
            f"{trial_path}: utterance {sort_ids(twice)[0]} is also in {enrol_path}; "
            "an attacker who holds the very recording proves nothing, so keep the sets apart"
        )
    if not enrol.spk2utt.keys() & trial.spk2utt.keys():
        raise UserError(f"{trial_path}: no speaker of {enrol_path} is in it; is it the right file?")


@dataclass(frozen=True, eq=False)
class Figure:
    """Rate as the mean over `by_speaker`, which is empty where it is undefined; its chance level.

    n_calibration: conversations of each speaker that set the threshold, for Singling Out only.
    """

    by_speaker: dict[str, float]
    chance: float | None
    n_calibration: int | None = None

    def report(self, name: intervals.Key) -> Report:
        """Mean rate under `name`, and chance, counts and rates by speaker under names like it."""
        rates = list(self.by_speaker.values())
        name = intervals.but(name, n_speakers=len(rates))
        return {
            name: float(np.mean(rates)) if rates else None,
            intervals.but(name, kind="chance"): self.chance,
        } | (
            {f"{name}_per_speaker": self.by_speaker or None}
            if self.n_calibration is None
            else {f"n_calibration_{name}": self.n_calibration}
        )


def legal_metrics(
    enrol: AttackSide,
    trial: AttackSide,
    *,
    lengths: Sequence[int] = (1, 3),
    n_folds: int = 50,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> Report:
    """Both figures for each conversation length L in `lengths`; keys are in docs/metrics/legal.md.

    The N speakers with utterances on both sides are the candidates; others are left out with a
    warning. None marks an undefined figure, and a warning gives the reason.
    """
    speakers = sort_ids(enrol.spk2utt.keys() & trial.spk2utt.keys())
    for side, other in ((enrol, "trial"), (trial, "enrolment")):
        if lone := len(side.spk2utt) - len(speakers):
            logger.warning("%d speakers without %s utterances are left out", lone, other)
    enrol, trial = enrol.only(speakers), trial.only(speakers)
    figures: dict[intervals.Key, Figure] = {}
    most = max(map(len, trial.spk2utt.values()), default=0)
    for length in dict.fromkeys((*lengths, *(n for n in MORE_LENGTHS if n <= most))):
        attack = LegalAttack(enrol, trial, length, seed)
        figures[intervals.key(LINKABILITY, recordings=length)] = attack.linkability()
        if length in lengths:
            figures[intervals.key(SINGLING_OUT, recordings=length)] = attack.singling_out(n_folds)
    report: Report = {
        "n_speakers": len(speakers),
        "n_segments": len(trial.vectors),
        "n_enrol_segments": len(enrol.vectors),
    }
    for name, figure in figures.items():
        report |= figure.report(name)
    package = f"{PACKAGE} {version(PACKAGE)}"  # what is not in docs/metrics/legal.md
    report["legal_design"] = {"package": package, "seed": seed, "n_folds": n_folds}
    rates: dict[str, Float64] = {
        name: np.array([figure.by_speaker.get(speaker, math.nan) for speaker in speakers])
        for name, figure in figures.items()
    }
    # Candidates are fixed, so nobody is their own rival.
    return report | intervals.rate_intervals(rates, n_bootstrap, seed)


def count_rivals(
    candidates: AttackSide, trial: AttackSide, length: int, seed: int
) -> Iterator[tuple[str, Int64]]:
    """Each person of `trial` and, for each of their disjoint groups of `length` recordings (0: one
    group of all), how many other candidates score as high or higher; a tie names nobody.

    Recordings are shuffled by seed, length and person. A group is the mean of its vectors, a
    candidate that of all.
    """
    models = build_speaker_embeddings(candidates.spk2utt, candidates.vectors)
    rows, people = np.array(list(models.values())), list(models)
    for who, utts in trial.spk2utt.items():
        size = length or len(utts)
        n = len(utts) // size
        rng = make_rng(seed, "legal linkability", str(length), who)
        order = rng.permutation(len(utts))[: n * size]
        if not n:
            yield who, np.zeros(0, np.int64)
            continue
        heard = [average_embeddings([trial.vectors[utts[i]] for i in run])
                 for run in order.reshape(n, size)]  # fmt: skip
        score = np.round(cosine_similarity_matrix(rows, np.array(heard)), COSINE_DIGITS)
        yield who, np.count_nonzero(score >= score[people.index(who)], axis=0) - 1


@dataclass(frozen=True, eq=False)
class LegalAttack:
    """Attack with conversations of `length` utterances. enrol, trial: of the same speakers."""

    enrol: AttackSide
    trial: AttackSide
    length: int
    seed: int

    def linkability(self) -> Figure:
        """Share of each speaker's conversations that lead the attacker to them.

        Success (Eq. of π_link): the own enrolment vector scores above those of all other speakers.
        The paper tests one conversation a speaker; here every disjoint one is tested, and the mean
        taken, since with 13 to 40 speakers the luck of one draw would drown the figure. Speakers
        with fewer than `length` utterances are absent as test speakers, not as candidates.
        """
        name = intervals.key(LINKABILITY, recordings=self.length)
        n_speakers = len(self.enrol.spk2utt)
        if n_speakers < FEWEST_SPEAKERS:
            logger.warning("%s is undefined: one speaker, who can be mistaken for nobody", name)
            return Figure({}, None)
        found = count_rivals(self.enrol, self.trial, self.length, self.seed)
        beaten = {who: n for who, n in found if len(n)}
        rates = {who: float(np.mean(n == 0)) for who, n in beaten.items()}
        if not rates:
            logger.warning("%s is undefined: no speaker has %d trial utterances", name, self.length)
        elif len(rates) < n_speakers:
            logger.warning(
                f"{name} is over {len(rates)} of {n_speakers} speakers: the others have fewer than "
                f"{self.length} trial utterances (they stay candidates)"
            )
        return Figure(rates, 1.0 / n_speakers)

    def singling_out(self, n_folds: int) -> Figure:
        """Share of folds in which the predicate of each enrolled speaker isolates one of N.

        In each fold the utterances of each speaker with 2·length or more are split anew into one
        test conversation and others for calibration, the same number for all: the threshold lets
        through M of the M·N calibration scores, and 1/N only if all give M.
        """
        name, least = intervals.key(SINGLING_OUT, recordings=self.length), 2 * self.length
        counts = {
            speaker: min(MAX_CALIBRATION, math.comb(len(utts) - self.length, self.length))
            for speaker, utts in self.trial.spk2utt.items()
            if len(utts) >= least
        }
        if len(counts) < FEWEST_SPEAKERS:
            logger.warning(
                f"{name} is undefined: {len(counts)} speakers have the {least} trial utterances "
                "that a test and a calibration conversation take, and at least "
                f"{FEWEST_SPEAKERS} are needed"
            )
            return Figure({}, None, 0)
        if len(counts) < len(self.trial.spk2utt):
            logger.warning(
                "%s is over %d of %d speakers: the others have fewer than %d trial utterances",
                *(name, len(counts), len(self.trial.spk2utt), least),
            )
        n = min(counts.values())
        chance = chance_of_singling_out(len(counts), n)
        if n < MAX_CALIBRATION:
            logger.warning(
                f"{name}: {n} calibration conversations a speaker where the method takes "
                f"{MAX_CALIBRATION} (speaker {min(counts, key=counts.__getitem__)} has no more); a "
                f"threshold so coarse lowers the chance level to {chance:.3f}"
            )
        chosen = self.enrol.only(list(counts))
        models = build_speaker_embeddings(chosen.spk2utt, chosen.vectors)
        # All N speakers are in the set, so there is nothing to draw and one run is all.
        folds = [
            singling_out(self._score_fold(models, n, fold), len(models), n_runs=1)
            for fold in range(n_folds)
        ]
        rates = {
            who: float(np.mean([isolated for f in folds for isolated in f[who]])) for who in models
        }
        return Figure(rates, chance, n)

    def _score_fold(self, models: Vectors, n_calibration: int, fold: int) -> ConversationScores:
        conversations: dict[str, SpeakerConversations] = {}
        for speaker in models:
            # One speaker at a time: the package would seed by the place, we by the name.
            own = derive_seed(self.seed, "legal singling out", str(self.length), speaker)
            utts = {speaker: self.trial.spk2utt[speaker]}
            conversations |= build_conversations(
                utts, self.trial.vectors, self.length, n_calibration, seed=own, fold=fold
            )
        scores = score_conversations(models, conversations)
        scores.test_scores = np.round(scores.test_scores, COSINE_DIGITS)
        scores.calibration_scores = np.round(scores.calibration_scores, COSINE_DIGITS)
        return scores


def chance_of_singling_out(n_speakers: int, n_calibration: int) -> float:
    """Chance level of Singling Out: scores are independent and alike for everybody.

    Among M·N such calibration scores the share p of test scores above the threshold is the sum of
    M of the M·N + 1 gaps (uniform spacings) and half of the next, so S ~ Beta(M, R + 1) and, given
    S, D/(1 − S) ~ Beta(1, R), with R = M(N − 1). The rate is the mean of N·p·(1 − p)^(N − 1),
    p = S + D/2; it approaches 1/e as M and N grow, and 0.28 as N grows with M = 1.
    """
    from scipy.special import betaincinv

    n, m = n_speakers, n_calibration
    rest = m * (n - 1)
    share = (np.arange(400) + 0.5) / 400  # quantiles of S (rows) and D (columns): midpoint rule
    s = betaincinv(m, rest + 1, share)[:, np.newaxis]
    d = (1.0 - s) * (1.0 - (1.0 - share) ** (1.0 / rest))
    p = s + 0.5 * d
    return float(np.mean(n * p * (1.0 - p) ** (n - 1)))
