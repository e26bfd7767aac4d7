"""Choice of the figures to show: the strongest attacker, the verdict, the first screen, and the
Pareto front."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from local.metrics.detection import WEAK, folded
from local.metrics.intervals import but, holm, key
from local.metrics.recordings import LENGTHS
from local.plan.labels import Family
from local.protocols.attackers import ATTACKERS, CONTROLS
from local.report import frame, measures, results, wording
from local.report.frame import where
from local.report.measures import NOTHING, UTILITY_MEASURES, Measure, Value, measure, percent, show
from local.report.results import Results
from local.report.wording import say
from utils.arrays import Float64

NAMED = key("named", recordings="all")
ALL = "all groups (lowest EER)"


def strongest(metrics: pd.DataFrame) -> dict[tuple[str, str], Any | None]:
    """(split, system) -> the row of the lowest EER of all attackers, by split; of equal ones the
    first, None where none is defined. An EER of 80 % counts as 20 %: the attacker turns the scores
    round."""
    attacks = where(metrics, family=Family.VERIFICATION)
    attacks = attacks[(attacks["attacker"] != "unprotected") & (attacks["system"] != "original")]
    found = {}
    for at, own in attacks.groupby(["split", "system"], sort=False):
        rows = [row for row in where(own, figure="eer").itertuples() if math.isfinite(row.value)]
        found[at] = min(rows, key=lambda row: folded(row.value), default=None)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def unprotected(metrics: pd.DataFrame) -> dict[tuple[str, str], Any]:
    """(split, evaluator) -> row of the EER of unprotected speech, where it is defined."""
    bare = frame.eers(metrics, system="original", attacker="unprotected")
    return {
        (f.split, f.evaluator): f for f in bare.itertuples(index=False) if math.isfinite(f.value)
    }


def most_linkable(speakers: pd.DataFrame) -> pd.DataFrame:
    """Linkability (value) of each person behind each system, by the attacker and evaluator who link
    them most surely, and by the same evaluator without protection (bare; NaN: not measured).
    The most linkable first."""
    rows = where(speakers, metric="linkability")
    of = ["evaluator", "split", "speaker"]
    bare = where(rows, system="original").drop_duplicates(of, keep="last")
    most = rows.dropna(subset=["value"]).sort_values("value", ascending=False, kind="stable")
    most = most.drop_duplicates(["system", "speaker"])
    bare = bare[[*of, "value"]].rename(columns={"value": "bare"})
    return most.merge(bare, "left", of).sort_values(["value", "speaker"], ascending=[False, True])


# Verdicts.


MARGIN = 0.4  # folded EER that the whole interval must exceed before anything is called hidden
NO_RISE = 0.05  # a rise of the EER that is shown to be smaller than this is none
MOSTLY, OFTEN = 0.1, 0.25  # folded EERs below which people are found mostly, often
NAMED_OFTEN, NAMED_MOSTLY = 0.25, 0.5  # shares of people named
FEWEST = 10  # people with target trials; fewer speak for nobody else
LINKED = 0.5  # linkability of the worst-protected person from which on nobody is called hidden
LEVEL = 0.05  # of all tests of EERs of one system together, and of all of naming
HEADROOM = 0.1  # that a control must find more than the attack's lower bound, to be passed
DOSED = [name for name in CONTROLS if name[-2:].isdigit()]  # that leak a share of the speaker, in %
TRAINING = [name for name in ATTACKERS if name.startswith("semi_informed")]
TAUGHT = [name for name in ATTACKERS if name.startswith(("semi_informed", "white_box"))]
# By whom nearly everybody is found under a control, or they cannot hear.
MUST_FIND = {"copy": ("ignorant",), "bn_perm": ("lazy_informed", *TRAINING)}
SIGMAS = 1.96  # from the middle to the end of a 95 % interval
POINTS = measure("eer", unit="")


class Level(IntEnum):
    """Verdicts, the worst first."""

    NOTHING = 0
    MOSTLY = 1
    OFTEN = 2
    NOW_AND_THEN = 3
    SMALL = 4
    UNJUDGED = 5
    UNSHOWN = 6
    HIDDEN = 7


ICONS, WORDS = (dict(zip(Level, own, strict=True))
                for own in zip(*measures.TABLES["verdicts"], strict=True))  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """An attacker with an evaluator on a group of people; NaN where not measured.

    eer, bare: EER on protected speech, and of the same evaluator without protection, each with its
    95 % interval; rise: their folded difference, people resampled alike in both. named: share of
    `people` (those with target trials) named first from all that they said; chance: of that by
    guessing; named_bare: by the same evaluator without protection. several: folded EER (the lower
    of that of the scores as they are and normalised), by number of recordings of a person
    (`LENGTHS`). control: EER of an attacker who learns on protected people that they did not learn
    from; dose: the least share of a speaker that they establish in voices, in %; controlled: one of
    both shows that they can hear.
    """

    attacker: str
    evaluator: str
    eer: Value = NOTHING
    bare: Value = NOTHING
    rise: Value = NOTHING
    named: float = math.nan
    chance: float = math.nan
    named_bare: float = math.nan
    people: float = math.nan
    several: Mapping[str, Value] = field(default_factory=dict)
    control: Value = NOTHING
    dose: float = math.nan
    controlled: bool = False

    @property
    def supports(self) -> bool:
        """Whether they may be evidence that people are hidden, where they pass a control."""
        return self.judges or math.isfinite(self.dose)

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
class Lowest:
    """An EER, folded, that may decide. attack: whose; recordings: from how many of a person, a name
    of `LENGTHS`, or nothing for the list as it is; p: whether it may be chance, corrected for the
    choice among all attacks."""

    attack: Evidence
    recordings: str
    eer: Value
    p: float


@dataclass(frozen=True)
class Verdict:
    """level and why, and the attack that decides (None: none is defined). eers: the lowest EERs of
    all attacks, by number of recordings."""

    level: Level
    why: str
    attack: Evidence | None
    eers: Mapping[str, Lowest] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The verdict without the reason."""
        return f"{ICONS[self.level]} {WORDS[self.level]}"

    def __str__(self) -> str:
        return self.words + (f": {self.why}" if self.why else "")


def fold(eer: Value) -> Value:
    """An EER with its interval as an attacker has it who may turn their scores round: min(e, 1 − e)
    over all EERs of the interval."""
    low, high = min(eer.low, 1.0 - eer.high), max(folded(eer.low), folded(eer.high))
    return Value(folded(eer.value), low, 0.5 if eer.low <= 0.5 <= eer.high else high)


Choice = Mapping[str, tuple[Value, float]]
_eer_of = attrgetter("eer")


def judge(
    attacks: Sequence[Evidence], worst_person: float = math.nan, chosen: Choice | None = None,
    groups: int = 1,
) -> Verdict:  # fmt: skip
    """The verdict on a system for one of several groups of people.

    worst_person: the highest linkability of one person by any attacker, 0 to 1. chosen: by number
    of recordings the lowest EER of all attackers, with an interval and a p value that cover this
    choice; without it those of single attacks are corrected.
    """
    naming = [a for a in attacks if math.isfinite(a.named)]
    beyond = [a for a, p in zip(naming, holm([a.p_named for a in naming]), strict=True)
              if p * groups < LEVEL]  # fmt: skip
    most = max(beyond, key=lambda a: a.named, default=None)
    # Said however many attackers were run: each more makes a leak harder to establish.
    surest, maybe = min(naming, key=lambda a: a.p_named, default=None), ""
    if surest and surest.p_named < LEVEL:
        maybe = say("maybe_named", attack=surest, attacks=len(naming))
    defined = [a for a in attacks if math.isfinite(a.eer.value)]
    judges = [a for a in defined if a.judges]
    every = _candidates(defined, chosen)  # whoever succeeds refutes
    own = {n: [one for one in every if (one.recordings or "1") == n] for n in LENGTHS}
    eers = {n: min(some, key=_eer_of) for n, some in own.items() if some}
    strongest = min(eers.values(), key=_eer_of).attack if eers else None
    by_name = None
    if most is not None:
        level = Level.OFTEN if most.named > NAMED_OFTEN else Level.NOW_AND_THEN
        level = Level.NOTHING if most.named > NAMED_MOSTLY else level
        by_name = Verdict(level, say("named_correctly", attack=most), strongest or most, eers)
    if strongest is None or (by_name and by_name.level is Level.NOTHING):
        return by_name or Verdict(Level.UNJUDGED, "no EER is defined", None)
    found = replace(_by_eer(judges, every, LEVEL / groups, maybe), eers=eers)
    able = [a for a in defined if a.supports]
    if found.level >= Level.UNJUDGED and not able:
        ends = (a.bare.high for a in defined if math.isfinite(a.bare.high))
        why = say("not_able", high=min(ends, default=math.inf))
        found = Verdict(Level.UNJUDGED, why, strongest, eers)
    if by_name:
        return min(found, by_name, key=lambda v: v.level)
    if found.level is Level.HIDDEN:
        return replace(found, **_hidden(able, maybe, worst_person))
    return found


def _candidates(attacks: Sequence[Evidence], chosen: Choice | None) -> list[Lowest]:
    """The EERs that may decide. Those of single attacks count where no choice covers them, as it
    was made among fewer attackers: p is that of the list as it is, from its interval as of a normal
    distribution, times the number of all attacks."""
    far = Value(math.inf)
    found = [
        Lowest(min(attacks, key=lambda a: abs(a.several.get(n, far).value - eer.value)), n, eer, p)
        for n, (eer, p) in (chosen or {}).items()
        if attacks
    ]
    covered = {
        one.recordings for one in found
        if all(_own(a, one.recordings, one.eer).value > one.eer.value - 1e-6 for a in attacks)
    }  # fmt: skip
    for attack in attacks:
        eer, p = fold(attack.eer), 1.0
        if eer.high < 0.5:
            off = (0.5 - eer.value) / max(eer.high - eer.value, 1e-9)
            p = min(1.0, 2.0 * float(norm.sf(off * SIGMAS)) * len(attacks))
        if "1" not in covered or not attack.judges:  # of whom older choices were not made
            found.append(Lowest(attack, "", eer, p))
        found += [Lowest(attack, n, v, 1.0) for n, v in attack.several.items() if n not in covered]
    return found


def _own(attack: Evidence, n: str, other: Value) -> Value:
    """The EER of an attack from n recordings; of one that was not measured by number of recordings
    that of the list counts as from one."""
    listed = fold(attack.eer) if n == "1" else other
    return attack.several.get(n, listed)


def _by_eer(
    judges: Sequence[Evidence], every: Sequence[Lowest], level: float, maybe: str
) -> Verdict:
    """The verdict by EERs, from however many recordings of a person: whoever succeeds refutes, and
    only evaluators that can hear support. level: of the tests whether they may be chance; maybe:
    who may be named."""
    if same := [a for a in judges if a.rise.high <= NO_RISE]:
        own = min(same, key=lambda a: a.rise)
        gain = show(own.rise, POINTS)
        return Verdict(Level.NOTHING, f"the EER is {gain} points above that without it", own)
    least = min(every, key=lambda own: _known(own.eer.low))
    doubts, wide = [maybe] if maybe else [], _known(least.eer.low) <= MARGIN
    if wide:
        possible = percent(least.eer.low) if math.isfinite(least.eer.low) else "any size"
        doubts.append(f"an EER down to {possible} is possible {_from(least.recordings)}".rstrip())
    but = f"but {', and '.join(doubts)}"
    if leaks := [one for one in every if one.p < level]:
        one = min(leaks, key=lambda leak: (_known(leak.eer.low) > MARGIN, leak.eer.value))
        found = Level(Level.MOSTLY + sum(one.eer.value >= most for most in (MOSTLY, OFTEN)))
        why = f"an EER of {percent(one.eer.value)} {_from(one.recordings)}".rstrip()
        if _known(one.eer.low) > MARGIN:  # small, as far as is known
            return Verdict(Level.SMALL, f"{why}, {but}" if doubts else why, one.attack)
        return Verdict(found, why if _from(one.recordings) else "", one.attack)
    if wide:
        return Verdict(Level.UNSHOWN, but, least.attack)
    return Verdict(Level.HIDDEN, "", min(every, key=_eer_of).attack)


def _from(n: str) -> str:
    """How many recordings of a person an EER is from; empty for one."""
    return "" if n in ("", "1") else f"from {n} recordings of a person"


def _known(low: float) -> float:
    """A bound that was not measured rules nothing out."""
    return low if math.isfinite(low) else 0.0


def _hidden(able: Sequence[Evidence], maybe: str, worst_person: float) -> dict[str, Any]:
    """Level and why: the best verdict, or why it cannot be given."""
    heard = [a for a in able if a.controlled]
    if all(a.control.defined and not a.controlled for a in able):
        best = min(a.control for a in able)
        return {"level": Level.UNJUDGED, "why": say("fails", control=best)}
    reasons = {  # the first that holds is given
        maybe: bool(maybe),
        f"the worst-protected person has a linkability of {measures.number(worst_person)}":
            worst_person > LINKED,
        f"fewer than {FEWEST} people have target trials":
            not all(a.people >= FEWEST for a in able),
        "nobody learnt from protected speech, or passed a control": not heard,
        "nobody who passed a control tried to name people":
            not any(math.isfinite(a.named) for a in heard),
        "nobody who passed a control attacked by several recordings":
            not any(n != "1" for a in heard for n in a.several),
        "nobody's linkability is known": math.isnan(worst_person),
    }  # fmt: skip
    if why := next((f"but {said}" for said, holds in reasons.items() if holds), ""):
        return {"level": Level.UNSHOWN, "why": why}
    doses = [a.dose for a in heard if math.isfinite(a.dose)]
    if doses and not any(a.control.defined for a in heard):
        why = f"the least share of a speaker that they find is {min(doses):.0f} %"
    return {"level": Level.HIDDEN, "why": why}


@dataclass(frozen=True)
class Judged:
    """A verdict on a system for one group of people. named: the attack that names most of them."""

    system: str
    split: str
    group: str
    verdict: Verdict
    named: Evidence | None
    worst: results.Person | None

    def __str__(self) -> str:
        return f"{self.system}, {self.group}"

    @property
    def eer(self) -> Value:
        """The lowest EER of all attacks, from however many recordings."""
        return min((one.eer for one in self.verdict.eers.values()), default=NOTHING)


def no_controls(figures: pd.DataFrame) -> pd.DataFrame:
    """Figures of all but the controls, which protect nobody; copy synthesis stays."""
    return figures[~figures["system"].isin(CONTROLS[1:])]


def attacked(metrics: pd.DataFrame) -> pd.DataFrame:
    """EERs of attacks on all systems but the controls."""
    eers = no_controls(frame.eers(metrics))
    return eers[eers["system"] != "original"]


def subjects(metrics: pd.DataFrame) -> list[tuple[str, str]]:
    """Protected systems with their splits, by split, without controls."""
    found = (
        attacked(metrics).drop_duplicates(["system", "split"]).sort_values("split", kind="stable")
    )
    return [*zip(found["system"], found["split"], strict=True)]


def attacks(results: Results, system: str, split: str) -> list[Evidence]:
    """Every attack on a system and split."""
    run = frame.eers(results.metrics, system=system, split=split)
    return [
        _attack(results, f) for f in run.drop_duplicates(["attacker", "evaluator"]).itertuples()
    ]


def _chosen(results: Results, system: str, split: str) -> Choice:
    """The lowest EERs of all attackers, where these were measured, by number of recordings."""
    of = partial(results.several, "all", split, system, "", family=Family.STRONGEST)
    eers, ps = (of(figures=[key("eer", recordings=n, kind=kind) for n in LENGTHS])
                for kind in ("value", "p"))  # fmt: skip
    return {n: (eer, p.value) for n, eer, p in zip(LENGTHS, eers, ps, strict=True) if p.defined}


def _attack(results: Results, f: Any) -> Evidence:
    of = (Family.VERIFICATION, f.evaluator, f.split, f.system, f.attacker)
    named = results.rows.get((*of, NAMED))
    at, bare = (f.system, f.attacker), ("original", "unprotected")
    several = partial(results.several, f.evaluator, f.split)
    eer, rise, targets = several(*at, ("eer", "eer_rise", "n_target_speakers"))
    people = frame.parse(named.n_speakers) if named is not None else targets.value
    (bare_eer,), (chance,) = several(*bare, ["eer"]), several(*at, [but(NAMED, kind="chance")])
    (named_bare,) = several(*bare, [NAMED])
    names = ("eer", "eer_normalised")
    eers = {n: [v for v in several(*at, [key(name, recordings=n) for name in names]) if v.defined]
            for n in LENGTHS}  # fmt: skip
    control = results.control(f.evaluator, f.split, *at)
    doses = [
        int(system[-2:]) for system in DOSED
        for own in several(system, f.attacker, ["eer"]) if fold(own).high < 0.5
    ]  # fmt: skip
    hears = control.high <= fold(eer).low - HEADROOM if control.defined else bool(doses)
    return Evidence(
        f.attacker, f.evaluator, eer, bare_eer, rise,
        named=named.value if named else math.nan, chance=chance.value, named_bare=named_bare.value,
        people=people, control=control, dose=min(doses, default=math.nan),
        several={n: min(map(fold, own)) for n, own in eers.items() if own},
        controlled=hears and not any(
            not fold(own).high < OFTEN  # unless its interval is known
            for system, attackers in MUST_FIND.items()
            if f.attacker in attackers
            for own in several(system, f.attacker, ["eer"])
            if own.defined
        ),
    )  # fmt: skip


def verdicts(results: Results) -> dict[str, list[Judged]]:
    """System -> a verdict on each group of people that was attacked."""
    found: dict[str, list[Judged]] = {}
    every = subjects(results.metrics)
    groups = Counter(system for system, _ in every)
    alike = Counter((system, results.voices[split]) for system, split in every)
    for system, split in every:
        own, worst = attacks(results, system, split), results.worst(system, split)
        said = judge(
            own, worst.linkability if worst else math.nan,
            _chosen(results, system, split), groups[system],
        )  # fmt: skip
        naming = [a for a in own if math.isfinite(a.named)]
        named = max(naming, key=lambda a: (a.named, -a.p_named), default=None)
        group = results.voices[split]
        group += f" ({split})" if alike[system, group] > 1 else ""
        found.setdefault(system, []).append(Judged(system, split, group, said, named, worst))
    return found


def beside_words(metrics: pd.DataFrame) -> dict[tuple[str, str], Value]:
    """(system, split) -> by how much the EER falls where an attacker has all channels beside the
    words, the most of all attackers; empty where no channels were fused."""
    found: dict[tuple[str, str], Value] = {}
    for f in where(metrics, figure="eer_beside_words", evaluator="fused").itertuples(index=False):
        own, at = Value(-f.value, -f.high, -f.low), (f.system, f.split)
        if own.defined and own.value > found.get(at, Value(-math.inf)).value:
            found[at] = own
    return found


def _standing(judged: Judged) -> tuple[Level, float]:
    """Key that sorts the worst-protected group first."""
    return judged.verdict.level, judged.eer.value


def verdict_rows(found: Mapping[str, Sequence[Judged]]) -> dict[str, str]:
    """Systems with a row of their own, and what it is called: of target voices of one experiment
    the one that protects worst stands for all."""
    named = {system: system for system in found}
    for series, targets in wording.target_series(found).items():
        worst = min((min(map(_standing, found[target])), target) for target in targets)[1]
        named = {name: text for name, text in named.items() if name not in targets}
        named[worst] = f"{series}: worst of {len(targets)}, {worst}"
    return named


class Line(NamedTuple):
    """A system on the first screen, of all groups of people together.

    name: what it is called; judged: the group that it protects worst; eers: from one (`1`) and from
    `all` recordings of a person the lowest EER of all attackers, and in which group; bare: the row
    of the lowest EER without protection; named: the group of whom most are named; n_groups: how
    many groups there are.
    """

    system: str
    name: str
    judged: Judged
    eers: Mapping[str, tuple[Judged, Lowest]]
    bare: Any | None
    named: Judged | None
    n_groups: int


def lines(results: Results) -> list[Line]:
    """The systems of the first screen."""
    found, bares, made = verdicts(results), unprotected(results.metrics), []
    for system, name in verdict_rows(found).items():
        own, eers = found[system], {}
        for n in ("1", "all"):
            if several := [(j, j.verdict.eers[n]) for j in own if n in j.verdict.eers]:
                eers[n] = min(several, key=lambda pair: pair[1].eer.value)
        rows = [f for (split, _), f in bares.items() if split in {j.split for j in own}]
        bare = min(rows, key=lambda f: folded(f.value), default=None)
        named = [(j.named.named, j) for j in own if j.named]
        most = max(named, key=lambda pair: pair[0])[1] if named else None
        worst = min(own, key=_standing)
        made.append(Line(system, name, worst, eers, bare, most, len(own)))
    return made


def uses(metrics: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """(metric, by whom) -> system -> the row of all people together."""
    own = where(metrics, family=Family.UTILITY, figure=UTILITY_MEASURES)
    if len({*metrics["gender"]} - {""}) > 1:
        own = where(own, gender="")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for f in own.itertuples(index=False):
        found.setdefault((f.metric, f.evaluator), {})[f.system] = f
    return found


# Privacy against utility.


@dataclass(frozen=True)
class TradePoint:
    """A system. privacy: folded EER of the strongest attacker; utility: a fraction or a score."""

    system: str
    privacy: Value
    utility: Value

    @property
    def defined(self) -> bool:
        """Whether both are."""
        return self.privacy.defined and self.utility.defined


@dataclass(frozen=True)
class Trade:
    """The systems of a split by one measure of utility, `metric` by `recogniser`.

    A system is on the front when no other is at least as good in both and better in one, by the
    point estimates. left_out: systems without privacy or utility, or with one undefined, and why.
    """

    split: str
    metric: str
    recogniser: str
    points: Sequence[TradePoint]
    unprotected: TradePoint | None
    left_out: Sequence[str] = ()

    @property
    def measure(self) -> Measure:
        """The measure of utility."""
        return measures.MEASURES[self.metric]

    def front(self) -> list[TradePoint]:
        """Systems that no other dominates, by rising privacy."""
        found = [p for p in self.points if not self.behind(p)]
        return sorted(found, key=lambda p: (p.privacy.value, p.system))

    def behind(self, point: TradePoint) -> list[TradePoint]:
        """The systems that are at least as good as `point` in both, and better in one."""
        return [other for other in self.points if self.dominates(other, point)]

    def dominates(self, a: TradePoint, b: TradePoint) -> bool:
        """Whether `a` is at least as good as `b` in both, and better in one."""
        better = self.measure.better * (a.utility.value - b.utility.value)
        gains = (a.privacy.value - b.privacy.value, better)
        return min(gains) >= 0 and max(gains) > 0

    def finding(self) -> str:
        """The front in words, who is behind it, and what it would be without protection."""
        front, bare = self.front(), self.unprotected
        behind = [
            (point, [f"{other.system}{self._doubt(other, point)}" for other in self.behind(point)])
            for point in self.points
            if point not in front
        ]
        worse = [p.system for p in self.points if bare and self.dominates(bare, p)]
        return say("front", trade=self, front=front, behind=behind, worse=worse)

    def _doubt(self, a: TradePoint, b: TradePoint) -> str:
        """In what the intervals of two systems overlap, or are not known."""
        pairs = {"EER": (a.privacy, b.privacy), self.measure.title: (a.utility, b.utility)}
        if not all(value.bounded for pair in pairs.values() for value in pair):
            return " (intervals not known)"
        overlap = [name for name, (x, y) in pairs.items() if not x.apart(y)]
        return f" (intervals of {wording.enumerate_words(overlap)} overlap)" if overlap else ""


def trades(metrics: pd.DataFrame) -> list[Trade]:
    """Every split, measure of utility and recogniser that have both privacy and utility."""
    metrics = metrics[~metrics["system"].isin(wording.target_voices(frame.each(metrics, "system")))]
    privacy: dict[str, dict[str, Any]] = {}
    for (split, system), eer in strongest(metrics).items():
        privacy.setdefault(split, {})[system] = eer
    bares, found = unprotected(metrics), []
    useful = where(metrics, figure=UTILITY_MEASURES)
    kinds = useful.groupby(["metric", "evaluator"], sort=False)
    of = UTILITY_MEASURES.index
    for (metric, recogniser), own in sorted(kinds, key=lambda kind: of(kind[0][0])):
        for split in sorted(set(own["split"]) & set(privacy)):
            attacked = privacy[split]
            measured = {f.system: f for f in where(own, split=split).itertuples(index=False)}
            eers = filter(None, attacked.values())
            lowest = min(eers, key=lambda f: folded(f.value), default=None)
            bare = bares.get((split, lowest.evaluator)) if lowest else None
            use = _value(measured.pop("original", None))
            before = TradePoint("original", fold(_value(bare)), use)
            points, left_out = _points(attacked, measured, measures.MEASURES[metric].title)
            bare_point = before if before.defined else None
            found.append(Trade(split, metric, recogniser, points, bare_point, left_out))
    return found


def _value(row: Any | None) -> Value:
    return NOTHING if row is None else frame.value_of(row)


def _points(
    attacked: Mapping[str, Any], measured: Mapping[str, Any], title: str
) -> tuple[list[TradePoint], list[str]]:
    """Systems with privacy and utility, and what the others lack."""
    points, left_out = [], []
    for system in dict.fromkeys([*attacked, *measured]):
        point = TradePoint(system, fold(_value(attacked.get(system))), _value(measured.get(system)))
        points += [point] if point.defined else []
        told = {"EER": (attacked, point.privacy), title: (measured, point.utility)}
        left_out += [f"{system} ({what} {show(NOTHING if system in of else None)})"
                     for what, (of, value) in told.items() if not value.defined]  # fmt: skip
    return points, left_out


def pooled(results: Results) -> Trade | None:
    """The lowest EER from one recording of each system against words, or else quality or emotions,
    of all people together; None where neither was measured."""
    kept, shown = uses(results.metrics), [line for line in lines(results) if "1" in line.eers]
    for metric, by in sorted(kept, key=lambda of: ("wer", "mos", "uar").index(of[0])):
        rows = {system: _value(row) for system, row in kept[metric, by].items()}
        points = [TradePoint(line.system, line.eers["1"][1].eer, rows.get(line.system, NOTHING))
                  for line in shown]  # fmt: skip
        bares = [fold(frame.value_of(line.bare)) for line in shown if line.bare]
        before = min(bares, default=NOTHING)
        bare = TradePoint("original", before, rows.get("original", NOTHING))
        if defined := [point for point in points if point.defined]:
            return Trade(ALL, metric, by, defined, bare if bare.defined else None)
    return None


# Linkability by speaker over target voices.


def over_targets(
    results: Results, evaluator: str, split: str, series: str
) -> tuple[str, pd.DataFrame, Float64]:
    """The best-informed attacker of those on most targets of a series; linkability by speaker (the
    worst protected first) and target; and that of the originals (speakers,), NaN where there is
    none."""
    people = where(results.speakers, evaluator=evaluator, split=split, figure="linkability")
    people = people.drop_duplicates(["attacker", "system", "speaker"], keep="last")
    people = people.dropna(subset="value")
    bare = where(people, system="original", attacker="unprotected").set_index("speaker")["value"]
    attacked = where(people, system=results.target_series()[series])
    tried = attacked.groupby("attacker")["system"].nunique()
    known = [attack for attack in reversed(wording.PROTECTED) if attack in tried.index]
    attack = max(known, key=lambda name: tried[name], default="")
    own = where(attacked, attacker=attack)
    table = own.pivot(index="speaker", columns="system", values="value").dropna()
    table = table.iloc[np.argsort(-table.mean(axis=1), kind="stable")]
    return attack, table, np.array(bare.reindex(table.index), np.float64)
