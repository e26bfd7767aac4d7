# SPDX-License-Identifier: Apache-2.0
"""The pictures of a page by section; what cannot be drawn is named with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from local.report import (
    pictures_disclosure,
    pictures_first,
    pictures_overview,
    pictures_radar,
    pictures_search,
    pictures_similarity,
    pictures_utility,
)
from local.report.draw import Picture
from local.report.front import trades
from local.report.load import Results
from local.report.results import logger
from local.report.words import HEARD, PROTECTED, UTILITY, UTILITY_METRICS

Draw = Callable[[], Picture | None]


@dataclass(frozen=True)
class Section:
    """Pictures under one heading, with how to read them."""

    title: str
    text: str
    pictures: list[Picture]


def _drawn(results: Results, what: str, draws: list[Draw]) -> list[Picture]:
    found: list[Picture | None] = []
    for draw in draws:
        try:
            found.append(draw())
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            # figures.json is not what this version writes: say so, and show the rest
            why = f"figures.json does not hold what is drawn ({type(error).__name__}: {error})"
            logger.warning("%s: %s", what, why)
            results.missing.append((what, why + "; run stage 11 again"))
    return [picture for picture in found if picture is not None]


def draw_all(results: Results, evaluator: str, folder: Path | None) -> list[Section]:
    """Every section of one evaluator; PDFs go to `folder`, if there is one."""
    sections = []
    for title, text, draws in _plan(results, evaluator, folder):
        sections.append(Section(title, text, _drawn(results, title, draws)))
    return sections


def draw_first(results: Results, folder: Path | None) -> list[Picture]:
    """The three pictures of the first screen; PDFs go to `folder`, if there is one."""
    draws = [partial(draw, results, folder) for draw in pictures_first.PICTURES]
    return _drawn(results, "the first pictures", list(draws))


def draw_utility(results: Results, folder: Path | None) -> Section:
    """Privacy against utility, a picture a split and measure, and utility by target; PDFs go to
    `folder`, if there is one."""
    names = results.systems()
    draws: list[Draw] = [
        partial(pictures_utility.trade_off, trade, names, folder)
        for trade in trades(results.figures)
    ]
    measured = dict.fromkeys(
        (f.metric, f.evaluator, f.split)
        for f in results.figures
        if f.attacker == UTILITY and f.metric in UTILITY_METRICS
    )
    draws += [
        partial(pictures_utility.by_target, results, of, series, folder)
        for of, series in product(measured, results.target_series())
    ]
    return Section(UTILITY_TITLE, _UTILITY, _drawn(results, UTILITY_TITLE, draws))


def _plan(
    results: Results, evaluator: str, folder: Path | None
) -> list[tuple[str, str, list[Draw]]]:
    splits = results.splits(evaluator)
    known = results.attackers(evaluator)
    attacks = [a for a in PROTECTED if a in known]
    similarity, calibrations, scores = (
        list(results.entries(kind, evaluator)) for kind in ("similarity", "calibrations", "attacks")
    )

    def by_split(draw: Callable[[Results, str, str, Path | None], Picture | None]) -> list[Draw]:
        return [partial(draw, results, evaluator, split, folder) for split in splits]

    matrices: list[Draw] = [
        partial(pictures_similarity.similarity, results, e, folder) for e in similarity
    ]
    learnt: list[Draw] = []
    for e in scores:
        if e["where"]["attacker"] == "unprotected" and "ece_actual" in e:  # not in older results
            prior = results.pictures["prior"]
            learnt.append(partial(pictures_disclosure.actual, e, prior, folder))
            learnt.append(partial(pictures_disclosure.empirical, e, folder))
    for e in calibrations:
        learnt.append(partial(pictures_disclosure.distortion, results, e, folder))
        learnt.append(partial(pictures_disclosure.empirical, e, folder))
    plan: list[tuple[str, str, list[Draw]]] = [
        ("Overview", _OVERVIEW, [partial(pictures_overview.scatter, results, evaluator, folder)]),
        ("Attackers", _ATTACKERS, by_split(pictures_overview.eer_by_attacker)),
        ("Voice similarity", _SIMILARITY, matrices),
        (
            "Disclosure",
            _DISCLOSURE,
            [
                partial(pictures_disclosure.ece, results, evaluator, split, attack, folder)
                for split in splits
                for attack in attacks
            ],
        ),
        ("Calibration by the attacker", _CALIBRATION, learnt),
        (
            "Scores and local linkability",
            _SCORES,
            [partial(pictures_disclosure.histogram, results, e, folder) for e in scores],
        ),
        ("Identity search", _SEARCH, by_split(pictures_search.cmc)),
        ("Linkability by speaker", _SPEAKERS, by_split(pictures_radar.radar)),
    ]
    if results.targets():
        over_targets: list[Draw] = [
            partial(draw, results, evaluator, split, folder, series, metric)
            for series in results.target_series()
            for metric in pictures_radar.definitions(results)
            for draw in (pictures_radar.targets, pictures_radar.target_groups)
            for split in splits
        ]
        plan.append(("Linkability by target voice", _TARGETS, over_targets))
    return plan


UTILITY_TITLE = "Utility"
_UTILITY = (
    "To the right the strongest attacker measured has a higher EER; above, more of the words or "
    "of the feeling is left. Bars: 95 % intervals over speakers. A ring marks the Pareto front "
    "by point estimates; each picture says who is on it, who is behind, and where the intervals "
    "overlap. A front holds for these attackers and this recogniser."
)
_OVERVIEW = (
    f"To the right the old voices are hidden better, {HEARD}; above, the protected voices differ "
    "more from each other. Bars: 95 % intervals over speakers."
)
_ATTACKERS = (
    "The attacker's equal error rate, by what the attacker knows. The ignorant one compares "
    "protected with original speech; the aligned one has learnt, from speech before and after "
    "protection, to turn protected voices back; the lazy-informed one protects the enrolment "
    "too; a semi-informed one trains on protected speech, and a white-box one knows the target "
    "voice as well. Judge a system by its lowest point."
)
_SIMILARITY = (
    "Each cell is the similarity of two speakers, 0 to 1, on one colour scale. A bright diagonal "
    "in OP (upper right) means that people are recognised behind the protection; one in PP (lower "
    "right) that protected voices stay distinct. The lower left is OP turned over. In the zoo plot "
    "beneath, each point is a speaker: to the right, the own voice is recognised; high up, "
    "others are taken for this speaker."
)
_DISCLOSURE = (
    "Empirical cross-entropy of the attacker with ideal calibration, over the prior belief that "
    "two recordings come from one person. The black line is an attacker who hears nothing; the gap "
    "to it is what scores disclose. D_ECE integrates that gap over π (not over the log-odds of "
    "this axis). l_w is the strongest single evidence, in decades."
)
_CALIBRATION = (
    "Are the attacker's scores likelihood ratios as they are? First those of unprotected speech. "
    "Then, for random systems: can an attacker learn from one protected run how to read the scores "
    "of another? A profile above the black line means that the attacker is misled."
)
_SCORES = (
    "Where the two histograms are apart, a score tells same from different speakers: the local "
    "linkability D↔ goes to 1. Densities are histograms, so few trials give a ragged line."
)
_SEARCH = (
    "An attacker looks for each protected segment among all original segments. Compare with both "
    "chance levels: identities of the queries mixed with the clusters of the gallery kept, and all "
    "labels mixed."
)
_SPEAKERS = (
    "Each axis is a speaker; the outer ring (1) means that this person is linked for sure. Dotted: "
    "original speech. Where the line of a system meets the dotted one, it does nothing for that "
    "person."
)
_TARGETS = (
    "Each axis is a constant target voice that all speech was converted to (systems const_NN; with "
    "_f0, to its pitch, too); the dotted circle is the speaker's original speech (Champion et al. "
    "2021, Fig. 3 and 4). A person who is linkable at every target is not hidden by any of these "
    "voices."
)
