# SPDX-License-Identifier: Apache-2.0
"""The first screen's table and boxes: a verdict for each system, whether to trust it, what now."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from local.protocols.attackers import ATTACKERS, BACKEND, FINETUNED, SCRATCH
from local.report.load import NOTHING, Value
from local.report.results import Figure, SpeakerFigure
from local.report.speakers import Speaker, worst_of
from local.report.tables import Table
from local.report.verdict import (
    FEWEST,
    ICONS,
    WEAK,
    Attack,
    Level,
    Verdict,
    fold,
    judge,
)
from local.report.words import (
    CORE,
    GROUPS,
    UTILITY,
    UTILITY_METRICS,
    absent,
    attacker,
    number,
    parse,
    percent,
    target_series,
)

TITLE = "In short"
_NAMED = "reid_speaker_top_1"
_TRAINING = re.compile(r"_seed\d+(?=[_/+]|$)")  # what sets trainings of one evaluator apart


@dataclass(frozen=True)
class Judged:
    """A verdict on a system for one group of people. named: the attack that names most of them."""

    split: str
    group: str
    verdict: Verdict
    named: Attack | None
    worst: Speaker | None


def _value(figure: Figure | None) -> Value:
    if figure is None:
        return NOTHING
    return Value(parse(figure.value), parse(figure.low), parse(figure.high))


class Index:
    """Figures by what they speak of: (system, split, attacker, evaluator, metric)."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = figures
        self._of = {(f.system, f.split, f.attacker, f.evaluator, f.metric): f for f in figures}

    def get(self, system: str, split: str, who: str, evaluator: str, metric: str) -> Figure | None:
        """The figure; None where it was not measured."""
        return self._of.get((system, split, who, evaluator, metric))

    def subjects(self) -> list[tuple[str, str]]:
        """Protected systems with their splits, by split."""
        found = dict.fromkeys(
            (f.system, f.split)
            for f in self.figures
            if f.metric == "eer" and f.system != "original"
        )
        return sorted(found, key=lambda subject: subject[1])

    def attacks(self, system: str, split: str) -> list[Attack]:
        """Every attack on a system and split."""
        run = dict.fromkeys(
            (f.attacker, f.evaluator)
            for f in self.figures
            if (f.system, f.split, f.metric) == (system, split, "eer")
        )
        return [self._attack(system, split, *who) for who in run]

    def _attack(self, system: str, split: str, who: str, evaluator: str) -> Attack:
        at = (system, split, who, evaluator)
        reid = (system, split, f"reid_{who}", evaluator)
        named = self.get(*reid, _NAMED)
        people = _value(self.get(*at, "n_target_speakers")).value
        if named is not None:
            people = parse(named.n_speakers)
        return Attack(
            who,
            evaluator,
            _value(self.get(*at, "eer")),
            _value(self.bare(split, evaluator)),
            _value(self.get(*at, "eer_rise")),
            named=_value(named).value,
            chance=_value(self.get(*reid, f"chance_{_NAMED}")).value,
            named_bare=_value(
                self.get("original", split, "reid_unprotected", evaluator, _NAMED)
            ).value,
            recordings=parse(named.n_segments) / people if named and people else math.nan,
            people=people,
        )

    def bare(self, split: str, evaluator: str) -> Figure | None:
        """The EER without protection by an evaluator."""
        return self.get("original", split, "unprotected", evaluator, "eer")

    def bares(self) -> list[Figure]:
        """All EERs without protection that are defined."""
        return [
            f
            for f in self.figures
            if (f.system, f.attacker, f.metric) == ("original", "unprotected", "eer")
            and math.isfinite(parse(f.value))
        ]


def verdicts(
    figures: Sequence[Figure], speakers: Sequence[SpeakerFigure] = ()
) -> dict[str, list[Judged]]:
    """System -> a verdict on each group of people that was attacked."""
    index = Index(figures)
    found: dict[str, list[Judged]] = {}
    for system, split in index.subjects():
        attacks = index.attacks(system, split)
        worst = worst_of([row for row in speakers if row.split == split], system)
        said = judge(attacks, worst.linkability if worst else math.nan)
        naming = [a for a in attacks if math.isfinite(a.named)]
        named = max(naming, key=lambda a: (a.named, -a.p_named), default=None)
        group = GROUPS.get(split.rpartition("_")[2], split)
        found.setdefault(system, []).append(Judged(split, group, said, named, worst))
    return found


def _said(found: Sequence[Judged]) -> str:
    """The verdict on all groups, or each with its groups, the worst first."""
    told: dict[str, list[Judged]] = {}
    for own in sorted(found, key=lambda own: own.verdict.level):
        told.setdefault(str(own.verdict), []).append(own)
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{said} ({_groups(own)})" for said, own in told.items())


def _groups(found: Iterable[Judged]) -> str:
    return ", ".join(own.group for own in found)


def verdict_table(figures: Sequence[Figure], speakers: Sequence[SpeakerFigure] = ()) -> Table:
    """A row a system: the verdict, what the attacker who decides can do, the worst-protected
    person, and what is left of use. "; " parts the groups in a cell."""
    found = verdicts(figures, speakers)
    kept = uses(figures)
    each = [own for of_system in found.values() for own in of_system]
    header = ["system", "verdict", "EER (%) of the strongest attacker (50: guessing)"]
    naming = any(own.named for own in each)
    header += [f"people named{_recordings(each)}"] * naming
    header += ["worst-protected person"] * bool(speakers)
    header += [UTILITY_METRICS[metric].titled(metric, by) for metric, by in kept]
    rows = []
    for system, name in _rows(found).items():
        own = found[system]
        row = [name, _said(own), "; ".join(map(_eer, own))]
        if naming:
            row.append("; ".join(_named(j) for j in own if j.named) or "–")
        if speakers:
            row.append(_person(own))
        row += [_kept(kept[by].get(system), kept[by].get("original"), by[0]) for by in kept]
        rows.append(row)
    return Table(header, rows, 2)


def _rows(found: Mapping[str, Sequence[Judged]]) -> dict[str, str]:
    """Systems with a row, and what it is called: of target voices of one experiment the one
    that protects worst stands for all."""

    def order(system: str) -> tuple[float, float]:
        attacks = [own.verdict.attack for own in found[system]]
        lowest = min((fold(a.eer).value for a in attacks if a), default=0.5)
        return min(own.verdict.level for own in found[system]), lowest

    named = {system: system for system in found}
    for series, targets in target_series(found).items():
        worst = min(targets, key=order)
        for target in targets:
            del named[target]
        named[worst] = f"{series}: worst of {len(targets)}, {worst}"
    return named


def _eer(judged: Judged) -> str:
    """The EER of one group with its interval, whose it is, and the same evaluator's before."""
    attack = judged.verdict.attack
    if attack is None or math.isnan(attack.eer.value):
        return f"{judged.group} not defined"
    text = f"{judged.group} {attack.eer.text(100)} by {attacker(attack.attacker)}, "
    return f"{text}{attack.evaluator} (unprotected {attack.bare.text(100)})"


def _recordings(found: Iterable[Judged]) -> str:
    """How many recordings of a person the attacker has."""
    named = [own.named.recordings for own in found if own.named]
    each = sorted(round(n) for n in named if math.isfinite(n))
    if not each:
        return ""
    n = f"{each[0]}" if each[0] == each[-1] else f"{each[0]} to {each[-1]}"
    return f" from {n} recordings each"


def _named(judged: Judged) -> str:
    """How many people of a group are named and by whom; by guessing, and by the same evaluator
    without protection."""
    attack = judged.named
    if attack is None:
        return "–"
    told = f"{number(attack.people * attack.named, 0)} of {number(attack.people, 0)} {judged.group}"
    told += f" by {attacker(attack.attacker)}, {attack.evaluator}"
    beside = {"unprotected": attack.named_bare, "guessing": attack.chance}
    shares = [
        f"{word} {number(attack.people * share, 0)}"
        for word, share in beside.items()
        if math.isfinite(share)
    ]
    return f"{told} ({', '.join(shares)})" if shares else told


def _person(found: Iterable[Judged]) -> str:
    known = [own.worst for own in found if own.worst]
    worst = min(known, key=Speaker.order, default=None)
    return f"{worst.name} (linkability {number(worst.linkability)})" if worst else "–"


def uses(figures: Sequence[Figure]) -> dict[tuple[str, str], dict[str, Figure]]:
    """(metric, by whom) -> system -> the figure of all people together."""
    own = [f for f in figures if f.attacker == UTILITY and f.metric in UTILITY_METRICS]
    one_group = len({f.gender for f in own}) == 1
    found: dict[tuple[str, str], dict[str, Figure]] = {}
    for f in own:
        if one_group or not f.gender:
            found.setdefault((f.metric, f.evaluator), {})[f.system] = f
    return found


def _kept(figure: Figure | None, before: Figure | None, metric: str) -> str:
    if figure is None:
        return "–"
    use = UTILITY_METRICS[metric]
    told, was = (
        number(use.scale * parse(f.value), use.digits) if f else "" for f in (figure, before)
    )
    return f"{told} (was {was})" if was else told


def people(figures: Sequence[Figure]) -> str:
    """How many people were attacked, by group: those with target trials, where that is known."""
    targets = {f.split: f.value for f in figures if f.metric == "n_target_speakers"}
    counts = {
        GROUPS.get(f.gender, f.split): targets.get(f.split, f.n_speakers)
        for f in figures
        if f.metric == "eer" and f.n_speakers
    }
    return " and ".join(f"{n} {group}" for group, n in sorted(counts.items(), reverse=True))


def weak(figures: Sequence[Figure]) -> list[Figure]:
    """EERs without protection of evaluators that judge nothing: their interval reaches beyond 5 %,
    or is not known."""
    return [f for f in Index(figures).bares() if not parse(f.high) <= WEAK]


def too_weak(figures: Sequence[Figure]) -> str:
    """A warning for groups whose unprotected voices no evaluator knows well enough; else empty."""
    bares = Index(figures).bares()
    of_groups: dict[str, list[Figure]] = {}
    for f in bares:
        of_groups.setdefault(f.split, []).append(f)
    told = []
    for split, own in of_groups.items():
        if all(f in weak(figures) for f in own):
            best = min(own, key=lambda f: parse(f.value))
            group = GROUPS.get(best.gender, split)
            told.append(f"{_value(best).text(100)} % for {group} ({best.evaluator})")
    if not told:
        return ""
    return (
        f"No evaluator is known to recognise unprotected voices: the lowest EER without protection "
        f"is {' and '.join(told)}, which may be more than {percent(WEAK, 0)}. There, these "
        "figures are no evidence of privacy."
    )


def trust(figures: Sequence[Figure]) -> list[str]:
    """Whether these figures can be trusted: sentences."""
    warned, able = too_weak(figures), _able(figures)
    said = [warned] if warned else []
    said += _too_few(figures)
    if able:
        said.append(able)
    missing = absent({f.attacker for f in figures if f.attacker not in (UTILITY, "similarity")})
    if missing:
        names = ", ".join(attacker(name) for name in missing)
        said.append(f"Attackers that were not run, and may be stronger: {names}.")
    said += _fewer(figures)
    said.append(_trainings(figures))
    return said


def _able(figures: Sequence[Figure]) -> str:
    """Which evaluators judge, and how well they know each group without protection."""
    judges = [f for f in Index(figures).bares() if parse(f.high) <= WEAK]
    if not judges:
        return ""
    told = "; ".join(
        f"{f.evaluator} {_value(f).text(100)} % ({GROUPS.get(f.gender, f.split)})" for f in judges
    )
    return f"Evaluators that know these voices without protection, with their EER: {told}."


def _too_few(figures: Sequence[Figure]) -> list[str]:
    """A warning for groups so small that an interval over their people means nothing."""
    small = {
        GROUPS.get(f.gender, f.split): f.value
        for f in figures
        if f.metric == "n_target_speakers" and parse(f.value) < FEWEST
    }
    if not small:
        return []
    told = " and ".join(f"{n} {group}" for group, n in small.items())
    return [
        f"Only {told} with target trials were attacked. Figures and intervals of fewer than "
        f"{FEWEST} people say little of others."
    ]


def _fewer(figures: Sequence[Figure]) -> list[str]:
    """Systems that some attackers of others were not run on: they look better for it."""
    found: dict[str, set[str]] = {}
    for f in figures:
        if f.metric == "eer" and f.system != "original":
            found.setdefault(f.system, set()).add(f.attacker)
    core = {system: {c for c in CORE if any(a.startswith(c) for a in own)}
            for system, own in found.items()}  # fmt: skip
    every = {c for own in core.values() for c in own} - {"white_box"}  # not every one can have it
    return [
        f"Not run on {system}, where other systems were attacked by them: "
        f"{', '.join(attacker(name) for name in CORE if name in every - own)}."
        for system, own in core.items()
        if every - own
    ]


def _trainings(figures: Iterable[Figure]) -> str:
    """How much another training of the evaluator moves an EER, where several were run."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for f in figures:
        if f.metric == "eer" and math.isfinite(parse(f.value)):
            of = f.system, f.split, f.attacker, _TRAINING.sub("", f.evaluator)
            found.setdefault(of, {})[f.evaluator] = parse(f.value)
    several = [own.values() for own in found.values() if len(own) > 1]
    if not several:
        return (
            "How much another training of the evaluator would move these figures: not measured, as "
            "there was one training. Intervals are over people and do not show it."
        )
    most = max(max(own) - min(own) for own in several)
    n = max(map(len, several))
    return (
        f"{n} trainings of one evaluator differ by up to {number(100 * most, 1)} points of EER on "
        "the same attack. Intervals are over people and do not show it."
    )


@dataclass(frozen=True)
class Step:
    """What would make the verdicts firmer: why, how, and how long it takes."""

    why: str
    command: str
    time: str


_TRAINED = (SCRATCH, FINETUNED, BACKEND)


def what_now(figures: Sequence[Figure]) -> list[Step]:
    """The commands that would make these verdicts firmer."""
    run = {f.attacker for f in figures if f.metric == "eer" and f.attacker in ATTACKERS}
    if not run:
        return []
    evaluators = list(dict.fromkeys(f.evaluator for f in figures if f.metric == "eer"))
    steps = []
    if too_weak(figures) and not any(name.startswith("resemblyzer") for name in evaluators):
        words = " ".join([*evaluators, "resemblyzer/cosine"])
        steps.append(Step(
            "No evaluator is known to recognise unprotected voices. On real speech try a "
            "pretrained one", f'./run.sh --evaluators "{words}"',
            "about 2 CPU-seconds for a minute of speech",
        ))  # fmt: skip
    if not any(ATTACKERS[name].evaluator in _TRAINED for name in run):
        more = ["semi_informed_backend", "semi_informed_finetuned"]
        steps.append(Step(
            "No attacker has trained on protected speech",
            f'./run.sh --attackers "{" ".join([*(a for a in ATTACKERS if a in run), *more])}"',
            "5 to 30 CPU-minutes for each system and evaluator, and protecting the training set",
        ))  # fmt: skip
    elif "semi_informed" not in run:
        own = [a for a in ATTACKERS if a in run or a == "semi_informed"]
        steps.append(Step(
            "No attacker has trained an encoder from scratch on protected speech",
            f'./run.sh --attackers "{" ".join(own)}"',
            "5 to 30 CPU-minutes for each system and evaluator",
        ))  # fmt: skip
    if not any(_TRAINING.search(name) for name in evaluators):
        steps.append(Step(
            "Another training may move these figures", "./run.sh --trainings 3",
            "twice the time of stages 2, 3 and 6 to 9 once more",
        ))  # fmt: skip
    if _too_few(figures):
        steps.append(Step(
            f"Fewer than {FEWEST} people of a group have target trials",
            "./run.sh --corpus FOLDER", "egs/README.md says what a corpus needs",
        ))  # fmt: skip
    return steps


def colour(said: str) -> str:
    """`bad`, `good` or `open`: the class of a verdict in words, which begins with its icon."""
    if said.startswith(ICONS[Level.NOTHING]):
        return "bad"
    return "good" if said.startswith(ICONS[Level.HIDDEN]) else "open"
