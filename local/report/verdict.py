"""What may be said of a system from the attacks on it: the rules, and nothing else.

An attacker is evidence of privacy only where they have been shown to hear. So a verdict falls back
to "cannot be judged" or "no leak shown" wherever such a proof is missing, and every attacker who
finds people counts, however weak they are otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from scipy.stats import binom

from local.metrics.detection import folded
from local.report.frame import NOTHING, Measure, Value, number, percent, show

MARGIN = 0.4  # folded EER that the whole interval must exceed before anything is called hidden
WEAK = 0.05  # upper end of an unprotected EER above which an evaluator judges nothing
NO_RISE = 0.05  # a rise of the EER that is shown to be smaller than this is none
MOSTLY, OFTEN = 0.1, 0.25  # folded EERs below which people are found mostly, often
NAMED_OFTEN, NAMED_MOSTLY = 0.25, 0.5  # shares of people named
FEWEST = 10  # people with target trials, of whom fewer speak for nobody else
LINKED = 0.5  # linkability of the worst-protected person from which on nobody is called hidden
LEVEL = 0.05  # of the tests of naming
POINTS = Measure("eer", "EER", scale=100.0, digits=1)


class Level(IntEnum):
    """Verdicts, the worst first."""

    NOTHING = 0
    MOSTLY = 1
    OFTEN = 2
    NOW_AND_THEN = 3
    UNJUDGED = 4
    UNSHOWN = 5
    HIDDEN = 6


WORDS = {
    Level.NOTHING: "does not anonymise",
    Level.MOSTLY: "people are mostly found",
    Level.OFTEN: "people are often found",
    Level.NOW_AND_THEN: "people are found now and then",
    Level.UNJUDGED: "cannot be judged",
    Level.UNSHOWN: "no leak shown",
    Level.HIDDEN: "hides from the attackers that were run",
}
ICONS = dict(zip(Level, "✗✗✗◐–?✓", strict=True))


@dataclass(frozen=True)
class Attack:
    """An attacker with an evaluator on a group of people; NaN where not measured.

    eer, bare: EER on protected speech, and of the same evaluator without protection, each with its
    95 % interval; rise: their folded difference, people resampled alike in both. named: share of
    `people` (those with target trials) named first from all that they said, `recordings` of each;
    chance: of that by guessing; named_bare: by the same evaluator without protection.
    controlled: the attacker learns from protected speech or is pretrained, and a control has shown
    that they find people whose voices change.
    """

    attacker: str
    evaluator: str
    eer: Value = NOTHING
    bare: Value = NOTHING
    rise: Value = NOTHING
    named: float = math.nan
    chance: float = math.nan
    named_bare: float = math.nan
    recordings: float = math.nan
    people: float = math.nan
    controlled: bool = False

    @property
    def judges(self) -> bool:
        """Whether the evaluator knows unprotected voices well enough to be evidence."""
        return self.bare.high <= WEAK

    @property
    def p_named(self) -> float:
        """The probability of naming so many by guessing; 1 where it was not measured."""
        if not math.isfinite(self.named * self.people * self.chance):
            return 1.0
        hits = round(self.named * self.people)
        return float(binom.sf(hits - 1, round(self.people), self.chance))


@dataclass(frozen=True)
class Verdict:
    """level and why, and the attack that the figures of the row are of (None: none is defined)."""

    level: Level
    why: str
    attack: Attack | None

    def __str__(self) -> str:
        return f"{ICONS[self.level]} {WORDS[self.level]}" + (f": {self.why}" if self.why else "")


def fold(eer: Value) -> Value:
    """An EER with its interval as an attacker has it who may turn their scores round: min(e, 1 − e)
    over all EERs of the interval."""
    low, high = min(eer.low, 1.0 - eer.high), max(folded(eer.low), folded(eer.high))
    return Value(folded(eer.value), low, 0.5 if eer.low <= 0.5 <= eer.high else high)


def judge(attacks: Sequence[Attack], worst_person: float = math.nan) -> Verdict:
    """The verdict on a system for one group of people.

    worst_person: the highest linkability of one person by any attacker, 0 to 1.
    """
    naming = [a for a in attacks if math.isfinite(a.named)]
    surest = min(naming, key=lambda a: (a.p_named, -a.named), default=None)
    is_named = surest is not None and surest.p_named * len(naming) < LEVEL
    most = max((a for a in naming if a.p_named < LEVEL), key=lambda a: a.named, default=None)
    defined = [a for a in attacks if math.isfinite(a.eer.value)]
    strongest = min(defined, key=lambda a: fold(a.eer).value, default=None)
    if is_named and most is not None and most.named > NAMED_MOSTLY:
        return Verdict(Level.NOTHING, _say_named(most), strongest or most)
    if strongest is None:
        return Verdict(Level.UNJUDGED, "no EER is defined", None)
    judges = [a for a in defined if a.judges]
    if is_named and most is not None:
        level = Level.OFTEN if most.named > NAMED_OFTEN else Level.NOW_AND_THEN
        by_name = Verdict(level, _say_named(most), _lowest(judges) or strongest)
    else:
        by_name = Verdict(Level.HIDDEN, "", None)
    by_eer = _by_eer(judges) or Verdict(Level.UNJUDGED, _say_weak(strongest), strongest)
    found = min(by_eer, by_name, key=lambda v: v.level)
    if found.level is not Level.HIDDEN:
        return found
    return _hidden(judges, naming, worst_person)


def _lowest(attacks: Sequence[Attack]) -> Attack | None:
    return min(attacks, key=lambda a: fold(a.eer).value, default=None)


def _by_eer(judges: Sequence[Attack]) -> Verdict | None:
    """The verdict by the EERs of evaluators that can hear; None without any."""
    lowest = _lowest(judges)
    if lowest is None:
        return None
    if same := [a for a in judges if a.rise.high <= NO_RISE]:
        own = min(same, key=lambda a: a.rise.value)
        gain = show(own.rise, POINTS)
        return Verdict(Level.NOTHING, f"the EER is {gain} points above that without it", own)
    if leaks := [a for a in judges if fold(a.eer).high < 0.5 and fold(a.eer).low <= MARGIN]:
        own = min(leaks, key=lambda a: fold(a.eer).value)
        value = fold(own.eer).value
        level = Level.MOSTLY if value < MOSTLY else Level.OFTEN
        return Verdict(level if value < OFTEN else Level.NOW_AND_THEN, "", own)
    least = min(judges, key=lambda a: _known(fold(a.eer).low))
    if _known(low := fold(least.eer).low) <= MARGIN:
        possible = percent(low) if math.isfinite(low) else "any size"
        return Verdict(Level.UNSHOWN, f"but an EER down to {possible} is possible", least)
    return Verdict(Level.HIDDEN, "", lowest)


def _known(low: float) -> float:
    """A bound that was not measured rules nothing out."""
    return low if math.isfinite(low) else 0.0


def _hidden(judges: Sequence[Attack], naming: Sequence[Attack], worst_person: float) -> Verdict:
    """The best verdict, or why it cannot be given."""
    lowest = _lowest(judges)
    if naming and min(a.p_named for a in naming) < LEVEL:
        most = min(naming, key=lambda a: a.p_named)
        return Verdict(Level.UNSHOWN, f"but {_say_named(most)}, which may be chance", lowest)
    if worst_person > LINKED:
        said = f"but the worst-protected person has a linkability of {number(worst_person)}"
        return Verdict(Level.UNSHOWN, said, lowest)
    if not all(a.people >= FEWEST for a in judges):
        return Verdict(Level.UNSHOWN, f"but fewer than {FEWEST} people have target trials", lowest)
    if not naming:
        return Verdict(Level.UNSHOWN, "but nobody tried to name people", lowest)
    if not any(a.controlled for a in judges):
        said = "but no control shows that these attackers find people whose voices change"
        return Verdict(Level.UNSHOWN, said, lowest)
    return Verdict(Level.HIDDEN, "", lowest)


def _say_named(attack: Attack) -> str:
    hits, people = round(attack.named * attack.people), round(attack.people)
    return f"{hits} of {people} people are named rightly"


def _say_weak(attack: Attack) -> str:
    high = attack.bare.high
    known = f"may have an EER of {percent(high)}" if math.isfinite(high) else "were not measured"
    return f"without protection these evaluators {known}"


RULES = (
    f"EERs are folded (an attacker who is always wrong turns their scores round): 80 % is 20 %. An "
    f"evaluator counts as evidence only where the interval of its EER without protection ends at "
    f"{percent(WEAK, 0)} or below. Where none does, the system {WORDS[Level.UNJUDGED]}.",
    f"{WORDS[Level.NOTHING]}: more than half of the people are named rightly from all that they "
    f"said, and not by chance; or the EER is shown to rise by no more than "
    f"{number(100 * NO_RISE, 0)} points over the same evaluator's without protection.",
    f"{WORDS[Level.MOSTLY]}, often, now and then: the whole interval of the EER is below 50 %, and "
    f"the EER is below {percent(MOSTLY, 0)}, below {percent(OFTEN, 0)}, or higher; or people are "
    f"named more often than by chance: more than {percent(NAMED_OFTEN, 0)} of them is often.",
    f"{WORDS[Level.HIDDEN]}: the interval of every evaluator's EER is above {percent(MARGIN, 0)}, "
    "attackers tried to name people and did no better than chance, no person's linkability is "
    f"above {number(LINKED, 1)}, at least {FEWEST} people with target trials were attacked, and a "
    "control has shown that an attacker finds people whose voices change. No attacker has such a "
    "control yet.",
    f"{WORDS[Level.UNSHOWN]}: anything else. It says what may still be possible.",
    "Naming is tested against guessing (binomial, corrected for the number of attackers). The cell "
    "names the attacker and evaluator that decide, with the same evaluator's EER without "
    "protection. The worst-protected person is the one whom the attacker who does best on them "
    "links most surely.",
)
