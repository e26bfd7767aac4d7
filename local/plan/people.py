"""Measurements of people: their attributes, by group, and among ever more candidates."""

from pathlib import Path
from typing import Any

from local.plan.attacks import ORIGINAL, Attacks, Listed, speech_of
from local.plan.options import (
    CROWD,
    EVERYBODY,
    GROUPS,
    INFERENCE,
    VERIFICATION,
    Evaluator,
    Labels,
    NamedEncoder,
)
from local.protocols.attackers import ALIGNED, ATTACKERS, CONTROLS, UNPROTECTED
from local.protocols.trials import MIXED

XVECTORS, LEARN, HEAR, MEASURE = 3, 6, 7, 9  # stages of run.sh


class People:
    """Figures beside those of each list."""

    def __init__(self, attacks: Attacks) -> None:
        self.attacks, self.recipe = attacks, attacks.recipe

    def plan(self) -> None:
        """Plan everything; after the attacks, whose x-vectors and scores it takes."""
        if self._differ():
            self._group()
            self._infer()
        for one in self.attacks.all():
            if self._in_crowd(one):
                self._crowd(one)

    def _differ(self) -> bool:
        """Whether the attacked differ in sex, or may in age."""
        aged = Path("data", self.recipe.trials[0], "spk2age").is_file()
        return aged or len(self.recipe.genders) > 1 or MIXED in self.recipe.genders

    def _figures(
        self,
        family: str,
        system: str,
        attacker: str,
        evaluator: str,
        condition: str,
        **values: Any,
    ) -> None:
        name = self.recipe.asked["evaluation"]
        of = Labels(name, "", system, family, attacker, evaluator, condition)
        self.recipe.at(MEASURE).figures(family, of, **values)

    def _group(self) -> None:
        """Plan the strongest attacker on each system by group of people."""
        found: dict[str, dict[str, list[Listed]]] = {}
        for one in [*self.attacks.all(), *self.attacks.all_fused()]:
            if one.trials in self.recipe.trials:  # not of mixed lists beside those of each sex
                of = found.setdefault(one.attack.system, {})
                of.setdefault(f"data/{one.trials}", []).append(one)
        for system, lists in found.items():
            words = [w for data in lists for w in ("--listed", f"{data}/trials", data)]
            for one in [one for every in lists.values() for one in every]:
                who = one.labels(VERIFICATION)
                for n, run in enumerate((one, *self.attacks.further(one))):
                    path = f"exp/scores/{run.path}/scores"
                    words += ["--scores", f"{who.attacker}.{who.evaluator}", str(n), path]
            self._figures(GROUPS, system, "", EVERYBODY, "-", lists=words)

    def _infer(self) -> None:
        """Plan inference of sex and age by an attacker who learns from the training set as it is,
        and by one who learns from it as protected by an attacker who trains."""
        recipe, train = self.recipe, self.recipe.train
        encoders: dict[NamedEncoder, list[Evaluator]] = {}
        for one in recipe.evaluators:
            encoders.setdefault(one.encoder, []).append(one)
        for encoder, (evaluator, *others) in encoders.items():
            made = f"{encoder.xvectors}/{train}" in recipe.tables.every_out()
            costly = encoder.is_recognised or encoder.given or encoder.backend
            if encoder.is_textual or (costly and not made):
                continue  # vectors of the training set that nobody else needs, or are not there
            recipe.at(XVECTORS).session_xvectors(encoder, train)
            self._infer_from(evaluator, ORIGINAL, "unprotected", train)
            for system in self.attacks.systems:
                if system not in CONTROLS[1:]:
                    self._infer_from(evaluator, system, "ignorant", train)
            of = [
                one.attack
                for by in (evaluator, *others)
                for one in self.attacks.listed(by, recipe.genders[0])
            ]
            for system, level in dict.fromkeys(
                (a.system, a.level)
                for a in of
                if a.level != "-" and not a.parts.knows_target and a.system not in CONTROLS[1:]
            ):
                learnt = recipe.training_set(system, level, encoder)
                recipe.at(LEARN).session_xvectors(encoder, learnt)
                self._infer_from(evaluator, system, "semi_informed_backend", learnt)

    def _infer_from(self, evaluator: Evaluator, system: str, attacker: str, training: str) -> None:
        xvectors = evaluator.encoder.xvectors
        heard = [speech_of(system, name) for name in self.recipe.trials]
        condition = ({"unprotected": UNPROTECTED} | ATTACKERS)[attacker].condition
        self._figures(
            INFERENCE, system, attacker, evaluator.title, condition,
            xvectors=f"{xvectors}/{training}", data=f"data/{training}",
            lists=[w for name in heard for w in ("--trials", f"{xvectors}/{name}", f"data/{name}")],
        )  # fmt: skip

    def _in_crowd(self, one: Listed) -> bool:
        """Whether an attack is also made among the distractors: not by those who have learnt from
        some of these, nor without x-vectors of each recording."""
        names, encoder = self.recipe.asked.words("distractors"), one.tells.encoder
        learnt = encoder.conf and self.recipe.train in names
        drawn = one.attack.level == "-" and one.how != ALIGNED
        return bool(names and drawn and not learnt and not encoder.is_textual)

    def _crowd(self, one: Listed) -> None:
        """Plan legal linkability and naming with the distractors among the candidates."""
        recipe, xvectors = self.recipe, one.tells.encoder.xvectors
        others = recipe.at(LEARN).distractors(one.attack.protection[0])
        if not others:
            return
        words = ["--trials", f"{xvectors}/{one.trial}", f"data/{one.trial}"]
        for of, name in zip(recipe.asked.words("distractors"), others, strict=True):
            if of in (recipe.train, recipe.learnt.name):
                recipe.at(LEARN).session_xvectors(one.tells.encoder, name)
            else:
                recipe.at(HEAR).xvectors(one.tells.encoder, name)
            words += ["--other", f"{xvectors}/{name}", f"data/{name}"]
        recipe.at(MEASURE).figures_of_encoder(
            CROWD, one.labels(CROWD), enrol=f"{xvectors}/{one.enrol}",
            enrol_data=f"data/{one.enrol}", lists=words,
        )  # fmt: skip
