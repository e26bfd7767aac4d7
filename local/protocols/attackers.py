# SPDX-License-Identifier: Apache-2.0
"""Attackers, composed of parts: the knowledge of each, and their evaluator.

One table for all: recipes, records of scores, and reports read it from here. docs/attackers.md
explains it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from utils.cli import UserError

# Ways in which an attacker obtains their evaluator.
ORIGINAL = "original"  # encoder and back end trained on original speech
ALIGNED = "aligned"  # as ORIGINAL, after a rotation learnt on speech before and after protection
SCRATCH = "scratch"  # encoder and back end trained anew on protected speech
FINETUNED = "finetuned"  # encoder tuned further on protected speech, back end anew
BACKEND = "backend"  # frozen encoder, back end trained anew on protected speech
NOT_TRAINABLE = ("resemblyzer", "hub:", "given:")  # encoders with nothing to train here


@dataclass(frozen=True)
class Attacker:
    """Parts of an attacker. words: the name in sentences.

    enrolment: `original`, `other draw` (protected by the attacker with the system, but with other
    draws unless the system's level is perm or const) or `same target`. trial: `original` or
    `protected`. knows_system, knows_target: whether they can use the system, and know its target
    voice. evaluator: one of the five above.
    """

    words: str
    enrolment: str
    trial: str
    knows_system: bool
    knows_target: bool
    evaluator: str

    @property
    def condition(self) -> str:
        """OO, OA or AA: enrolment, trial; A is protected."""
        return "".join("O" if part == ORIGINAL else "A" for part in (self.enrolment, self.trial))

    def parts(self) -> dict[str, object]:
        """Description for the record of the scores."""
        parts = asdict(self)
        parts.pop("words")
        return parts


def _informed(words: str, evaluator: str) -> Attacker:
    return Attacker(words, "other draw", "protected", True, False, evaluator)


def _white_box(words: str, evaluator: str) -> Attacker:
    return Attacker(words, "same target", "protected", True, True, evaluator)


UNPROTECTED = Attacker("unprotected", ORIGINAL, ORIGINAL, False, False, ORIGINAL)
ATTACKERS = {  # of protected speech, from the least informed
    "ignorant": Attacker("ignorant", ORIGINAL, "protected", False, False, ORIGINAL),
    "aligned": Attacker("aligned", ORIGINAL, "protected", False, False, ALIGNED),
    "lazy_informed": _informed("lazy-informed", ORIGINAL),
    "semi_informed_backend": _informed("semi-informed (back end)", BACKEND),
    "semi_informed_finetuned": _informed("semi-informed (fine-tuned)", FINETUNED),
    "semi_informed": _informed("semi-informed", SCRATCH),
    "white_box_backend": _white_box("white-box (back end)", BACKEND),
    "white_box_finetuned": _white_box("white-box (fine-tuned)", FINETUNED),
    "white_box": _white_box("white-box", SCRATCH),
}
LEVELS = ("utt", "spk", "same")  # of the training set of semi-informed attackers


@dataclass(frozen=True)
class System:
    """System as attackers see it. level: of its keys; levels: those it could have, too. lacks:
    missing parts of its speech: `enrolment`, `training`."""

    name: str
    level: str
    levels: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attack:
    """Attacker with an evaluator on a system. level: of their protected training set."""

    evaluator: str
    system: str
    attacker: str
    level: str

    @property
    def parts(self) -> Attacker:
        """Attacker's row of the table."""
        return UNPROTECTED if self.attacker == "unprotected" else ATTACKERS[self.attacker]

    @property
    def protection(self) -> tuple[str, str]:
        """Protection of enrolment and trials: the system, or an empty string for originals."""
        enrolment, trial = (
            "" if part == ORIGINAL else self.system
            for part in (self.parts.enrolment, self.parts.trial)
        )
        return enrolment, trial


@dataclass(frozen=True)
class Plan:
    """Attacks to run, and requests that could not be met, with the reasons."""

    attacks: list[Attack]
    skipped: list[str]


def plan_attacks(
    attackers: Sequence[str], systems: Sequence[System], evaluators: Sequence[str], level: str
) -> Plan:
    """Plan each attacker on each system with each evaluator (<encoder>/<back end>), if it exists.

    level: `utt`, `spk` or `same` (as the system itself), of semi-informed attackers' training sets.
    Unprotected speech comes first. UserError for an unknown attacker or level.
    """
    for name in attackers:
        if name not in ATTACKERS:
            raise UserError(f"--attackers: {name} is unknown; known: {' '.join(ATTACKERS)}")
    if level not in LEVELS:
        raise UserError(f"--informed-level: {level} is unknown; known: {' '.join(LEVELS)}")
    plan = Plan([], [])
    for evaluator in dict.fromkeys(evaluators):
        plan.attacks.append(Attack(evaluator, "original", "unprotected", "-"))
        for system in systems:
            for name in dict.fromkeys(attackers):
                why = _why_not(ATTACKERS[name], system, evaluator, level)
                if why:
                    plan.skipped.append(f"{name} on {system.name} with {evaluator}: {why}")
                else:
                    trained = _training_level(ATTACKERS[name], system, level)
                    plan.attacks.append(Attack(evaluator, system.name, name, trained))
    return plan


def _why_not(attacker: Attacker, system: System, evaluator: str, level: str) -> str:
    """Reason why an attack does not exist; an empty string where it does."""
    encoder, _, backend = evaluator.rpartition("/")
    if "enrolment" in system.lacks and (
        attacker.enrolment != ORIGINAL or attacker.evaluator == ALIGNED
    ):
        return "there is no enrolment speech that it protected"
    if "training" in system.lacks and attacker.evaluator in (SCRATCH, FINETUNED, BACKEND):
        return "there is no training set that it protected"
    if attacker.knows_target and system.level != "const":
        return f"only systems of level const have a target to know; this one is {system.level}"
    if attacker.evaluator == BACKEND and backend == "cosine":
        return "the back end cosine has nothing to train"
    if attacker.evaluator in (SCRATCH, FINETUNED) and encoder.startswith(NOT_TRAINABLE):
        return "this encoder comes trained and cannot be trained here; its back end can (_backend)"
    wanted = _training_level(attacker, system, level)
    if wanted not in ("-", system.level) and wanted not in system.levels:
        return f"the system cannot be had at level {wanted}; --informed-level spk or same may do"
    return ""


def _training_level(attacker: Attacker, system: System, level: str) -> str:
    """Level: the system's own if it is not random, or if the attacker knows the target."""
    if attacker.evaluator in (ORIGINAL, ALIGNED):
        return "-"
    if level == "same" or attacker.knows_target or not system.levels:
        return system.level
    # Other names for the same: every utterance its own draw (position), a speaker their own.
    if (level, system.level) in (("utt", "position"), ("spk", "perm")):
        return system.level
    return level
