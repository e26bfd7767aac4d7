"""Measurements: attacks on protected speech, and what the speech is still good for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from local.metrics.registry import families
from local.plan.evaluators import FUSED, LEARNT, Evaluator, NamedEncoder, as_trained
from local.plan.labels import EVERYBODY, ORIGINAL, PROSODY, Family, Labels, Words, label_of
from local.plan.needs import Recipe, as_protected, find_recogniser, repeated, say_recogniser
from local.protocols.attackers import ALIGNED, AttackedSystem, Attempt, plan_attacks
from steps.emotion.recognisers import RECOGNISERS, EmotionKind
from utils.cli import UserError
from utils.registry import match
from utils.stamps import is_current

# ---- Attacks: scores of trial lists and of all pairs, and the figures of both.

DRAW = "draw1"  # the second run of a random system
ENROLLED = ("1", "3")  # recordings of a person that attackers enrol, beside all
DRAWN = ("ignorant", "lazy_informed")  # attackers of all runs of --draws, who train nothing


def scores_of(labels: Labels) -> str:
    """Folder of the scores that figures are computed from."""
    return f"exp/scores/{labels.path}"


@dataclass(frozen=True)
class Listed:
    """Attack on the trials of one gender. tells: the original evaluator; hears: the attacker's
    version of it. enrol, trial: the sets. fused: the attacks that one with several evaluators
    consists of; tells and hears are then but names."""

    recipe: Recipe
    attack: Attempt
    tells: Evaluator
    hears: Evaluator
    gender: str
    enrol: str
    trial: str
    name: str = ""  # of the folder, if not the attacker's
    fused: tuple["Listed", ...] = ()

    @property
    def how(self) -> str:
        """Way in which the attacker obtains their evaluator."""
        return self.attack.parts.evaluator

    @property
    def trials(self) -> str:
        """Set of the trial list."""
        return self.recipe.trial_set(self.gender)

    @property
    def compares(self) -> bool:
        """Whether voice similarity is also measured with this attacker's evaluator: VoicePAT takes
        G_VD from an evaluator that was trained on protected speech."""
        learnt = self.hears.training and self.hears.encoder.kind.compared
        return bool(learnt) and not self.attack.parts.knows_target

    @property
    def path(self) -> str:
        """Folder in exp/scores and exp/metrics."""
        labels = self.labels(Family.VERIFICATION)
        return labels._replace(attacker=self.name or self.attack.attacker).path

    @property
    def scores(self) -> str:
        """Scores of its trials."""
        return f"exp/scores/{self.path}/scores"

    @property
    def unprotected(self) -> str:
        """Folder, in exp/scores and exp/metrics, of unprotected speech by the same evaluator."""
        labels = self.labels(Family.VERIFICATION)._replace(system=ORIGINAL, condition="OO")
        return labels._replace(attacker="unprotected").path

    def score(self) -> str:
        """Plan the scores, and a record of the attack (attacker.json)."""
        if self.fused:
            return self._fuse()
        hears, xvectors = self.hears, self.hears.encoder.xvectors
        enrol, trial = f"{xvectors}/{self.enrol}", f"{xvectors}/{self.trial}"
        record = self._record
        if self.how == ALIGNED:
            enrol, trial = self._align()
        if hears.held_out and hears.held_out in self.recipe.tables.every_out():
            record["learnt"] += ("--held-out", hears.held_out)
        return self.recipe.step(
            "scores", f"exp/scores/{self.path}", backend=hears.scorer, asnorm=hears.asnorm,
            enrol=enrol, trial=trial, encoder=hears.encoder.model,
            enrolled=self.few, **record,
        )  # fmt: skip

    @property
    def few(self) -> Words:
        """Numbers of enrolled recordings that are also scored; of an alignment and of further
        draws there are none."""
        words = repeated("--enrolled", ENROLLED)
        listed = self.how != ALIGNED and not self.name
        return ("--enrol-data", f"data/{self.enrol}", *words) if listed else ()

    @property
    def _record(self) -> dict[str, Any]:
        """The sets of the attack, and the list, for its record."""
        learnt: Words = ()
        if self.hears.training:
            learnt = ("--training", f"data/{self.hears.training}")
        if self.how == ALIGNED:
            learnt = ("--pairs", f"data/{as_protected(self.recipe.sets[0], self.attack.system)}")
        return {
            "attacker": self.attack.attacker, "enrol_data": f"data/{self.enrol}",
            "trial_data": f"data/{self.trial}", "learnt": learnt,
            "trials": f"data/{self.trials}/trials",
        }  # fmt: skip

    def _fuse(self) -> str:
        """Plan fused scores; beside them those of the words alone, if these are among them."""
        found = {one.tells.encoder.word: one.scores for one in self.fused}
        words: Words = ("--words", found["words"]) if "words" in found else ()
        if self.tells.word == LEARNT and self.attack.attacker != "unprotected":
            of = [(one.hears.held_out, f"data/{one.hears.training}") for one in self.fused]
            words = tuple(word for pair in of for word in ("--learn-from", *pair))
        return self.recipe.step(
            "fused", f"exp/scores/{self.path}", options=words,
            scores=[one.scores for one in self.fused],
            parts=" + ".join(one.tells.title for one in self.fused), **self.fused[0]._record,
        )  # fmt: skip

    def _align(self) -> tuple[str, str]:
        """Plan x-vectors of the aligned attacker, who has the enrolment before and after
        protection, and rotates the protected trials as these pairs show. For a PLDA trained on
        original x-vectors they stay in that space; for a cosine they are centred."""
        space = "original" if self.hears.kind == "plda" else "centred"
        xvectors, enrol = self.hears.encoder.xvectors, self.recipe.sets[0]
        out = f"exp/aligned/{self.tells.label}/{self.trial}"
        self.recipe.step(
            "aligned", out, also=(f"{out}/enrol", f"{out}/trial"), space=space,
            enrol=f"{xvectors}/{enrol}", enrol_data=f"data/{enrol}",
            protected=f"{xvectors}/{as_protected(enrol, self.attack.system)}",
            trials=f"{xvectors}/{self.trial}", trials_data=f"data/{self.trials}",
        )  # fmt: skip
        return f"{out}/enrol", f"{out}/trial"

    def labels(self, family: str) -> Labels:
        """Labels of the figures of a family."""
        return Labels(
            self.recipe.split(self.gender), self.gender, self.attack.system, family,
            self.attack.attacker, self.tells.title, self.attack.parts.condition,
        )  # fmt: skip


def list_attack(recipe: Recipe, attack: Attempt, evaluator: Evaluator, gender: str) -> Listed:
    """Attack of the plan on the trials of a gender."""
    training = recipe.training_set(attack.system, attack.level, evaluator.encoder)
    hears = as_trained(evaluator, attack, attack.parts.evaluator, training)
    sets = recipe.sets[0], recipe.trial_set(gender)
    enrol, trial = map(as_protected, sets, attack.protection)
    return Listed(recipe, attack, evaluator, hears, gender, enrol, trial)


def matrices(
    recipe: Recipe, of: Labels, evaluator: Evaluator, vectors: dict[str, str], utt2spk: str,
    place: Callable[[Labels], str],
) -> list[str]:  # fmt: skip
    """Plan the scores of all pairs of segments, which make voice similarity matrices: of original
    speech, original beside protected, and protected; returns trials and scores of each.

    vectors: folders of x-vectors of original speech and of the system's. place: folder of scores by
    labels. An attacker's evaluator has the matrix of original speech beside the others.
    """
    (backend, asnorm), lists = evaluator.pairing, list[str]()
    for condition, rows, columns in (
        ("OO", ORIGINAL, ORIGINAL), ("OP", ORIGINAL, of.system), ("PP", of.system, of.system),
    ):  # fmt: skip
        pairs = of._replace(condition=condition, system=of.system if of.attacker else columns)
        folder = recipe.step(
            "similarity", place(pairs), backend=backend, asnorm=asnorm, utt2spk=utt2spk,
            rows=vectors[rows], columns=vectors[columns],
        )  # fmt: skip
        lists += [f"{folder}/trials", f"{folder}/scores"]
    return lists


class Attacks:
    """Attacks of run.sh on systems, and their figures. all: each on each list; fused: the same of
    several evaluators together; before: of earlier runs, among which the strongest is also chosen,
    as far as they are up to date."""

    def __init__(
        self, recipe: Recipe, systems: Sequence[str], before: Sequence["Listed"] = ()
    ) -> None:
        self.recipe, self.systems, self.before = recipe, systems, before
        self.attackers = recipe.asked.words("attackers")
        described = [(system, recipe.describe(system)) for system in systems]
        self.plan = plan_attacks(
            self.attackers,
            [
                AttackedSystem(system, of.level, of.levels, recipe.found(system).lacks)
                for system, of in described
            ],
            [evaluator.word for evaluator in recipe.evaluators],
            recipe.asked["informed_level"],
        )
        self.parts = [*product(recipe.evaluators, recipe.genders)]
        self.all = [
            list_attack(recipe, attack, evaluator, gender)
            for evaluator, gender in self.parts
            for attack in self.plan.attacks
            if attack.evaluator == evaluator.word
        ]
        lists = product(recipe.fused, recipe.genders)
        self.fused = [one for name, gender in lists for one in self._fuse(name, gender)]
        made = {one.tells.word for one in self.fused if one.attack.system != ORIGINAL}
        recipe.notes += [
            f"nothing is {name.replace('_', ' ')}: no attack is by two evaluators that it takes"
            for name in recipe.fused
            if name not in made
        ]

    @property
    def every(self) -> list[Listed]:
        """Attacks of this run and of earlier ones, in one order whichever run made which."""
        every = [*self.all, *self.fused, *self.before]
        return sorted(every, key=lambda one: one.path) if self.before else every

    def listed(self, evaluator: Evaluator, gender: str) -> list[Listed]:
        """Attacks with an evaluator on the trials of a gender."""
        return [one for one in self.all if (one.tells, one.gender) == (evaluator, gender)]

    def _fuse(self, name: str, gender: str) -> list[Listed]:
        """Attacks by which two evaluators or more heard the same trials, fused. By weights that are
        learnt only those whose back ends learn; the same, of equal weights, stand for them without
        protection, as whose judge they are measured."""
        found: dict[tuple[str, str], list[Listed]] = {}
        for one in self.all:
            heard = one.tells.encoder.word not in FUSED[name]
            if name == LEARNT:
                bare = one.attack.attacker == "unprotected"
                heard = one.tells.kind != "cosine" and (bare or one.hears.learns)
            if one.gender == gender and heard:
                found.setdefault((one.attack.system, one.attack.attacker), []).append(one)
        self.recipe.notes += [
            f"attack skipped: {who} on {system} with {name}: {parts[0].tells.word} alone makes it"
            for (system, who), parts in found.items()
            if len(parts) == 1
        ]
        tells = Evaluator(name, NamedEncoder(name, name, name), name, name, "", "0")
        return [
            replace(parts[0], tells=tells, hears=tells, fused=tuple(parts))
            for parts in found.values()
            if len(parts) > 1
        ]

    def further_runs(self, one: Listed) -> list[Listed]:
        """An attack on the further runs of --draws; none where the speech is not drawn anew."""
        attacker, system = one.attack.attacker, one.attack.system
        heard = attacker in DRAWN and not one.fused and not one.tells.encoder.kind.counts
        both = one.attack.protection[0] and self.recipe.shares_voices(system)
        return [
            replace(
                one, name=f"{attacker}_draw{i}", trial=f"{one.trial}_draw{i}",
                enrol=f"{one.enrol}_draw{i}" if both else one.enrol,
            )
            for i in range(1, self.recipe.n_draws(system) if heard else 1)
        ]  # fmt: skip

    # What run.sh makes, in its order.

    def learn(self) -> None:
        """Plan informed attackers: their training sets and models."""
        recipe = self.recipe
        for one in self.all:
            if one.attack.level != "-":
                of = (one.attack.system, one.attack.level, one.tells.encoder)
                recipe.protect_training_again(*of)
        for one in self.all:
            recipe.informed_encoder(one.hears)
            if one.hears.base is not None and (kind := one.hears.trained):
                recipe.backend(one.hears.encoder, one.hears.training, one.hears.scorer, kind)
            recipe.held_out(one.hears)

    def hear(self) -> None:
        """Plan x-vectors of the protected speech."""
        recipe = self.recipe
        for evaluator, system in product(recipe.evaluators, self.systems):
            draws = () if evaluator.encoder.kind.counts else recipe.drawn_again(system)
            names = [as_protected(name, system) for name in recipe.sets_of(system)]
            names += [f"{as_protected(name, system)}_draw{i}" for name, i in draws]
            for name in names:
                recipe.xvectors(evaluator.encoder, name)
        for one in self.all:
            if one.hears.encoder != one.tells.encoder:
                names = [as_protected(name, one.attack.system) for name in recipe.sets]
                for name in (*names, *([one.trials] if one.compares else ())):
                    recipe.xvectors(one.hears.encoder, name)

    def measure(self) -> None:
        """Plan scores and figures of each attack, each system, and the strongest attacker."""
        attacks: dict[tuple[str, str], list[Listed]] = {}
        for one in (*self.fused, *self.all):
            for run in (one, *self.further_runs(one)):
                run.score()
            self._verify(one)
            if one.compares:
                self._similarity(one.labels(Family.SIMILARITY), one.hears)
        self.before = self._current(self.before)
        for one in self.every:
            attacks.setdefault((one.attack.system, one.gender), []).append(one)
        for evaluator, gender in self.parts:
            for system in self.systems:
                self._compare(evaluator, gender, system)
        for (system, _), every in attacks.items():
            if system != ORIGINAL:
                self._choose(every)

    def _current(self, attacks: Sequence[Listed]) -> list[Listed]:
        """Those on lists of this run that it does not make, where all that is taken of them is up
        to date."""
        made, known = self.recipe.tables.every_out(), dict[Path, bool]()

        def is_there(one: Listed) -> bool:
            scores = [str(Path(run.scores).parent) for run in (one, *self.further_runs(one))]
            folders = [f"exp/metrics/{one.unprotected}", *scores]
            return all(of in made or is_current(Path(of), known) for of in folders)

        lists = {*product((ORIGINAL, *self.systems), self.recipe.genders)}
        own = {one.path for one in (*self.all, *self.fused)}
        named = [one for one in attacks if (one.attack.system, one.gender) in lists]
        return [one for one in named if one.path not in own and is_there(one)]

    def _choose(self, every: Sequence[Listed]) -> None:
        """Plan the lowest EER of all attackers."""
        lists = repeated("--another-attacker", (one.scores for one in every[1:]))
        for one in every:
            for run in self.further_runs(one):
                lists += ["--draw-of", one.scores, run.scores]
        of = every[0].labels(Family.STRONGEST)
        of = of._replace(attacker="", evaluator=EVERYBODY, condition="-")
        lists += [f"data/{every[0].trials}/trials", every[0].scores]
        self.recipe.figures("metrics", of, lists=lists)

    def _verify(self, one: Listed) -> None:
        """Plan the figures of an attack."""
        recipe, scores = self.recipe, one.scores
        trials = f"data/{one.trials}/trials"
        draws = repeated("--another-draw", (run.scores for run in self.further_runs(one)))
        before: list[str] = []
        if one.attack.attacker != "unprotected":
            before = ["--unprotected", f"exp/scores/{one.unprotected}/scores"]
        if any(part.tells.encoder.word == "words" for part in one.fused):
            before += ["--words", f"exp/scores/{one.path}/words"]
        if recipe.asked.get("protocol"):
            before += ["--challenges"]
        few = [word for n in (ENROLLED if one.few and not one.fused else ())
               for word in ("--enrolled", n, f"{scores}_enrolled_{n}")]  # fmt: skip
        lists = ["--recordings", *before, *few, *draws, trials, scores]
        recipe.figures("metrics", one.labels(Family.VERIFICATION), lists=lists)
        for family in families("scores"):
            recipe.figures("metrics", one.labels(family), lists=lists[-2:])
        if one.how == ALIGNED or not one.hears.encoder.kind.compared or one.fused:
            return  # legal criteria need x-vectors of each utterance, which are missing here
        xvectors = one.hears.encoder.xvectors
        recipe.figures_of_encoder(
            Family.LEGAL, one.labels(Family.LEGAL), enrol_utt2spk=f"data/{recipe.sets[0]}/utt2spk",
            trial_utt2spk=f"data/{one.trials}/utt2spk",
            enrol=f"{xvectors}/{one.enrol}/xvector.scp",
            trial=f"{xvectors}/{one.trial}/xvector.scp",
        )  # fmt: skip

    def _compare(self, evaluator: Evaluator, gender: str, system: str) -> None:
        """Plan figures of a system that depend on no attacker."""
        recipe, trials = self.recipe, f"data/{self.recipe.trial_set(gender)}/trials"
        split, encoder = recipe.split(gender), evaluator.encoder
        of = Labels(split, gender, system, Family.GAINS, "", evaluator.title, "OO-OA-AA")
        if encoder.kind.compared:
            self._similarity(of._replace(family=Family.SIMILARITY, condition="OO-OP-PP"), evaluator)
        one_of = {
            one.attack.attacker: one
            for one in self.listed(evaluator, gender)
            if one.attack.system == system
        }
        if {"ignorant", "lazy_informed"} <= one_of.keys():
            plain = f"exp/scores/{one_of['ignorant'].unprotected}/scores"
            scores = (plain, one_of["ignorant"].scores, one_of["lazy_informed"].scores)
            lists = [word for path in scores for word in (trials, path)]
            recipe.figures("metrics", of, lists=lists)
        if encoder.kind.compared:
            names = [as_protected(recipe.trial_set(gender), of) for of in ("", system)]
            sides = [f"{encoder.xvectors}/{name}/xvector.scp" for name in names]
            for family in families("vectors"):
                own = of._replace(family=family, condition="OP")
                recipe.figures_of_encoder("metrics", own, lists=sides)
        if not encoder.kind.counts and recipe.is_random(system):
            self._calibrate(evaluator, gender, system)

    def _similarity(self, of: Labels, evaluator: Evaluator) -> None:
        """Plan scores and figures of voice similarity, also as an attacker's evaluator hears it."""
        recipe, name = self.recipe, self.recipe.trial_set(of.gender)
        folder = f"{evaluator.encoder.xvectors}/{name}"
        vectors = {ORIGINAL: folder, of.system: f"{folder}_{of.system}"}
        utt2spk = f"data/{name}/utt2spk"
        lists = matrices(recipe, of, evaluator, vectors, utt2spk, scores_of)
        of = of._replace(condition="OO-OP-PP")
        recipe.figures("metrics", of, lists=lists)

    def _calibrate(self, evaluator: Evaluator, gender: str, system: str) -> None:
        """Plan a second run under the ignorant attacker, whoever attacks, and calibration
        distortion (C_ECE) across both."""
        recipe = self.recipe
        attack = Attempt(evaluator.word, system, "ignorant", "-")
        first = list_attack(recipe, attack, evaluator, gender)
        again = replace(first, name=f"ignorant_{DRAW}", trial=f"{first.trial}_{DRAW}")
        for run in (first, again):
            run.score()
        of = first.labels(Family.CALIBRATION)._replace(attacker="")
        lists = [f"data/{first.trials}/trials", first.scores, again.scores]
        recipe.figures(Family.CALIBRATION, of, lists=lists)


# ---- Utility of protected speech: pitch and level, estimated quality, emotions, words.
#
# exp/contours/<set>, exp/prosody/<system>/<set>: beside the original. exp/quality_samples/<set> and
# exp/quality/<system>/<set>: a sample of utterances, and their scores. exp/functionals/<set>,
# exp/emotions/<system>/<recogniser>/<set>.
# exp/decode/<system>/<recogniser>/<set>/text: hypotheses.
# exp/metrics/<system>/utility.<label>/{OO,PP,OP}/<split>: figures; split: each gender's, and all.

QUALITY = "distillmos"


def find_emotions(word: str) -> EmotionKind:
    """Kind of recogniser of a word of --emotion; UserError for an unknown one."""
    if found := match(RECOGNISERS, word):
        return RECOGNISERS[found[0]]
    raise UserError(f"--emotion: '{word}'; known: {', '.join(RECOGNISERS)}")


class Utility:
    """Plans of stage 10."""

    def __init__(self, recipe: Recipe, systems: Sequence[str]) -> None:
        self.recipe, self.systems = recipe, systems
        self.trials = recipe.trials
        self.everything = [ORIGINAL, *systems]
        self.asr = recipe.asked.words("asr")
        self.emotion = recipe.asked.words("emotion")
        for word in self.asr:
            find_recogniser(word)
        for word in self.emotion:
            find_emotions(word)
            if word in self.asr:
                raise UserError(
                    f"--emotion {word}: --asr also names it; a model recognises words or emotions, "
                    "so leave it out of one"
                )

    def check_transcripts(self) -> None:
        """Check that sets have transcripts if words are to be recognised; UserError otherwise."""
        for name in self.trials if self.asr else ():
            if Path("data", name, "utt2spk").exists() and not Path("data", name, "text").exists():
                raise UserError(
                    f"--asr: data/{name}/text is missing: word error rate needs transcripts; "
                    "give --asr= without them"
                )

    def labels(self, system: str, word: str, gender: str, condition: str = "") -> Labels:
        """Labels of figures by a recogniser, for a gender or all trials together; condition:
        OO for original speech, PP for protected, unless another is given."""
        condition = condition or ("OO" if system == ORIGINAL else "PP")
        split = self.recipe.split(gender)
        return Labels(split, gender, system, Family.UTILITY, "", word, condition)

    def _figures(
        self, table: str, system: str, word: str, files: str, original: Sequence[str] = ()
    ) -> None:
        """Plan figures of recognition, for all together and for each trial set. files: of what was
        recognised, with {} for the set. original: options with the original's."""
        sets = {of: [f"data/{name}", files.format(name)] for of, name in self.recipe.set_of.items()}
        first, *others = sets.values()
        whole = [*(word for pair in others for word in ("--also", *pair)), *first]
        if others:
            sets = {"": whole} | sets
        for gender, lists in sets.items():
            labels = self.labels(system, word, gender)
            self.recipe.figures(table, labels, original=original, lists=lists)

    def plan(self) -> None:
        """Plan everything that the options ask for."""
        if self.recipe.asked.flag(PROSODY):
            self._prosody()
        if self.recipe.asked.flag("quality"):
            self._quality()
        for word, system in product(self.emotion, self.everything):
            self._emotions(word, system)
        for word, system in product(self.asr, self.everything):
            out = f"exp/decode/{system}/{label_of(word)}/{{}}"
            for name in self.trials:
                kind, options = say_recogniser(self.recipe.asked, word)
                speech = as_protected(name, system)
                self.recipe.step(
                    "decoded", out.format(name), speech, options=options, recogniser=kind
                )
            self._figures("word_figures", system, word, f"{out}/text")

    def _prosody(self) -> None:
        """Plan pitch, length and level of protected trials beside the original."""
        for system, (gender, name) in product(self.systems, self.recipe.set_of.items()):
            contours = self.recipe.step("contours", f"exp/contours/{name}", name)
            out = self.recipe.step(
                "prosody", f"exp/prosody/{system}/{name}", name,
                contours=f"{contours}/contours.npz", protected=f"data/{name}_{system}",
            )  # fmt: skip
            labels = self.labels(system, PROSODY, gender, "OP")
            self.recipe.figures("prosody_figures", labels, prosody=f"{out}/prosody")

    def _quality(self) -> None:
        """Plan estimated mean opinion scores of a sample of trials, equal for all systems."""
        recipe = self.recipe
        recipe.asked.number("quality_utterances")
        for system in self.everything:
            for name in self.trials:
                sample = recipe.step("quality_samples", f"exp/quality_samples/{name}", name)
                recipe.step(
                    "quality", f"exp/quality/{system}/{name}", data=sample,
                    protected=f"data/{as_protected(name, system)}",
                )  # fmt: skip
            before = () if system == ORIGINAL else self.trials
            original = [f"--original=exp/quality/original/{name}/quality" for name in before]
            files = f"exp/quality/{system}/{{}}/quality"
            self._figures("quality_figures", system, QUALITY, files, original)

    def _functionals(self, name: str) -> str:
        return self.recipe.step("functionals", f"exp/functionals/{name}", name)

    def _emotions(self, word: str, system: str) -> None:
        """Plan recognition of a system's emotions by a recogniser."""
        recipe, learns = self.recipe, find_emotions(word).learns
        folder = f"exp/emotions/{system}/{label_of(word)}"
        for name in self.trials:
            speech, options = as_protected(name, system), ["--device", recipe.asked["device"]]
            if learns:
                options = ["--features", self._functionals(speech)]
                for one in (recipe.train, recipe.sets[0], *self.trials):  # of original speech
                    options += ["--train", f"data/{one}", self._functionals(one)]
            recipe.step(
                "emotions", f"{folder}/{name}", speech, cut=not learns, options=options,
                recogniser=word,
            )  # fmt: skip
        self._figures("emotion_figures", system, word, f"{folder}/{{}}/emotions")
